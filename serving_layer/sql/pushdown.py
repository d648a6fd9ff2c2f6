"""Which rows of its tables a query can need: bounds of time and values, derived from its filters.

Bounds are a superset: what cannot be analyzed has no bounds, and DuckDB applies every filter again. So they decide
how much is read, and never what the result is. A filter passes from a query to the queries and WITH clauses that it
reads from where they give a column on as it is, and across equalities of joins.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, Self

from sqlglot import exp

from serving_layer.sql.table import EVERYTHING, Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ONE_DAY = timedelta(days=1)
_UNITS = {"WEEK": 7, "MONTH": 31, "QUARTER": 92, "YEAR": 366, "DECADE": 3660}
"""Days of the units that times are cut by; others are shorter than a day."""


class Constant(NamedTuple):
    """The value of a constant as a date, an instant (microseconds since 1970) and a text; None where it is none.

    A whole number is a text, too: of the digits of it.
    """

    day: date | None = None
    micros: int | None = None
    text: str | None = None

    @property
    def instant(self) -> datetime | None:
        """`micros` as an instant; None if there is none, or beyond the years that Python knows."""
        try:
            return None if self.micros is None else _EPOCH + timedelta(microseconds=self.micros)
        except OverflowError:
            return None


Evaluate = Callable[[exp.Expr], Constant]


@dataclass(frozen=True)
class Bound:
    """What a column may be, under each type that it may have: dates, instants or texts."""

    days: Span = EVERYTHING
    instants: Span = EVERYTHING
    texts: frozenset[str] | None = None

    def both(self, other: Self) -> "Bound":
        """What fulfils both."""
        texts = [each.texts for each in (self, other) if each.texts is not None]
        return Bound(
            _intersected(self.days, other.days),
            _intersected(self.instants, other.instants),
            frozenset.intersection(*texts) if texts else None,
        )

    def either(self, other: Self) -> "Bound":
        """What fulfils any of them."""
        texts = None if self.texts is None or other.texts is None else self.texts | other.texts
        return Bound(_united(self.days, other.days), _united(self.instants, other.instants), texts)

    @classmethod
    def equal(cls, constant: Constant) -> Self:
        """The column is this."""
        texts = None if constant.text is None else frozenset({constant.text})
        return cls(Span(constant.day, constant.day), Span(constant.instant, constant.instant), texts)

    def widened(self, by: timedelta) -> "Bound":
        """The same bounds of time with a margin, and none of texts."""
        return Bound(_widened(self.days, by), _widened(self.instants, by + ONE_DAY))


ANYTHING = Bound()
Bounds = Mapping[str, Bound]
"""By the name of a column, in lower case."""


def _intersected(one: Span, other: Span) -> Span:
    firsts = [each for each in (one.first, other.first) if each is not None]
    lasts = [each for each in (one.last, other.last) if each is not None]
    return Span(max(firsts, default=None), min(lasts, default=None))


def _united(one: Span, other: Span) -> Span:
    if one.is_empty or other.is_empty:
        return other if one.is_empty else one
    first = None if one.first is None or other.first is None else min(one.first, other.first)
    return Span(first, None if one.last is None or other.last is None else max(one.last, other.last))


def _widened(span: Span, by: timedelta) -> Span:
    try:
        return Span(None if span.first is None else span.first - by, None if span.last is None else span.last + by)
    except OverflowError:
        return Span()


def _merged(one: Bounds, other: Bounds) -> dict[str, Bound]:
    return {name: one.get(name, ANYTHING).both(other.get(name, ANYTHING)) for name in {*one, *other}}


@dataclass
class _Source:
    """Something in a FROM clause. `columns`: what it has, if that is known."""

    node: exp.Expr
    columns: frozenset[str] | None
    bounds: dict[str, Bound] = field(default_factory=dict)


Key = tuple[str, str]
"""Alias of a source and name of a column."""


class Pushdown:
    """Derives the bounds of every table of one query."""

    def __init__(self, evaluate: Evaluate, columns_of: Callable[[exp.Table], frozenset[str] | None]) -> None:
        """Set up.

        Args:
            evaluate: the values of an expression without columns.
            columns_of: the columns of a table; None for what a WITH clause names.
        """
        self._evaluate, self._columns_of = evaluate, columns_of
        self._found: dict[int, Bounds] = {}
        self._references: dict[int, list[Bounds]] = {}

    def bounds(self, query: exp.Query) -> Mapping[int, Bounds]:
        """By the `id` of each of its tables the bounds of its columns. A table that is not in it has none."""
        self._query(query, {}, {})
        return self._found

    def _query(self, query: exp.Expr, incoming: Bounds, named: Mapping[str, exp.CTE]) -> None:
        """`incoming`: bounds of the columns of its result; `named`: what WITH clauses around it define."""
        while isinstance(query, exp.Subquery):
            if query.args.get("limit") or query.args.get("offset") or query.args.get("joins"):
                incoming = {}
            query = query.this
        with_ = query.args.get("with_")
        ctes = list(with_.expressions) if with_ else []
        is_recursive = bool(with_ and with_.args.get("recursive"))
        inner = {**named, **{cte.alias.lower(): cte for cte in ctes}}
        if isinstance(query, exp.SetOperation):
            self._set_operation(query, incoming, inner)
        elif isinstance(query, exp.Select):
            self._select(query, incoming, inner)
        else:
            self._nested(query, inner)
        visible = dict(inner)
        for cte in reversed(ctes):
            references = self._references.pop(id(cte), [])
            bounds = {} if is_recursive or cte.args["alias"].args.get("columns") else _any_of(references)
            if not is_recursive:  # it sees those before it, and what was around
                visible.pop(cte.alias.lower(), None)
                if cte.alias.lower() in named:
                    visible[cte.alias.lower()] = named[cte.alias.lower()]
            self._query(cte.this, bounds, visible)

    def _set_operation(self, query: exp.SetOperation, incoming: Bounds, named: Mapping[str, exp.CTE]) -> None:
        if query.args.get("limit") or query.args.get("offset"):
            incoming = {}
        left, right = query.left, query.right
        names, others = _names(left), _names(right)
        passed = names is not None and others is not None and len(names) == len(others)
        self._query(left, incoming if passed else {}, named)
        renamed = {
            other: incoming[name] for name, other in zip(names or (), others or (), strict=False) if name in incoming
        }
        self._query(right, renamed if passed else {}, named)

    def _select(self, query: exp.Select, incoming: Bounds, named: Mapping[str, exp.CTE]) -> None:
        sources = dict(self._sources(query, named))
        joins = query.args.get("joins") or []
        keys = self._conjunction(_parts(query.args.get("where")), sources)
        if incoming and _passes_on(query):
            for key, bound in self._passed(query, incoming, sources):
                keys[key] = keys.get(key, ANYTHING).both(bound)
        for key, bound in self._joined(joins, sources).items():
            keys[key] = keys.get(key, ANYTHING).both(bound)
        for _ in range(len(joins)):
            self._spread(joins, sources, keys)
        for (alias, name), bound in keys.items():
            sources[alias].bounds[name] = bound
        for source in sources.values():
            self._source(source, named)
        self._nested(query, named, without=[source.node for source in sources.values()])

    def _sources(self, query: exp.Select, named: Mapping[str, exp.CTE]) -> Iterator[tuple[str, _Source]]:
        from_ = query.args.get("from_")
        nodes = [from_.this] if from_ else []
        nodes += [join.this for join in query.args.get("joins") or []]
        for place, node in enumerate(nodes):
            columns = self._columns_of(node) if isinstance(node, exp.Table) else None
            if columns is None and (names := _names(_query_of(node, named))) is not None:
                columns = frozenset(names)
            is_renamed = bool(node.args.get("alias") and node.args["alias"].args.get("columns"))
            yield node.alias_or_name.lower() or f"?{place}", _Source(node, None if is_renamed else columns)

    def _source(self, source: _Source, named: Mapping[str, exp.CTE]) -> None:
        node = source.node
        alias = node.args.get("alias")
        bounds: Bounds = {} if alias and alias.args.get("columns") else source.bounds
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            cte = named.get(node.name.lower()) if not node.db else None
            if self._columns_of(node) is None and cte is not None:
                self._references.setdefault(id(cte), []).append(bounds)
            else:
                self._found[id(node)] = bounds
        elif isinstance(node, exp.Subquery):
            self._query(node, bounds, named)
        else:
            self._nested(node, named)

    def _nested(self, node: exp.Expr, named: Mapping[str, exp.CTE], without: Sequence[exp.Expr] = ()) -> None:
        """Queries within expressions: filters around them do not reach them."""
        rest: list[exp.Expr] = [node]
        skipped = {id(each) for each in without}
        while rest:
            each = rest.pop()
            for child in each.iter_expressions():
                if id(child) in skipped or isinstance(child, exp.With):
                    continue
                if isinstance(child, exp.Query):
                    self._query(child, {}, named)
                else:
                    rest.append(child)

    def _passed(
        self, query: exp.Select, incoming: Bounds, sources: Mapping[str, _Source]
    ) -> Iterator[tuple[Key, Bound]]:
        """Bounds of the result as those of the sources whose columns are given on."""
        for projection in query.expressions:
            inner = projection.unalias()
            if isinstance(inner, exp.Star) and len(sources) == 1:
                alias = next(iter(sources))
                yield from (((alias, name), bound) for name, bound in incoming.items())
            elif isinstance(inner, exp.Column) and projection.alias_or_name.lower() in incoming:
                for key in self._keys(inner, sources):
                    yield key, incoming[projection.alias_or_name.lower()]

    def _joined(self, joins: Sequence[exp.Join], sources: Mapping[str, _Source]) -> dict[Key, Bound]:
        """The bounds that conditions of joins set."""
        found: dict[Key, Bound] = {}
        names = list(sources)
        for place, join in enumerate(joins, start=len(names) - len(joins)):
            side = (join.side or "").upper()
            own = names[place]
            for key, bound in self._conjunction(_parts(join.args.get("on")), sources).items():
                is_kept = side == "FULL" or (side == "LEFT" and key[0] != own) or (side == "RIGHT" and key[0] == own)
                if not is_kept:
                    found[key] = found.get(key, ANYTHING).both(bound)
        return found

    def _spread(self, joins: Sequence[exp.Join], sources: Mapping[str, _Source], keys: dict[Key, Bound]) -> None:
        """Give the bounds of a column to those that it is joined with."""
        names = list(sources)
        for place, join in enumerate(joins, start=len(names) - len(joins)):
            side = (join.side or "").upper()
            if side not in ("", "LEFT", "INNER"):
                continue
            for one, other in self._equalities(join, names[place], sources):
                bound = keys.get(one, ANYTHING)
                if side != "LEFT":
                    keys[one] = bound.both(keys.get(other, ANYTHING))
                keys[other] = keys.get(other, ANYTHING).both(bound)

    def _equalities(self, join: exp.Join, own: str, sources: Mapping[str, _Source]) -> Iterator[tuple[Key, Key]]:
        """Pairs of a column of what was there before, and one of what is joined."""
        for part in _parts(join.args.get("on")):
            if isinstance(part, exp.EQ) and isinstance(part.left, exp.Column) and isinstance(part.right, exp.Column):
                left, right = self._keys(part.left, sources), self._keys(part.right, sources)
                if len(left) == len(right) == 1:
                    one, other = (left[0], right[0]) if right[0][0] == own else (right[0], left[0])
                    if other[0] == own and one[0] != own:
                        yield one, other
        names = list(sources)
        before = names[: names.index(own)]
        for each in join.args.get("using") or []:
            name = each.name.lower()
            if len(before) == 1:
                yield (before[0], name), (own, name)

    def _keys(self, column: exp.Column, sources: Mapping[str, _Source]) -> list[Key]:
        """The source of a column; none if that is not certain."""
        name = column.name.lower()
        if column.table:
            return [(column.table.lower(), name)] if column.table.lower() in sources else []
        if len(sources) == 1:
            return [(next(iter(sources)), name)]
        if any(source.columns is None for source in sources.values()):
            return []
        having = [alias for alias, source in sources.items() if name in (source.columns or ())]
        return [(alias, name) for alias in having]

    def _conjunction(self, parts: Sequence[exp.Expr], sources: Mapping[str, _Source]) -> dict[Key, Bound]:
        found: dict[Key, Bound] = {}
        for part in parts:
            for key, bound in self._of(part, sources).items():
                found[key] = found.get(key, ANYTHING).both(bound)
        return found

    def _of(self, condition: exp.Expr, sources: Mapping[str, _Source]) -> Mapping[Key, Bound]:
        """The bounds that follow from a condition being true."""
        condition = condition.unnest()
        if isinstance(condition, exp.And):
            return self._conjunction(_parts(condition), sources)
        if isinstance(condition, exp.Or):
            one, other = self._of(condition.left, sources), self._of(condition.right, sources)
            return {key: one[key].either(other[key]) for key in one.keys() & other.keys()}
        if isinstance(condition, exp.Between):
            low, high = condition.args["low"], condition.args["high"]
            return self._compared(condition.this, self._span(low, high), sources)
        if isinstance(condition, exp.In) and condition.expressions:
            return self._compared(condition.this, self._any(condition.expressions), sources)
        if isinstance(condition, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
            return self._comparison(condition, sources)
        return {}

    def _comparison(self, condition: exp.Binary, sources: Mapping[str, _Source]) -> Mapping[Key, Bound]:
        left, right = condition.left, condition.right
        flipped = not is_constant(right) and not isinstance(right, exp.Any)
        column, other = (right, left) if flipped else (left, right)
        if isinstance(other, exp.Any):
            array = other.this.unnest()
            array = array.this.unnest() if isinstance(array, exp.Cast) else array
            is_equal = isinstance(condition, exp.EQ) and isinstance(array, exp.Array)
            return self._compared(column, self._any(array.expressions), sources) if is_equal else {}
        if not is_constant(other):
            return {}
        if isinstance(condition, exp.EQ):
            return self._compared(column, Bound.equal(self._evaluate(other)), sources)
        is_least = isinstance(condition, exp.GT | exp.GTE) is not flipped
        return self._compared(column, self._span(other, None) if is_least else self._span(None, other), sources)

    def _span(self, low: exp.Expr | None, high: exp.Expr | None) -> Bound:
        first = self._evaluate(low) if low is not None and is_constant(low) else Constant()
        last = self._evaluate(high) if high is not None and is_constant(high) else Constant()
        return Bound(Span(first.day, last.day), Span(first.instant, last.instant))

    def _any(self, values: Sequence[exp.Expr]) -> Bound:
        if not values or not all(map(is_constant, values)):
            return ANYTHING
        found = Bound.equal(self._evaluate(values[0]))
        for value in values[1:]:
            found = found.either(Bound.equal(self._evaluate(value)))
        return found

    def _compared(self, of: exp.Expr, bound: Bound, sources: Mapping[str, _Source]) -> Mapping[Key, Bound]:
        column, slack = _column_in(of)
        if column is None:
            return {}
        return {key: bound if slack is None else bound.widened(slack) for key in self._keys(column, sources)}


def _parts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that must all be true."""
    if condition is None:
        return []
    inner = condition.this if isinstance(condition, exp.Where) else condition
    return list(inner.flatten()) if isinstance(inner, exp.And) else [inner]


def _query_of(node: exp.Expr, named: Mapping[str, exp.CTE]) -> exp.Expr | None:
    """The query that a source stands for; None if it is none, or its columns have other names."""
    if isinstance(node, exp.Subquery):
        return node
    cte = named.get(node.name.lower()) if isinstance(node, exp.Table) and not node.db else None
    return None if cte is None or cte.args["alias"].args.get("columns") else cte.this


def _names(query: exp.Expr | None) -> list[str] | None:
    """The names of the columns of a query; None if a star hides them."""
    query = query and query.unnest()
    while isinstance(query, exp.SetOperation):
        query = query.left.unnest()
    if not isinstance(query, exp.Select) or query.is_star:
        return None
    return [each.alias_or_name.lower() for each in query.expressions]


def _passes_on(query: exp.Select) -> bool:
    """Whether fewer rows in give fewer rows out, and the same ones: nothing counts or numbers rows before a filter."""
    if any(query.args.get(name) for name in ("limit", "offset", "qualify", "sample")):
        return False
    distinct = query.args.get("distinct")
    if distinct and distinct.args.get("on"):
        return False
    return not any(_own(query, exp.Window))


def _own(query: exp.Select, kind: type[exp.Expr]) -> Iterator[bool]:
    return (True for projection in query.expressions for _ in projection.find_all(kind))


def _any_of(references: Sequence[Bounds]) -> Bounds:
    """The bounds that hold in every reference."""
    if not references:
        return {}
    found = dict(references[0])
    for each in references[1:]:
        found = {name: found[name].either(each[name]) for name in found.keys() & each.keys()}
    return found


_NEVER_CONSTANT = (
    exp.Column,
    exp.Query,
    exp.Parameter,
    exp.Placeholder,
    exp.Rand,
    exp.Uuid,
    exp.Star,
    exp.AggFunc,
    exp.Window,
)


def is_constant(expression: exp.Expr) -> bool:
    """Whether the value of an expression is the same for every row, and can be known before any is read."""
    return not any(isinstance(node, _NEVER_CONSTANT) for node in expression.walk())


def _column_in(of: exp.Expr) -> tuple[exp.Column | None, timedelta | None]:
    """The column that an expression is, or is cut from, and how far apart they may be; None: they are equal."""
    of = of.unnest()
    if isinstance(of, exp.Column):
        return of, None
    if isinstance(of, exp.Cast) and of.to.this in (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ):
        column, slack = _column_in(of.this)
        return column, (slack or timedelta()) + ONE_DAY
    if isinstance(of, exp.AtTimeZone):
        column, slack = _column_in(of.this)
        return column, (slack or timedelta()) + ONE_DAY
    if isinstance(of, exp.DateTrunc | exp.TimestampTrunc):
        column, slack = _column_in(of.this)
        days = _UNITS.get(str(of.unit).upper().strip("'"), 1)
        return column, (slack or timedelta()) + timedelta(days=days + 1)
    return None, None
