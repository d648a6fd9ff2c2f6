"""What a query may read and call, checked in DuckDB's own syntax tree of the text that is about to be run.

The tree that `translate` writes the text from is not looked at here: if the two parsers ever disagree about a text,
what counts is the one that runs it.

The functions that statements may call compute from their arguments alone. What reads files, settings, variables or the
database itself is not among them, and neither is what waits or keeps something, nor distances of texts such as
`levenshtein`: they take as long as the product of two lengths, and DuckDB does not interrupt them.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson

from serving_layer.sql.error_messages import DIALECT, known_error, too_deep, without_advice
from serving_layer.sql.results import SqlStateError
from serving_layer.sql.suggestions import did_you_mean

TABLES_ONLY = "Tables of Galatea can be read, and nothing else: `\\d` lists them."
_REFERENCES = frozenset({"BASE_TABLE", "TABLE_FUNCTION", "JOIN", "SUBQUERY", "EMPTY", "EXPRESSION_LIST", "SELECT_NODE"})
"""What rows may come from; SHOW_REF and the like are not among them."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SCALAR = _words(
    """
    ! != !__postfix !~~ !~~* % & && * ** + - -> ->> / // < <-> << <= <=> <@ = > >= >> @ @> ^ ^@ abs acos acosh add
    age array_aggr array_aggregate array_append array_cat array_concat array_contains array_distinct array_extract
    array_has array_has_all array_has_any array_indexof array_intersect array_length array_position array_prepend
    array_reverse_sort array_slice array_sort array_to_json array_to_string array_unique array_value ascii asin
    asinh atan atan2 atanh base64 bin bit_count bit_length bit_position cardinality cbrt ceil ceiling century
    char_length character_length chr coalesce concat concat_ws constant_or_null contains cos cosh cot date date_add
    date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek
    dayofyear days_in_month decade decode degrees divide element_at encode ends_with epoch epoch_ms epoch_ns
    epoch_us era even exp factorial fdiv flatten floor fmod format formatreadablesize from_base64 from_hex gamma
    gcd gen_random_uuid get_bit greatest greatest_common_divisor hamming hash hex hour if ifnull ilike_escape instr
    isfinite isinf isnan isodow isoyear json json_array json_array_length json_contains json_exists json_extract
    json_extract_path json_extract_path_text json_extract_string json_keys json_object json_pretty json_quote
    json_structure json_type json_valid json_value julian last_day lcase lcm least least_common_multiple left len
    length lgamma like_escape list_aggr list_aggregate list_append list_cat list_concat list_contains list_distinct
    list_element list_extract list_filter list_has list_has_all list_has_any list_indexof list_intersect list_pack
    list_position list_prepend list_reverse_sort list_slice list_sort list_sum list_transform list_unique
    list_value list_zip ln log log10 log2 lower lpad ltrim make_date make_time make_timestamp make_timestamp_ms
    make_timestamptz map map_extract md5 microsecond millennium millisecond minute mismatches mod month monthname
    multiply nextafter not_ilike_escape not_like_escape nullif octet_length ord overlay pi position pow power
    prefix quarter radians random regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches
    regexp_replace regexp_split_to_array repeat replace reverse right round round_even row row_to_json rpad rtrim
    second set_bit sha1 sha256 sign signbit sin sinh split split_part sqrt starts_with str_split strftime
    string_split string_to_array strip_accents strlen strpos strptime struct_extract struct_pack substr substring
    subtract suffix tan tanh time_bucket timezone timezone_hour timezone_minute to_base64 to_binary to_centuries
    to_days to_decades to_hex to_hours to_json to_microseconds to_millennia to_milliseconds to_minutes to_months
    to_quarters to_seconds to_timestamp to_weeks to_years translate trim trunc try_strptime typeof ucase unbin
    unhex unicode upper url_decode url_encode uuid uuidv4 week weekday weekofyear xor year yearweek | || ~ ~~ ~~*
    ~~~
    """
)
AGGREGATE = _words(
    """
    any_value approx_count_distinct approx_quantile arbitrary arg_max arg_min array_agg avg bit_and bit_or bit_xor
    bool_and bool_or corr count count_if count_star countif covar_pop covar_samp entropy favg first fsum
    group_concat grouping grouping_id histogram json_group_array json_group_object kahan_sum kurtosis last list
    listagg mad max max_by mean median min min_by mode product quantile quantile_cont quantile_disc regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop
    stddev_samp string_agg sum var_pop var_samp variance
    """
)
WINDOW = _words(
    """
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
    """
)
TABLE = frozenset({"generate_series", "range", "unnest", "generate_subscripts"})
ALLOWED = SCALAR | AGGREGATE | WINDOW | TABLE

REACHES_OUT = re.compile(
    r"pg_(read|ls|stat_file|file|logdir|rotate|reload|terminate|cancel|sleep|advisory|switch|create|drop|start|stop"
    r"|notify|log|promote|export|replication|logical|current_logfile|try_advisory|import|wal|backup|hba).*"
    r"|lo_.*|loread|lowrite|dblink.*|read_.*|parquet_.*|sniff_csv|glob|.*_scan(_dumb)?|scan_.*|getenv|getvariable"
    r"|query|query_table|query_to_xml.*|table_to_xml.*|database_to_xml.*|schema_to_xml.*|cursor_to_xml.*|xpath.*"
    r"|duckdb_.*|pragma_.*|sql_auto_complete|json_(execute_)?serialized?_.*|json_deserialize_.*|nextval|currval|setval"
    r"|lastval|set_config|setseed|sleep_ms|write_log|which_secret|python_.*|.*checkpoint|enable_.*|disable_.*"
    r"|test_.*|repeat_row|summary|storage_info|.*external_resource.*|truncate_.*|txid_.*|copy_database|import_database"
    r"|current_query.*|inet_.*|error|invoke|hive_.*|path_join|parse_.*|dblink|file_fdw.*|http_.*|load_.*|plpy.*"
)
"""Names of functions that read or change something beyond their arguments, here or in other databases.

They are refused with a reason."""


def check(serialized: str, tables: Collection[str], macros: Collection[str]) -> None:
    """Refuse a query that reads or calls anything else.

    Args:
        serialized: the query as `json_serialize_sql` shows it.
        tables: the names of tables that it may read.
        macros: the names of functions of ours.

    Raises:
        SqlStateError: 42601 if it is not one query, 42501 if it reaches out, 42883 if a function is not there, 54001
            if it is nested too deep.
    """
    try:
        parsed = orjson.loads(serialized)
    except orjson.JSONDecodeError as error:  # orjson reads no more than 1,024 levels
        raise too_deep() from error
    if parsed["error"]:
        message = parsed["error_message"]
        raise known_error(message) or SqlStateError("42601", without_advice(message.splitlines()[0]), DIALECT)
    if len(parsed["statements"]) != 1:
        raise SqlStateError("42601", "These are several statements.", "Send one at a time.")
    nodes = list(_nodes(parsed["statements"][0]))
    names = frozenset(tables) | {each["key"] for node in nodes for each in _entries(node)}
    for node in nodes:
        kind, of = node.get("type"), node.get("class")
        if kind == "BASE_TABLE":
            _check_table(node, names)
        elif kind == "TABLE_FUNCTION":
            _check_function(node["function"], macros)
        elif "sample" in node and kind not in _REFERENCES:
            raise SqlStateError("0A000", f"{kind} is not supported.", TABLES_ONLY)
        elif of in ("FUNCTION", "WINDOW"):
            _check_function(node, macros)
        elif of == "STAR" and node.get("columns"):
            raise SqlStateError("42883", "The function columns does not exist.", "Name the columns.")


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - any part of a JSON document
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, dict):
            yield each
            rest += each.values()
        elif isinstance(each, list):
            rest += each


def _entries(node: Mapping[str, Any]) -> list[Any]:
    ctes = node.get("cte_map")
    return list(ctes["map"]) if isinstance(ctes, dict) else []


def _check_table(node: Mapping[str, Any], names: Collection[str]) -> None:
    is_qualified = node.get("schema_name") or node.get("catalog_name")
    if is_qualified or node["table_name"] not in names:
        named = ".".join(filter(None, (node.get("catalog_name"), node.get("schema_name"), node["table_name"])))
        raise SqlStateError("42P01", f'The relation "{named}" does not exist.', TABLES_ONLY)


def _check_function(node: Mapping[str, Any], macros: Collection[str]) -> None:
    name = str(node["function_name"]).lower()
    is_qualified = node.get("schema") or node.get("catalog")
    if not is_qualified and (name in ALLOWED or name in macros):
        return
    if is_qualified or REACHES_OUT.fullmatch(name):
        raise SqlStateError("42501", f"The function {name} is not permitted: it reaches out.", TABLES_ONLY)
    hint = did_you_mean(name, ALLOWED, "Most functions of PostgreSQL are there, but not all.")
    raise SqlStateError("42883", f"The function {name} does not exist.", hint)
