"""How a query is run: the text for DuckDB, and what is read of each of its tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from serving_layer.sql.constants import Evaluate
from serving_layer.sql.error_messages import too_deep
from serving_layer.sql.names import DATABASE, PG_CATALOG, PUBLIC, SCHEMAS
from serving_layer.sql.pushdown import ANYTHING, Bounds, Pushdown
from serving_layer.sql.results import SqlStateError
from serving_layer.sql.suggestions import missing_relation
from serving_layer.sql.table import EVERYTHING, Needed, Table, TableColumn
from serving_layer.sql.translate import duckdb_sql

Tables = Mapping[str, Table]
"""By schema and name, such as `public.sales_day`."""
PHYSICAL = "galatea_table"
"""What the names of tables in DuckDB begin with; an underscore and a number are behind."""
UNNAMED = "?column?"


@dataclass(frozen=True)
class TableUse:
    """A place where a query reads a table.

    Attributes:
        table: the table.
        name: what it is called in the text for DuckDB.
        columns: what the query uses of it, in the order of the table.
        node: its place in the query.
    """

    table: Table
    name: str
    columns: tuple[str, ...]
    node: exp.Table

    @property
    def empty(self) -> pa.Table:
        """The columns that are used, without rows."""
        used = [each for each in self.table.columns if each.name in self.columns]
        return pa.schema([(each.name, each.type) for each in used]).empty_table()

    def needed(self, bounds: Bounds) -> Needed:
        """What is read of the table. `bounds`: of its columns."""
        values = {name: of for name in self.table.bounded if (of := bounds.get(name, ANYTHING).values) is not None}
        span = EVERYTHING if self.table.time is None else bounds.get(self.table.time, ANYTHING).span
        return Needed(self.columns, span, values)


@dataclass(frozen=True)
class Plan:
    """A query whose tables are found.

    Attributes:
        query: the query, in which tables have the names of `uses`.
        sql: its text for DuckDB.
        uses: the tables.
    """

    query: exp.Query
    sql: str
    uses: Sequence[TableUse]

    def reads(self, evaluate: Evaluate) -> Sequence[Needed]:
        """What each of `uses` reads.

        Args:
            evaluate: the values of an expression without columns.

        Raises:
            SqlStateError: 54001 if the query is nested too deep.
        """
        columns = {id(use.node): {each.name: each.type for each in use.table.columns} for use in self.uses}
        try:
            found = Pushdown(evaluate, lambda node: columns.get(id(node))).bounds(self.query)
        except RecursionError as error:
            raise too_deep() from error
        return [use.needed(found.get(id(use.node), {})) for use in self.uses]


def plan(query: exp.Query, tables: Tables) -> Plan:
    """Find the tables of a query.

    Args:
        query: translated; it is changed.
        tables: the tables that it may read.

    Raises:
        SqlStateError: 42P01 if there is no such table, 0A000 if DuckDB has no such expression.
    """
    nodes = [node for node in query.find_all(exp.Table) if isinstance(node.this, exp.Identifier)]
    found = [(node, _table(node, tables)) for node in nodes if not _is_named_by_with(node)]
    every = _whole_tables(query)
    names = _column_names(query)
    is_natural = any((join.method or "").upper() == "NATURAL" for join in query.find_all(exp.Join))
    prefix = _prefix(query)
    uses = []
    for number, (node, table) in enumerate(found):
        alias = node.alias_or_name.lower()
        whole = is_natural or id(node) in every or alias in names[""] or _renames(node)
        columns = _used(table.columns, None if whole else names[""] | names.get(alias, set()))
        uses.append(TableUse(table, f"{prefix}_{number}", columns, node))
    for node in query.find_all(exp.Table):
        if isinstance(node.this, exp.Func) and node.db.lower() in SCHEMAS:  # a function with its schema
            node.set("db", None)
    for use in uses:
        if not use.node.alias:
            use.node.set("alias", exp.TableAlias(this=exp.to_identifier(use.node.name, quoted=True)))
        use.node.set("this", exp.to_identifier(use.name))
        use.node.set("db", None)
        use.node.set("catalog", None)
        use.node.set("only", None)
    return Plan(query, duckdb_sql(query), uses)


def _prefix(query: exp.Query) -> str:
    """What names of tables begin with in DuckDB: something that no name of the query begins with."""
    taken, prefix = tuple({each.name.lower() for each in query.find_all(exp.Identifier)}), PHYSICAL
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


def _table(node: exp.Table, tables: Tables) -> Table:
    name, schema, database = node.name.lower(), node.db.lower(), node.catalog.lower()
    schemas = (schema,) if schema else (PUBLIC, PG_CATALOG)
    for each in schemas if database in ("", DATABASE) else ():
        if f"{each}.{name}" in tables:
            return tables[f"{each}.{name}"]
    if schema and schema not in SCHEMAS:
        raise SqlStateError("3F000", f'The schema "{schema[:60]}" does not exist.', "Tables are in `public`.")
    if database not in ("", DATABASE):
        raise SqlStateError("0A000", f'There is no database "{database[:60]}" here.', f"Tables are in `{DATABASE}`.")
    defined = [each.alias.lower() for each in node.root().find_all(exp.CTE)]
    raise missing_relation(name, schema, [*tables, *defined])


def _is_named_by_with(node: exp.Table) -> bool:
    """Whether a WITH clause around it defines what it names."""
    if node.db:
        return False
    name, child = node.name.lower(), node
    current: exp.Expr | None = node.parent
    within: exp.Expr = child
    while current is not None:
        with_ = current.args.get("with_")
        if isinstance(with_, exp.With):
            defined = list(with_.expressions)
            if within is with_ and not with_.args.get("recursive"):
                own = next(place for place, cte in enumerate(defined) if _holds(cte, node))
                defined = defined[:own]
            if any(cte.alias.lower() == name for cte in defined):
                return True
        within, current = current, current.parent
    return False


def _holds(outer: exp.Expr, inner: exp.Expr) -> bool:
    each: exp.Expr | None = inner
    while each is not None and each is not outer:
        each = each.parent
    return each is outer


def _whole_tables(query: exp.Query) -> set[int]:
    """The `id` of each table all of whose columns are given on."""
    found: set[int] = set()
    for select in query.find_all(exp.Select):
        sources = list(_sources(select))
        if any(isinstance(each, exp.Star) for each in select.expressions):
            found |= {id(each) for each in sources}
    named = {each.table.lower() for each in query.find_all(exp.Column) if isinstance(each.this, exp.Star)}
    return found | {id(each) for each in query.find_all(exp.Table) if each.alias_or_name.lower() in named}


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from _flat(from_.this)
    for join in select.args.get("joins") or []:
        yield from _flat(join.this)


def _flat(node: exp.Expr) -> Iterator[exp.Expr]:
    """A table, and those that are joined with it in brackets."""
    yield node
    for join in node.args.get("joins") or []:
        yield from _flat(join.this)
    if isinstance(node, exp.Paren | exp.Subquery) and not isinstance(node.this, exp.Query):
        yield from _flat(node.this)


def _column_names(query: exp.Query) -> dict[str, set[str]]:
    """The names of columns, by what stands before them: the alias of a table, or nothing."""
    found: dict[str, set[str]] = {"": set()}
    for column in query.find_all(exp.Column):
        found.setdefault(column.table.lower(), set()).add(column.name.lower())
    for join in query.find_all(exp.Join):
        found[""] |= {each.name.lower() for each in join.args.get("using") or []}
    return found


def _renames(node: exp.Table) -> bool:
    alias = node.args.get("alias")
    return bool(alias and alias.args.get("columns"))


def _used(columns: Sequence[TableColumn], names: set[str] | None) -> tuple[str, ...]:
    """Those of these names, or all; one at least, so that rows can be counted."""
    used = tuple(each.name for each in columns if names is None or each.name in names)
    return used or (columns[0].name,)


def with_column_names(query: exp.Query) -> exp.Query:
    """The query with a name for each column, as PostgreSQL gives it: after the function or type it is made with."""
    named = query.copy()
    for select in named.find_all(exp.Select):
        for projection in list(select.expressions):
            if not isinstance(projection, exp.Alias | exp.Aliases | exp.Column | exp.Star):
                alias = exp.to_identifier(column_name(projection), quoted=True)
                projection.replace(exp.Alias(this=projection.copy(), alias=alias))
    return named


_NAMES: Mapping[type[exp.Expr], str] = {
    exp.GroupConcat: "string_agg",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.TimestampTrunc: "date_trunc",
    exp.DateTrunc: "date_trunc",
    exp.Extract: "extract",
    exp.Array: "array",
    exp.Exists: "exists",
    exp.Case: "case",
    exp.Coalesce: "coalesce",
    exp.Substring: "substring",
    exp.Ceil: "ceil",
    exp.Length: "length",
    exp.TimeToStr: "to_char",
    exp.StddevSamp: "stddev_samp",
    exp.PercentileCont: "percentile_cont",
    exp.PercentileDisc: "percentile_disc",
    exp.CurrentTimestamp: "now",
    exp.CurrentVersion: "version",
    exp.StrToTime: "to_timestamp",
    exp.StrToDate: "to_date",
    exp.TsOrDsToDate: "to_date",
    exp.UnixToTime: "to_timestamp",
    exp.ExplodingGenerateSeries: "generate_series",
    exp.GenerateSeries: "generate_series",
    exp.Explode: "unnest",
    exp.Unnest: "unnest",
}


_TYPE_NAMES = {
    "boolean": "bool",
    "smallint": "int2",
    "int": "int4",
    "bigint": "int8",
    "real": "float4",
    "double precision": "float8",
    "decimal": "numeric",
}
"""What PostgreSQL calls types in names of columns, where sqlglot calls them otherwise."""


def column_name(expression: exp.Expr) -> str:  # noqa: PLR0911 - one line a kind
    """The name that PostgreSQL gives a column of an expression without one."""
    if isinstance(expression, exp.Paren | exp.Window | exp.Filter | exp.WithinGroup | exp.AtTimeZone | exp.Neg):
        of_sign = isinstance(expression, exp.Neg)
        return UNNAMED if of_sign else column_name(expression.this)
    if isinstance(expression, exp.Column):
        return expression.name
    if isinstance(expression, exp.Dot):
        return column_name(expression.expression) if isinstance(expression.expression, exp.Func) else expression.name
    if isinstance(expression, exp.Cast):
        inner = column_name(expression.this)
        named = expression.to.sql("postgres").partition("(")[0].lower()
        return _TYPE_NAMES.get(named, named) if inner == UNNAMED else inner
    if isinstance(expression, exp.Subquery):
        query = expression.unnest()
        chosen = query.selects if isinstance(query, exp.Query) else []
        return (chosen[0].alias or column_name(chosen[0].unalias())) if chosen else UNNAMED
    if isinstance(expression, exp.Anonymous):
        return expression.name.lower()
    for kind, name in _NAMES.items():
        if isinstance(expression, kind):
            return name
    if isinstance(expression, exp.Func) and not isinstance(expression, exp.Binary | exp.Connector):
        return expression.sql_name().lower()
    return UNNAMED
