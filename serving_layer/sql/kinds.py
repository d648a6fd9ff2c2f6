"""What kinds of values the expressions of a query have, as far as that is known without running it.

DuckDB tells kinds apart when it runs a query, but the text that it runs depends on some of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto

from sqlglot import exp

from serving_layer.sql.results import SqlType, bounded

ColumnTypes = Callable[[exp.Table, str], SqlType | None]
"""The type of a column of a table that a query reads, by its name; None if there is no such table or column."""


class Kind(Enum):
    """A kind of values."""

    WHOLE = auto()
    """Whole numbers that PostgreSQL divides without a remainder."""
    SUM = auto()
    """Whole numbers in DuckDB that are numerics in PostgreSQL, such as sums."""
    DECIMAL = auto()
    FLOAT = auto()
    """Also quotients and averages, which are numerics in PostgreSQL."""
    TEXT = auto()
    FLAG = auto()
    DATE = auto()
    TIMESTAMP = auto()
    INSTANT = auto()
    INTERVAL = auto()
    ARRAY = auto()


_OF_COLUMNS: Mapping[SqlType, Kind] = {
    SqlType.INT8: Kind.WHOLE,
    SqlType.INT4: Kind.WHOLE,
    SqlType.FLOAT8: Kind.FLOAT,
    SqlType.NUMERIC: Kind.DECIMAL,
    SqlType.TEXT: Kind.TEXT,
    SqlType.BOOL: Kind.FLAG,
    SqlType.DATE: Kind.DATE,
    SqlType.TIMESTAMPTZ: Kind.INSTANT,
}
_OF_TYPES: Mapping[exp.DType, Kind] = {
    exp.DType.SMALLINT: Kind.WHOLE,
    exp.DType.INT: Kind.WHOLE,
    exp.DType.BIGINT: Kind.WHOLE,
    exp.DType.DECIMAL: Kind.DECIMAL,
    exp.DType.FLOAT: Kind.FLOAT,
    exp.DType.DOUBLE: Kind.FLOAT,
    exp.DType.VARCHAR: Kind.TEXT,
    exp.DType.TEXT: Kind.TEXT,
    exp.DType.BOOLEAN: Kind.FLAG,
    exp.DType.DATE: Kind.DATE,
    exp.DType.TIMESTAMP: Kind.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: Kind.INSTANT,
    exp.DType.INTERVAL: Kind.INTERVAL,
    exp.DType.ARRAY: Kind.ARRAY,
}
_NUMBERS: Sequence[Kind] = (Kind.FLOAT, Kind.DECIMAL, Kind.SUM, Kind.WHOLE)
"""The result of an operation of two numbers is of the first of their kinds."""
_LIKE_ARGUMENT = (
    exp.Paren,
    exp.Alias,
    exp.Neg,
    exp.Filter,
    exp.Window,
    exp.Max,
    exp.Min,
    exp.AnyValue,
    exp.First,
    exp.Last,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
    exp.IgnoreNulls,
    exp.RespectNulls,
    exp.Nullif,
    exp.Abs,
    exp.Collate,
    exp.ArgMax,
    exp.ArgMin,
    exp.Distinct,
)
"""What has the kind of what it is of."""
_FIXED: Sequence[tuple[tuple[type[exp.Expr], ...], Kind]] = (
    ((exp.Avg, exp.Sqrt, exp.Pow, exp.Stddev, exp.Variance), Kind.FLOAT),
    ((exp.Count, exp.Length, exp.RowNumber, exp.StrPosition), Kind.WHOLE),
    ((exp.CurrentTimestamp, exp.UnixToTime, exp.StrToTime), Kind.INSTANT),
    ((exp.CurrentDate, exp.StrToDate), Kind.DATE),
    ((exp.Localtimestamp,), Kind.TIMESTAMP),
    ((exp.Interval, exp.MakeInterval), Kind.INTERVAL),
    ((exp.Boolean, exp.Predicate, exp.Connector, exp.Not), Kind.FLAG),
    ((exp.TimeToStr, exp.Lower, exp.Upper, exp.Concat, exp.Substring, exp.DPipe, exp.Left, exp.Format), Kind.TEXT),
    ((exp.Array, exp.ArrayAgg), Kind.ARRAY),
    ((exp.Extract,), Kind.SUM),
)
_NAMED: Mapping[str, Kind] = {
    "now": Kind.INSTANT,
    "clock_timestamp": Kind.INSTANT,
    "statement_timestamp": Kind.INSTANT,
    "transaction_timestamp": Kind.INSTANT,
    "age": Kind.INTERVAL,
    "rank": Kind.WHOLE,
    "dense_rank": Kind.WHOLE,
    "ntile": Kind.WHOLE,
}
MOST_STEPS = 100
"""How far a kind is looked for through queries that are made of each other."""


class Kinds:
    """The kinds in one query, which must not change meanwhile."""

    def __init__(self, columns: ColumnTypes) -> None:
        """Know the columns of tables."""
        self._columns = columns
        self._known: dict[int, Kind | None] = {}

    def of(self, node: exp.Expr | None, steps: int = MOST_STEPS) -> Kind | None:
        """The kind of an expression; None if it is not known."""
        if node is None or steps == 0:
            return None
        if id(node) not in self._known:
            self._known[id(node)] = self._found(node, steps - 1)
        return self._known[id(node)]

    def _found(self, node: exp.Expr, steps: int) -> Kind | None:  # noqa: C901, PLR0911, PLR0912 - one line a form
        for forms, kind in _FIXED:
            if isinstance(node, forms):
                return kind
        if isinstance(node, exp.Literal):
            return None if node.is_string else _of_number(node.name)
        if isinstance(node, exp.Cast):
            return _OF_TYPES.get(node.to.this)
        if isinstance(node, exp.Column):
            return self._column(node, steps)
        if isinstance(node, exp.Sum):
            return self._sum(self.of(node.this, steps))
        if isinstance(node, exp.Case):
            branches = [each.args.get("true") for each in node.args["ifs"]]
            return self._common([*branches, node.args.get("default")], steps)
        if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
            return self._common([node.this, *node.expressions], steps)
        if isinstance(node, exp.AtTimeZone):
            return Kind.INSTANT if self.of(node.this, steps) is Kind.TIMESTAMP else Kind.TIMESTAMP
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return Kind.TIMESTAMP if self.of(node.this, steps) is Kind.TIMESTAMP else Kind.INSTANT
        if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
            return next((self.of(each, steps) for each in _projections(node)), None)
        if isinstance(node, _LIKE_ARGUMENT):
            return self.of(node.this or next(iter(node.expressions), None), steps)
        if isinstance(
            node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.Round | exp.Ceil | exp.Floor | exp.Trunc
        ):
            return self._operation(node, steps)
        return _NAMED.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None

    @staticmethod
    def _sum(of: Kind | None) -> Kind:
        return of if of in (Kind.DECIMAL, Kind.FLOAT, Kind.INTERVAL) else Kind.SUM

    def _common(self, nodes: Sequence[exp.Expr | None], steps: int) -> Kind | None:
        kinds = {self.of(each, steps) for each in nodes if not isinstance(each, exp.Null)} - {None}
        if len(kinds) <= 1:
            return next(iter(kinds), None)
        return next((each for each in _NUMBERS if each in kinds), None)

    def _operation(self, node: exp.Expr, steps: int) -> Kind | None:  # noqa: PLR0911 - one line a form
        left, right = self.of(node.this, steps), self.of(node.args.get("expression"), steps)
        if isinstance(node, exp.Round | exp.Ceil | exp.Floor | exp.Trunc):
            return Kind.SUM if left is Kind.WHOLE else left
        if Kind.INTERVAL in (left, right):
            others = {left, right} - {Kind.INTERVAL, None}
            if isinstance(node, exp.Add | exp.Sub) and others:
                return Kind.TIMESTAMP if others == {Kind.DATE} else next(iter(others))
            return Kind.INTERVAL if isinstance(node, exp.Mul | exp.Div) or left is right else None
        if isinstance(node, exp.Sub) and Kind.INSTANT in (left, right):
            return Kind.INTERVAL if left and right else None
        if Kind.DATE in (left, right):
            return Kind.WHOLE if left is right else Kind.DATE if Kind.WHOLE in (left, right) else None
        if isinstance(node, exp.Div) and left in _NUMBERS and right in _NUMBERS:
            return Kind.WHOLE if left is right is Kind.WHOLE else Kind.FLOAT
        return next((each for each in _NUMBERS if each in (left, right)), None)

    def _column(self, column: exp.Column, steps: int) -> Kind | None:
        """The kind of a column of the query that it stands in, or of one around that."""
        name, table = column.name.lower(), column.table.lower()
        for select in _around(column):
            for source in _sources(select):
                if table and source.alias_or_name.lower() != table:
                    continue
                found = self._in_source(source, name, steps)
                if found is not None:
                    return found
            named = (each for each in select.expressions if isinstance(each, exp.Alias) and each.alias.lower() == name)
            if not table and not _is_within(column, select.expressions) and (own := next(named, None)) is not None:
                return self.of(own, steps)
        return None

    def _in_source(self, source: exp.Expr, name: str, steps: int) -> Kind | None:  # noqa: PLR0911 - likewise
        """The kind of a column of this name in a part of FROM."""
        made: exp.Expr | None = source
        renamed = [each.lower() for each in source.alias_column_names]
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            cte = _defined(source)
            if cte is None:
                type_ = self._columns(source, name)
                return None if type_ is None else _OF_COLUMNS.get(type_)
            made = cte.this
            renamed = renamed or [each.lower() for each in cte.alias_column_names]
        if isinstance(made, exp.Values):
            rows = made.expressions
            values = rows[0].expressions if rows and isinstance(rows[0], exp.Tuple) else rows[:1]
            return self.of(values[renamed.index(name)], steps) if name in renamed[: len(values)] else None
        if not isinstance(made, exp.Subquery | exp.Select | exp.SetOperation):
            return None
        projections = _projections(made)
        if renamed:
            return self.of(projections[renamed.index(name)], steps) if name in renamed[: len(projections)] else None
        for each in projections:
            if each.alias_or_name.lower() == name:
                return self.of(each, steps)
            if each.is_star:
                inner = _first_select(made)
                found = (
                    (self._in_source(one, name, steps - 1) for one in _sources(inner) if steps) if inner else iter(())
                )
                if (known := next(filter(None, found), None)) is not None:
                    return known
        return None


def _of_number(text: str) -> Kind:
    if text.isdecimal():
        return Kind.WHOLE if bounded(text) < 2**63 else Kind.DECIMAL
    return Kind.FLOAT if "e" in text.lower() else Kind.DECIMAL


def _first_select(query: exp.Expr) -> exp.Select | None:
    """The query that names the columns: the first of those that are put together."""
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    return query if isinstance(query, exp.Select) else None


def _projections(query: exp.Expr) -> list[exp.Expr]:
    select = _first_select(query)
    return select.expressions if select is not None else []


def _around(node: exp.Expr) -> Iterator[exp.Select]:
    each = node.parent
    while each is not None:
        if isinstance(each, exp.Select):
            yield each
        each = each.parent


def _is_within(node: exp.Expr, outer: Sequence[exp.Expr]) -> bool:
    each: exp.Expr | None = node
    while each is not None and not any(each is one for one in outer):
        each = each.parent
    return each is not None


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    from_ = select.args.get("from_")
    rest = [from_.this] if from_ is not None else []
    rest += [join.this for join in select.args.get("joins") or []]
    while rest:
        each = rest.pop(0)
        rest += [join.this for join in each.args.get("joins") or []]
        if isinstance(each, exp.Paren | exp.Subquery) and not isinstance(each.this, exp.Query):
            rest.append(each.this)
        else:
            yield each.this if isinstance(each, exp.Lateral) and isinstance(each.this, exp.Subquery) else each


def _defined(table: exp.Table) -> exp.CTE | None:
    """The part of a WITH clause that a name in FROM means."""
    if table.db:
        return None
    each: exp.Expr | None = table
    while each is not None:
        with_ = each.args.get("with_")
        for cte in with_.expressions if isinstance(with_, exp.With) else ():
            if isinstance(cte, exp.CTE) and cte.alias.lower() == table.name.lower() and not _is_within(table, [cte]):
                return cte
        each = each.parent
    return None
