"""The catalogs of PostgreSQL, `pg_catalog` and `information_schema`, about the tables of a session.

Clients look up there what they can read: psql for a list of tables, drivers for the types of columns, BI tools for
both. Tables have the numbers (oids) of their names, so these stay the same from session to session. Whatever there
is none of here (functions, triggers, policies, ...) has a table without rows.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from serving_layer.sql.catalog_columns import EMPTY, FILLED
from serving_layer.sql.names import DATABASE, INFORMATION, PG_CATALOG, PUBLIC
from serving_layer.sql.settings import DEFAULTS
from serving_layer.sql.table import (
    FLAG,
    REAL,
    SQL_TYPES,
    TEXT,
    WHOLE,
    ListTable,
    Needed,
    Reading,
    Table,
    TableColumn,
)

_OWNER, _OWNER_OID, _DATABASE_OID, _COLLATION, _HEAP, _BTREE = "galatea", 10, 5, 100, 2, 403
NAMESPACES: Mapping[str, int] = {PG_CATALOG: 11, PUBLIC: 2200, INFORMATION: 13000}
CATALOG_OID, INFORMATION_OID, FIRST_OID, OIDS = 11_000, 13_000, 16_384, 2**30
"""Where the oids of catalogs begin, and behind them those of tables."""
_OWN_OIDS = {"pg_type": 1247, "pg_attribute": 1249, "pg_proc": 1255, "pg_class": 1259, "pg_database": 1262}
"""Those that PostgreSQL has for good."""
_NUMBERS = pa.list_(pa.int64())
_TEXTS = pa.list_(pa.string())


class TypeEntry(NamedTuple):
    """A type of PostgreSQL: its name, oid, length (-1: varies), category, and that of the array of it."""

    name: str
    oid: int
    length: int
    category: str
    array: int
    sql_name: str


TYPES = (
    TypeEntry("bool", 16, 1, "B", 1000, "boolean"),
    TypeEntry("bytea", 17, -1, "U", 1001, "bytea"),
    TypeEntry("char", 18, 1, "Z", 1002, '"char"'),
    TypeEntry("name", 19, 64, "S", 1003, "name"),
    TypeEntry("int8", 20, 8, "N", 1016, "bigint"),
    TypeEntry("int2", 21, 2, "N", 1005, "smallint"),
    TypeEntry("int4", 23, 4, "N", 1007, "integer"),
    TypeEntry("text", 25, -1, "S", 1009, "text"),
    TypeEntry("oid", 26, 4, "N", 1028, "oid"),
    TypeEntry("json", 114, -1, "U", 199, "json"),
    TypeEntry("float4", 700, 4, "N", 1021, "real"),
    TypeEntry("float8", 701, 8, "N", 1022, "double precision"),
    TypeEntry("unknown", 705, -2, "X", 0, "unknown"),
    TypeEntry("bpchar", 1042, -1, "S", 1014, "character"),
    TypeEntry("varchar", 1043, -1, "S", 1015, "character varying"),
    TypeEntry("date", 1082, 4, "D", 1182, "date"),
    TypeEntry("time", 1083, 8, "D", 1183, "time without time zone"),
    TypeEntry("timestamp", 1114, 8, "D", 1115, "timestamp without time zone"),
    TypeEntry("timestamptz", 1184, 8, "D", 1185, "timestamp with time zone"),
    TypeEntry("interval", 1186, 16, "T", 1187, "interval"),
    TypeEntry("numeric", 1700, -1, "N", 1231, "numeric"),
    TypeEntry("regclass", 2205, 4, "N", 2210, "regclass"),
)
_BY_NAME = {each.name: each for each in TYPES}
_KINDS: Mapping[str, pa.DataType] = {
    "o": WHOLE,
    "i": WHOLE,
    "t": TEXT,
    "b": FLAG,
    "f": REAL,
    "a": _NUMBERS,
    "x": _TEXTS,
}
"""Types of columns below, each by a letter."""
_ARRAYS: Mapping[pa.DataType, TypeEntry] = {
    _NUMBERS: TypeEntry("_int8", 1016, -1, "A", 0, "bigint[]"),
    _TEXTS: TypeEntry("_text", 1009, -1, "A", 0, "text[]"),
}

Row = Mapping[str, object]


class CatalogTable(ListTable):
    """A table of a catalog, whose rows are known."""

    about = "Catalog of PostgreSQL."

    def __init__(self, name: str, spec: str, rows: Sequence[Row]) -> None:
        """`spec`: names and kinds of columns; a row lacks those that are null."""
        self.schema, _, self.name = name.partition(".")
        named = [each.partition(":") for each in spec.split()]
        self.columns = tuple(TableColumn(column, _KINDS[kind]) for column, _, kind in named)
        self._rows = rows

    async def read(self, reading: Reading, needed: Needed) -> pa.Table:
        """The rows of a table of the catalogue, which depend on what the caller sees."""
        used = [each for each in self.columns if each.name in needed.columns]
        of_session = {"pg_settings": self._settings, "pg_cursors": self._cursors}.get(self.name)
        rows = of_session(reading) if of_session else self._rows
        arrays = [pa.array([row.get(each.name) for row in rows], each.type) for each in used]
        return pa.Table.from_arrays(arrays, names=[each.name for each in used])

    def _cursors(self, reading: Reading) -> Sequence[Row]:
        return [
            {
                "name": name,
                "statement": each.statement,
                "is_holdable": each.holds,
                "is_binary": False,
                "is_scrollable": each.scrolls,
            }
            for name, each in reading.cursors.items()
        ]

    def _settings(self, reading: Reading) -> Sequence[Row]:
        return [
            {
                "name": name,
                "setting": value,
                "category": "Galatea",
                "context": "user",
                "vartype": "string",
                "source": "default",
                "boot_val": DEFAULTS.get(name),
                "reset_val": DEFAULTS.get(name),
                "pending_restart": False,
            }
            for name, value in sorted(reading.settings.items())
        ]


class PostgresCatalog:
    """The catalogs about some tables."""

    def __init__(self, tables: Sequence[Table]) -> None:
        """`tables`: those of the schema `public`."""
        self._public = tables

    @cached_property
    def oids(self) -> Mapping[str, int]:
        """By schema and name the oid of every table."""
        return _catalog_oids() | {
            name: oid for oid, name in _distinct([f"{PUBLIC}.{each.name}" for each in self._public])
        }

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The tables of the catalogs, by schema and name."""
        rows = dict(self._rows())
        found: dict[str, Table] = {name: CatalogTable(name, spec, rows[name]) for name, spec in FILLED.items()}
        return found | {name: CatalogTable(name, spec, ()) for name, spec in EMPTY.items()}

    def _rows(self) -> Iterator[tuple[str, Sequence[Row]]]:
        yield (
            "pg_catalog.pg_namespace",
            [{"oid": oid, "nspname": name, "nspowner": _OWNER_OID} for name, oid in NAMESPACES.items()],
        )
        yield "pg_catalog.pg_class", [*self._relations(), *self._indexes()]
        yield "pg_catalog.pg_attribute", list(self._attributes())
        yield "pg_catalog.pg_type", list(_types())
        yield "pg_catalog.pg_index", list(self._index_keys())
        yield "pg_catalog.pg_constraint", list(self._constraints())
        yield "pg_catalog.pg_description", list(self._descriptions())
        yield "pg_catalog.pg_database", [_DATABASE_ROW]
        yield "pg_catalog.pg_roles", [_ROLE]
        yield "pg_catalog.pg_user", [{"usename": _OWNER, "usesysid": _OWNER_OID, "usesuper": False}]
        yield (
            "pg_catalog.pg_am",
            [
                {"oid": _HEAP, "amname": "heap", "amtype": "t"},
                {"oid": _BTREE, "amname": "btree", "amtype": "i"},
            ],
        )
        yield "pg_catalog.pg_settings", ()
        yield "pg_catalog.pg_cursors", ()
        yield (
            "pg_catalog.pg_tables",
            [
                {
                    "schemaname": schema,
                    "tablename": name,
                    "tableowner": _OWNER,
                    "hasindexes": False,
                    "rowsecurity": False,
                }
                for schema, name, _ in self._every
            ],
        )
        yield (
            "pg_catalog.pg_collation",
            [{"oid": _COLLATION, "collname": "default", "collnamespace": NAMESPACES[PG_CATALOG], "collprovider": "d"}],
        )
        yield (
            "information_schema.schemata",
            [{"catalog_name": DATABASE, "schema_name": name, "schema_owner": _OWNER} for name in NAMESPACES],
        )
        yield (
            "information_schema.tables",
            [
                {
                    **_named(schema, name),
                    "table_type": "BASE TABLE" if schema == PUBLIC else "VIEW",
                    "is_insertable_into": "NO",
                    "is_typed": "NO",
                }
                for schema, name, _ in self._every
            ],
        )
        yield "information_schema.columns", list(self._columns())
        yield (
            "information_schema.table_constraints",
            [
                {
                    **_constraint_named(table),
                    **_named(PUBLIC, table.name),
                    "constraint_type": "PRIMARY KEY",
                    "is_deferrable": "NO",
                    "initially_deferred": "NO",
                    "enforced": "YES",
                }
                for table in self._keyed
            ],
        )
        yield (
            "information_schema.key_column_usage",
            [
                {
                    **_constraint_named(table),
                    **_named(PUBLIC, table.name),
                    "column_name": name,
                    "ordinal_position": place,
                }
                for table in self._keyed
                for place, name in enumerate(table.key, start=1)
            ],
        )
        yield (
            "information_schema.table_privileges",
            [
                {
                    **_named(schema, name),
                    "grantor": _OWNER,
                    "grantee": "PUBLIC",
                    "privilege_type": "SELECT",
                    "is_grantable": "NO",
                    "with_hierarchy": "YES",
                }
                for schema, name, _ in self._every
            ],
        )

    @cached_property
    def _every(self) -> Sequence[tuple[str, str, Sequence[TableColumn]]]:
        """Schema, name and columns of every table."""
        found = [(PUBLIC, table.name, table.columns) for table in self._public]
        for name, spec in {**FILLED, **EMPTY}.items():
            table = CatalogTable(name, spec, ())
            found.append((table.schema, table.name, table.columns))
        return found

    @cached_property
    def _keyed(self) -> Sequence[Table]:
        return [table for table in self._public if table.key]

    def _relations(self) -> Iterator[Row]:
        keyed = {table.name for table in self._keyed}
        for schema, name, columns in self._every:
            has_index = schema == PUBLIC and name in keyed
            yield _relation(self.oids[f"{schema}.{name}"], name, schema, "r", len(columns)) | {"relhasindex": has_index}

    def _indexes(self) -> Iterator[Row]:
        for table in self._keyed:
            yield _relation(self._index(table), f"{table.name}_pkey", PUBLIC, "i", len(table.key)) | {"relam": _BTREE}

    def _index(self, table: Table) -> int:
        return self.oids[f"{PUBLIC}.{table.name}"] + OIDS

    def _attributes(self) -> Iterator[Row]:
        for schema, name, columns in self._every:
            for number, column in enumerate(columns, start=1):
                yield _attribute(self.oids[f"{schema}.{name}"], number, column)
        for table in self._keyed:
            by_name = {column.name: column for column in table.columns}
            for number, name in enumerate(table.key, start=1):
                yield _attribute(self._index(table), number, by_name[name])

    def _index_keys(self) -> Iterator[Row]:
        for table in self._keyed:
            numbers = _key_numbers(table)
            yield {
                "indexrelid": self._index(table),
                "indrelid": self.oids[f"{PUBLIC}.{table.name}"],
                "indnatts": len(numbers),
                "indnkeyatts": len(numbers),
                **dict.fromkeys(("indisunique", "indisprimary", "indimmediate", "indisvalid", "indisready"), True),
                **dict.fromkeys(("indisexclusion", "indisclustered", "indcheckxmin", "indisreplident"), False),
                "indnullsnotdistinct": False,
                "indislive": True,
                "indkey": numbers,
                "indoption": [0] * len(numbers),
                "indclass": [0] * len(numbers),
                "indcollation": [0] * len(numbers),
            }

    def _constraints(self) -> Iterator[Row]:
        for table in self._keyed:
            yield {
                "oid": self._index(table),
                "conname": f"{table.name}_pkey",
                "connamespace": NAMESPACES[PUBLIC],
                "contype": "p",
                "condeferrable": False,
                "condeferred": False,
                "convalidated": True,
                "conrelid": self.oids[f"{PUBLIC}.{table.name}"],
                "contypid": 0,
                "conindid": self._index(table),
                "conparentid": 0,
                "confrelid": 0,
                "conislocal": True,
                "coninhcount": 0,
                "connoinherit": True,
                "conkey": _key_numbers(table),
            }

    def _descriptions(self) -> Iterator[Row]:
        class_oid = self.oids["pg_catalog.pg_class"]
        for table in self._public:
            oid = self.oids[f"{PUBLIC}.{table.name}"]
            yield {"objoid": oid, "classoid": class_oid, "objsubid": 0, "description": table.about}
            for number, column in enumerate(table.columns, start=1):
                if column.about:
                    about = {"objsubid": number, "description": column.about}
                    yield {"objoid": oid, "classoid": class_oid, **about}

    def _columns(self) -> Iterator[Row]:
        for schema, name, columns in self._every:
            for number, column in enumerate(columns, start=1):
                entry = type_entry(column.type)
                is_decimal = pa.types.is_decimal(column.type)
                yield {
                    **_named(schema, name),
                    "column_name": column.name,
                    "ordinal_position": number,
                    "is_nullable": "YES",
                    "data_type": "ARRAY" if entry.category == "A" else entry.sql_name,
                    "numeric_precision": column.type.precision if is_decimal else _PRECISIONS.get(entry.name),
                    "numeric_scale": column.type.scale if is_decimal else 0 if entry.name == "int8" else None,
                    "numeric_precision_radix": 10 if is_decimal else 2 if entry.name in _PRECISIONS else None,
                    "datetime_precision": {"date": 0, "timestamptz": 6}.get(entry.name),
                    "udt_catalog": DATABASE,
                    "udt_schema": PG_CATALOG,
                    "udt_name": entry.name,
                    "dtd_identifier": str(number),
                    "is_self_referencing": "NO",
                    "is_identity": "NO",
                    "is_generated": "NEVER",
                    "is_updatable": "NO",
                }


_PRECISIONS = {"int8": 64, "float8": 53}
_DATABASE_ROW: Row = {
    "oid": _DATABASE_OID,
    "datname": DATABASE,
    "datdba": _OWNER_OID,
    "encoding": 6,
    "datlocprovider": "c",
    "datistemplate": False,
    "datallowconn": True,
    "datconnlimit": -1,
    "datcollate": "C.UTF-8",
    "datctype": "C.UTF-8",
    "dattablespace": 0,
}
_ROLE: Row = {
    "oid": _OWNER_OID,
    "rolname": _OWNER,
    **dict.fromkeys(("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls"), False),
    "rolinherit": True,
    "rolcanlogin": True,
    "rolconnlimit": -1,
}


def _catalog_oids() -> dict[str, int]:
    found, following = dict[str, int](), {PG_CATALOG: CATALOG_OID, INFORMATION: INFORMATION_OID + 1}
    for name in sorted([*FILLED, *EMPTY]):
        schema, _, table = name.partition(".")
        found[name] = _OWN_OIDS.get(table, following[schema])
        following[schema] += 1
    return found


def _distinct(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """An oid for each name; of two with the same sum, the later one has the next that is free."""
    taken: set[int] = set()
    for name in names:
        oid = FIRST_OID + zlib.crc32(name.encode()) % (OIDS - FIRST_OID)
        while oid in taken:
            oid += 1
        taken.add(oid)
        yield oid, name


def type_entry(kind: pa.DataType) -> TypeEntry:
    """The type of PostgreSQL that a column has."""
    if kind in _ARRAYS:
        return _ARRAYS[kind]
    return _BY_NAME["numeric"] if pa.types.is_decimal(kind) else _BY_NAME[SQL_TYPES[kind]]


def _relation(oid: int, name: str, schema: str, kind: str, columns: int) -> dict[str, object]:
    flags = ("relisshared", "relhasrules", "relhastriggers", "relhassubclass", "relrowsecurity", "relforcerowsecurity")
    zeros = ("reltype", "reloftype", "relfilenode", "reltablespace", "relpages", "relallvisible", "reltoastrelid")
    return {
        "oid": oid,
        "relname": name,
        "relnamespace": NAMESPACES[schema],
        "relowner": _OWNER_OID,
        "relam": _HEAP,
        "reltuples": -1.0,
        "relpersistence": "p",
        "relkind": kind if schema == PUBLIC else "v",
        "relnatts": columns,
        "relchecks": 0,
        "relispopulated": True,
        "relreplident": "n",
        **dict.fromkeys((*flags, "relispartition", "relhasindex", "relhasoids"), False),
        **dict.fromkeys((*zeros, "relrewrite", "relfrozenxid", "relminmxid"), 0),
    }


def _attribute(table: int, number: int, column: TableColumn) -> Row:
    entry = type_entry(column.type)
    modifier = ((column.type.precision << 16) | column.type.scale) + 4 if pa.types.is_decimal(column.type) else -1
    return {
        "attrelid": table,
        "attname": column.name,
        "atttypid": entry.oid,
        "attlen": entry.length,
        "attnum": number,
        "attcacheoff": -1,
        "atttypmod": modifier,
        "attndims": int(entry.category == "A"),
        "attbyval": 0 < entry.length <= 8,  # noqa: PLR2004 - as long as a word
        "attalign": "i",
        "attstorage": "p",
        "attcompression": "",
        "attidentity": "",
        "attgenerated": "",
        "attislocal": True,
        "attinhcount": 0,
        "attstattarget": -1,
        "attcollation": _COLLATION if entry.category == "S" else 0,
        **dict.fromkeys(("attnotnull", "atthasdef", "atthasmissing", "attisdropped"), False),
    }


def _types() -> Iterator[Row]:
    for entry in TYPES:
        yield _type(entry.name, entry.oid, entry.length, entry.category) | {"typarray": entry.array}
        if entry.array:
            yield _type(f"_{entry.name}", entry.array, -1, "A") | {"typelem": entry.oid}


def _type(name: str, oid: int, length: int, category: str) -> dict[str, object]:
    return {
        "oid": oid,
        "typname": name,
        "typnamespace": NAMESPACES[PG_CATALOG],
        "typowner": _OWNER_OID,
        "typlen": length,
        "typbyval": 0 < length <= 8,  # noqa: PLR2004 - as long as a word
        "typtype": "b",
        "typcategory": category,
        "typispreferred": name in ("text", "bool", "float8", "timestamptz", "interval"),
        "typisdefined": True,
        "typdelim": ",",
        "typinput": "array_in" if category == "A" else f"{name}in",
        "typoutput": "array_out" if category == "A" else f"{name}out",
        "typreceive": "array_recv" if category == "A" else f"{name}recv",
        "typsend": "array_send" if category == "A" else f"{name}send",
        "typalign": "i",
        "typstorage": "p",
        "typnotnull": False,
        "typtypmod": -1,
        "typcollation": _COLLATION if category == "S" else 0,
        **dict.fromkeys(("typrelid", "typelem", "typarray", "typbasetype", "typndims"), 0),
    }


def _key_numbers(table: Table) -> list[int]:
    names = [column.name for column in table.columns]
    return [names.index(name) + 1 for name in table.key]


def _named(schema: str, table: str) -> dict[str, object]:
    return {"table_catalog": DATABASE, "table_schema": schema, "table_name": table}


def _constraint_named(table: Table) -> dict[str, object]:
    return {
        "constraint_catalog": DATABASE,
        "constraint_schema": PUBLIC,
        "constraint_name": f"{table.name}_pkey",
    }
