"""All tables of a session, under the names by which statements know them."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from cachetools import LRUCache
from sqlglot import exp

from master_dataset.registry.stores import Store
from serving_layer.admin.corrections import CorrectionsService
from serving_layer.alerts.history import AlertListing, AuditReader
from serving_layer.products.reader import ProductReader
from serving_layer.service import QueryService
from serving_layer.sql.catalog_functions import MACRO_NAMES
from serving_layer.sql.list_tables import (
    AlertsTable,
    CorrectionsTable,
    ProductsTable,
    PublicationsTable,
    ReceiptsTable,
    StoreAttributesTable,
    StoresTable,
)
from serving_layer.sql.metrics_table import MetricsTable
from serving_layer.sql.names import PG_CATALOG, PUBLIC
from serving_layer.sql.postgres_catalog import PostgresCatalog
from serving_layer.sql.results import SqlType
from serving_layer.sql.table import SQL_TYPES, Table, money_type, table_size
from serving_layer.sql.view_tables import GRAINS, ViewTable

SETTLED_BYTES = 64 * 1024 * 1024
"""How much of settled days is kept, over all tables of views."""
SALES = "sales"
"""The view that counts every receipt."""
_TYPE_NAMES: Mapping[str, SqlType] = {
    "boolean": SqlType.BOOL,
    "smallint": SqlType.INT2,
    "int": SqlType.INT4,
    "integer": SqlType.INT4,
    "bigint": SqlType.INT8,
    "real": SqlType.FLOAT4,
    "double precision": SqlType.FLOAT8,
    "decimal": SqlType.NUMERIC,
    "numeric": SqlType.NUMERIC,
    "text[]": SqlType.TEXT_ARRAY,
    "varchar[]": SqlType.TEXT_ARRAY,
    "bigint[]": SqlType.INT8_ARRAY,
    "int[]": SqlType.INT8_ARRAY,
    "boolean[]": SqlType.BOOL_ARRAY,
    "double precision[]": SqlType.FLOAT8_ARRAY,
    "decimal[]": SqlType.NUMERIC_ARRAY,
    "date[]": SqlType.DATE_ARRAY,
    "timestamp[]": SqlType.TIMESTAMP_ARRAY,
    "timestamptz[]": SqlType.TIMESTAMPTZ_ARRAY,
}
_ARRAYS: Mapping[SqlType, SqlType] = {
    SqlType.BOOL: SqlType.BOOL_ARRAY,
    SqlType.INT8: SqlType.INT8_ARRAY,
    SqlType.FLOAT8: SqlType.FLOAT8_ARRAY,
    SqlType.NUMERIC: SqlType.NUMERIC_ARRAY,
    SqlType.DATE: SqlType.DATE_ARRAY,
    SqlType.TIMESTAMPTZ: SqlType.TIMESTAMPTZ_ARRAY,
}
"""The types of arrays whose elements are compared with columns; those of texts are not listed."""


@dataclass(frozen=True)
class Relations:
    """The tables that a session can read.

    Attributes:
        tables: by schema and name.
        oids: likewise, the number by which catalogs know each.
        macros: functions of ours that the sandbox has.
    """

    tables: Mapping[str, Table]
    oids: Mapping[str, int]
    macros: frozenset[str]

    def type_of_parameter(
        self, node: exp.Parameter, named: Collection[str], known: dict[int, SqlType | None]
    ) -> SqlType | None:
        """The type that a parameter must have by where it stands; None if that does not say.

        Args:
            node: the parameter.
            named: the tables of its statement, in small letters.
            known: by the id of an expression the type of the column in it, which may be compared with thousands of
                parameters; is added to.
        """
        parent = node.parent
        while isinstance(parent, exp.Paren):
            parent = parent.parent
        if isinstance(parent, exp.Cast):
            return _type_named(parent.to.sql("postgres").lower())
        if isinstance(parent, exp.Limit | exp.Offset):
            return SqlType.INT8
        if isinstance(parent, exp.Round) and parent.args.get("decimals") is node:
            return SqlType.INT4
        is_element = isinstance(parent, exp.Any | exp.All)
        compared = parent.parent if is_element and parent is not None else parent
        if not isinstance(compared, exp.Between | exp.In | exp.Binary):
            return None
        if id(compared) not in known:
            column = next((each for each in compared.iter_expressions() if isinstance(each, exp.Column)), None)
            known[id(compared)] = self._type_of(column, named) if column else None
        found = known[id(compared)]
        if is_element:
            return _ARRAYS.get(found, SqlType.TEXT_ARRAY) if found else SqlType.TEXT_ARRAY
        return found

    def type_of_column(self, table: exp.Table, name: str) -> SqlType | None:
        """The type of a column of a table that a statement names; None if there is none."""
        schemas = [table.db.lower()] if table.db else [PUBLIC, PG_CATALOG]
        found = next(filter(None, (self.tables.get(f"{each}.{table.name.lower()}") for each in schemas)), None)
        columns = found.columns if found is not None else ()
        type_ = next((each.type for each in columns if each.name == name), None)
        return None if type_ is None else SQL_TYPES.get(type_, SqlType.NUMERIC)

    def _type_of(self, column: exp.Column, named: Collection[str]) -> SqlType | None:
        """The type of a column by its name in the tables of the statement."""
        tables = [table for table in self.tables.values() if table.name in named]
        types = {each.type for table in tables for each in table.columns if each.name == column.name.lower()}
        return SQL_TYPES.get(types.pop(), SqlType.NUMERIC) if len(types) == 1 else None


def _type_named(name: str) -> SqlType | None:
    """The type of a name that PostgreSQL has for it; None for others, which texts become."""
    found = _TYPE_NAMES.get(name.partition("(")[0])
    return found or next((each for each in SqlType if each.value == name), None)


@dataclass
class Sources:
    """What the tables are read from. One per process.

    Attributes:
        queries: answers what REST answers.
        alerts: the alerts of all tenants.
        audits: which publication alerts were compared with last.
        corrections: the ledgers.
        products: the product masters of all tenants.
    """

    queries: QueryService
    alerts: AlertListing
    audits: AuditReader
    corrections: CorrectionsService
    products: ProductReader
    _known: dict[pa.DataType, Relations] = field(default_factory=dict, init=False)
    _settled: LRUCache[Hashable, pa.Table] = field(
        default_factory=lambda: LRUCache(SETTLED_BYTES, getsizeof=table_size), init=False
    )

    def relations(self, stores: Mapping[str, Store]) -> Relations:
        """The tables of whoever sees these stores."""
        amounts = money_type(stores)
        if amounts not in self._known:
            tables = self._tables(amounts)
            catalog = PostgresCatalog(tables)
            named = {f"{PUBLIC}.{table.name}": table for table in tables}
            self._known[amounts] = Relations({**named, **catalog.tables}, catalog.oids, MACRO_NAMES)
        return self._known[amounts]

    def _tables(self, amounts: pa.DataType) -> Sequence[Table]:
        catalogue, readers = self.queries.catalogue, self.queries.readers
        views = catalogue.views
        return [
            *(ViewTable(view, grain, catalogue, amounts, self._settled) for view in views.values() for grain in GRAINS),
            MetricsTable(catalogue),
            StoresTable(),
            StoreAttributesTable(),
            ProductsTable(self.products),
            *([ReceiptsTable(readers.receipts, views[SALES])] if SALES in views else []),
            PublicationsTable(readers.published),
            CorrectionsTable(self.corrections, readers.published, list(views)),
            AlertsTable(self.alerts, self.audits, readers.published),
        ]
