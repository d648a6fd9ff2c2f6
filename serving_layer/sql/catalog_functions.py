"""What the catalogs of PostgreSQL are asked with: functions about tables, types and privileges, as macros of DuckDB.

Every caller may read every table that it sees, and there are no functions, triggers and the like to describe.
"""

from collections.abc import Mapping, Sequence

from serving_layer.sql.postgres_catalog import FIRST_OID, INFORMATION_OID, NAMESPACES, TYPES

PREFIX = "galatea_"
"""Before the names of macros, so that they are not taken for functions of DuckDB."""


def _format_type() -> str:
    names = "".join(
        f" WHEN {each.oid} THEN '{each.sql_name}'"
        + (f" WHEN {each.array} THEN '{each.sql_name}[]'" if each.array else "")
        for each in TYPES
        if each.name != "numeric"
    )
    numeric = (
        "CASE WHEN m IS NULL OR m < 4 THEN 'numeric' ELSE 'numeric(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535) "
        "|| ')' END"
    )
    return f"CASE t{names} WHEN 1231 THEN 'numeric[]' WHEN 1700 THEN {numeric} WHEN 0 THEN '-' ELSE '???' END"


NEGATIVE_ROOT = "cannot take square root of a negative number"
NO_LOGARITHM = "cannot take logarithm of zero or a negative number"
NEGATIVE_LENGTH = "negative substring length not allowed"


def _logarithm(of: str) -> str:
    return f"CASE WHEN x <= 0 THEN error('{NO_LOGARITHM}') ELSE {of} END"


_NULL_TEXT = "CAST(NULL AS VARCHAR)"
_BODIES: Mapping[str, Sequence[tuple[str, str]]] = {
    "format_type": [("t, m", _format_type())],
    "regtype": [
        ("t", f"CASE WHEN try_cast(t AS BIGINT) IS NULL THEN t::VARCHAR ELSE {PREFIX}format_type(t::BIGINT, NULL) END")
    ],
    "regnamespace": [
        (
            "n",
            "CASE n::VARCHAR "
            + "".join(f"WHEN '{oid}' THEN '{name}' " for name, oid in NAMESPACES.items())
            + "ELSE n::VARCHAR END",
        )
    ],
    "_pg_expandarray": [("a", "unnest(list_transform(a, lambda v, i: {'x': v, 'n': i}))")],
    "pg_partition_ancestors": [("r", "unnest(CAST([] AS BIGINT[]))")],
    "pg_get_userbyid": [("r", "'galatea'")],
    "pg_encoding_to_char": [("e", "'UTF8'")],
    "pg_get_expr": [("e, r", _NULL_TEXT), ("e, r, p", _NULL_TEXT)],
    "pg_get_indexdef": [("i", "''"), ("i, c, p", "''")],
    "pg_get_constraintdef": [("c", "''"), ("c, p", "''")],
    "pg_get_viewdef": [("v", "''"), ("v, p", "''")],
    "pg_get_ruledef": [("v", "''"), ("v, p", "''")],
    "pg_get_triggerdef": [("v", "''"), ("v, p", "''")],
    "pg_get_partkeydef": [("r", _NULL_TEXT)],
    "pg_get_serial_sequence": [("t, c", _NULL_TEXT)],
    "pg_get_function_result": [("f", "''")],
    "pg_get_function_arguments": [("f", "''")],
    "pg_get_function_identity_arguments": [("f", "''")],
    "pg_get_statisticsobjdef_columns": [("f", "''")],
    "pg_relation_is_publishable": [("r", "false")],
    "pg_tablespace_location": [("r", "''")],
    "pg_is_in_recovery": [("", "false")],
    "pg_relation_size": [("r", "0::BIGINT"), ("r, f", "0::BIGINT")],
    "pg_table_size": [("r", "0::BIGINT")],
    "pg_indexes_size": [("r", "0::BIGINT")],
    "pg_total_relation_size": [("r", "0::BIGINT")],
    "pg_database_size": [("r", "0::BIGINT")],
    "pg_size_pretty": [("n", "n || ' bytes'")],
    "pg_stat_get_numscans": [("r", "0::BIGINT")],
    "pg_char_to_encoding": [("e", "6")],
    "pg_my_temp_schema": [("", "0")],
    "pg_is_other_temp_schema": [("n", "false")],
    "pg_has_role": [("r, p", "true"), ("u, r, p", "true")],
    "pg_table_is_visible": [("o", f"o NOT BETWEEN {INFORMATION_OID} AND {FIRST_OID - 1}")],
    "quote_ident": [
        (
            "n",
            (
                "CASE WHEN regexp_full_match(n, '[a-z_][a-z0-9_$]*') THEN n "
                "ELSE '\"' || replace(n, '\"', '\"\"') || '\"' END"
            ),
        )
    ],
    "parse_ident": [("n", "string_split(replace(n, '\"', ''), '.')")],
    "quote_literal": [("v", "'''' || replace(v::VARCHAR, '''', '''''') || ''''")],
    "array_upper": [("a, d", "nullif(len(a), 0)")],
    "array_lower": [("a, d", "CASE WHEN len(a) > 0 THEN 1 END")],
    "array_ndims": [("a", "CASE WHEN len(a) > 0 THEN 1 END")],
    "pg_postmaster_start_time": [("", "now()")],
    "pg_conf_load_time": [("", "now()")],
    "inet_server_addr": [("", _NULL_TEXT)],
    "inet_server_port": [("", "CAST(NULL AS INTEGER)")],
    "inet_client_addr": [("", _NULL_TEXT)],
    "pg_typeof": [("v", "lower(typeof(v))")],
    "float_text": [
        (
            "x",
            "replace(replace(regexp_replace(x::VARCHAR, '\\.0$', ''), 'inf', 'Infinity'), 'nan', 'NaN')",
        )
    ],
    "array_text": [
        (
            "a",
            (
                "'{' || array_to_string(list_transform(a, lambda v: CASE WHEN v IS NULL THEN 'NULL' "
                "WHEN regexp_full_match(v::VARCHAR, '[^\\s{}\",\\\\]+') AND upper(v::VARCHAR) <> 'NULL' "
                "THEN v::VARCHAR ELSE '\"' || replace(replace(v::VARCHAR, '\\', '\\\\'), '\"', '\\\"') "
                "|| '\"' END), ',') || '}'"
            ),
        )
    ],
    "elapsed": [
        (
            "a, b",
            (
                "to_days(((epoch_us(a::TIMESTAMPTZ) - epoch_us(b::TIMESTAMPTZ)) // 86400000000)::INTEGER) "
                "+ to_microseconds((epoch_us(a::TIMESTAMPTZ) - epoch_us(b::TIMESTAMPTZ)) % 86400000000)"
            ),
        )
    ],
    "initcap": [
        (
            "t",
            (
                "array_to_string(list_transform(regexp_extract_all(lower(t), '[\\p{L}\\p{N}]+|[^\\p{L}\\p{N}]+'), "
                "lambda w: upper(w[1]) || w[2:]), '')"
            ),
        )
    ],
    "substring": [
        ("t, s", "substring(t, greatest(s, 1))"),
        (
            "t, s, n",
            (
                f"CASE WHEN n < 0 THEN error('{NEGATIVE_LENGTH}') "
                "ELSE substring(t, greatest(s, 1), greatest(s + n, 1) - greatest(s, 1)) END"
            ),
        ),
    ],
    "split_part": [("t, d, n", "CASE WHEN d <> '' THEN split_part(t, d, n) WHEN n IN (1, -1) THEN t ELSE '' END")],
    "quote_nullable": [("v", "coalesce('''' || replace(v::VARCHAR, '''', '''''') || '''', 'NULL')")],
    "sqrt": [("x", f"CASE WHEN x < 0 THEN error('{NEGATIVE_ROOT}') ELSE sqrt(x) END")],
    "ln": [("x", _logarithm("ln(x)"))],
    "log": [("x", _logarithm("log10(x)")), ("b, x", _logarithm("ln(x) / ln(b)"))],
    **{
        f"pg_{kind}_is_visible": [("o", "true")]
        for kind in (
            "type",
            "function",
            "operator",
            "opclass",
            "collation",
            "conversion",
            "ts_config",
            "statistics_obj",
        )
    },
    **{
        f"has_{kind}_privilege": [("o, p", f"lower(p) IN {allowed}"), ("u, o, p", f"lower(p) IN {allowed}")]
        for kind, allowed in {
            "table": "('select')",
            "any_column": "('select')",
            "schema": "('usage')",
            "database": "('connect')",
            "function": "('execute')",
            "sequence": "('select')",
            "tablespace": "('none')",
            "language": "('usage')",
            "type": "('usage')",
        }.items()
    },
    "has_column_privilege": [("t, c, p", "lower(p) = 'select'"), ("u, t, c, p", "lower(p) = 'select'")],
}
NAMES = frozenset(_BODIES)
"""Functions that are macros here."""
_TABLES: Mapping[str, str] = {
    "pg_get_keywords": "SELECT word, 'R' AS catcode, 'reserved' AS catdesc FROM (VALUES ('analyse'), ('analyze'), "
    "('ilike'), ('isnull'), ('limit'), ('notnull'), ('offset'), ('returning'), ('variadic')) AS k(word)",
    "pg_available_extensions": "SELECT name, NULL::VARCHAR AS default_version, NULL::VARCHAR AS comment "
    "FROM (VALUES ('')) AS e(name) WHERE false",
}
"""Words that standard SQL does not reserve, for clients that quote names; and no extensions."""
TABLE_MACROS = frozenset(_TABLES)
MACROS: Sequence[str] = [
    *(
        f"CREATE MACRO {PREFIX}{name} " + ", ".join(f"({arguments}) AS {body}" for arguments, body in bodies)
        for name, bodies in _BODIES.items()
    ),
    *(f"CREATE MACRO {PREFIX}{name}() AS TABLE {query}" for name, query in _TABLES.items()),
]
"""Statements that make them."""
MACRO_NAMES = frozenset(f"{PREFIX}{name}" for name in NAMES | TABLE_MACROS)

RENAMED: Mapping[str, str] = {
    "json_build_object": "json_object",
    "jsonb_build_object": "json_object",
    "json_build_array": "json_array",
    "jsonb_build_array": "json_array",
    "json_object_agg": "json_group_object",
    "jsonb_object_agg": "json_group_object",
    "to_jsonb": "to_json",
    "every": "bool_and",
    "btrim": "trim",
    "char_length": "length",
}
"""Functions that have another name in DuckDB."""
DESCRIPTIONS: Mapping[str, str] = {
    "to_regtype": "(SELECT max(d.oid) FROM pg_type AS d WHERE d.typname = $1)",
    "obj_description": "(SELECT max(d.description) FROM pg_description AS d WHERE d.objoid = $1 AND d.objsubid = 0)",
    "shobj_description": "(SELECT max(d.description) FROM pg_shdescription AS d WHERE d.objoid = $1)",
    "col_description": "(SELECT max(d.description) FROM pg_description AS d WHERE d.objoid = $1 AND d.objsubid = $2)",
    "regclass": "(SELECT max(d.relname) FROM pg_catalog.pg_class AS d WHERE d.oid = $1)",
    "to_regclass": "(SELECT max(d.oid) FROM pg_catalog.pg_class AS d WHERE d.relname = replace($1, 'public.', ''))",
}
"""Functions that are queries here; `$1` and `$2` are their arguments."""
