"""What a query may read and call, checked in DuckDB's own syntax tree of the text that is about to be run.

The tree that `translate` writes the text from is not looked at here: if the two parsers ever disagree about a text,
what counts is the one that runs it.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson

from serving_layer.sql.error_messages import DIALECT, known_error, too_deep, without_advice
from serving_layer.sql.functions import ALLOWED, REACHES_OUT
from serving_layer.sql.results import SqlStateError
from serving_layer.sql.suggestions import did_you_mean

TABLES_ONLY = "Tables of Galatea can be read, and nothing else: `\\d` lists them."
_REFERENCES = frozenset({"BASE_TABLE", "TABLE_FUNCTION", "JOIN", "SUBQUERY", "EMPTY", "EXPRESSION_LIST", "SELECT_NODE"})
"""What rows may come from; SHOW_REF and the like are not among them."""


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
