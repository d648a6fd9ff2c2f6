"""Which rows of its tables a query can need: bounds of time and values, derived from its filters.

Bounds are a superset: what cannot be analyzed has no bounds, and DuckDB applies every filter again. So they decide
how much is read, and never what the result is. A filter passes from a query to the queries and WITH clauses that it
reads from where they give a column on as it is, and across equalities of joins. It passes between columns of the same
type alone: a constant may mean something else under another type.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple, Self

import pyarrow as pa
from sqlglot import exp

from serving_layer.sql.constants import TIMES, Constants, Evaluate, Moment, is_constant
from serving_layer.sql.table import DATE, EVERYTHING, INSTANT, TEXT, WHOLE, Span
from views.core.local_time import ONE_DAY

_MIXED = 2 * ONE_DAY
"""How far apart the days of a text are under the types that it may take beside constants of other types."""
_UNITS = {
    **dict.fromkeys(("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY"), 1),
    "WEEK": 7,
    "MONTH": 31,
    "QUARTER": 92,
    "YEAR": 366,
    "DECADE": 3660,
}
"""How many days the units have at most that times are cut by; other spellings are translated before."""
_KINDS_OF_JOIN = frozenset({"", "CROSS", "INNER", "OUTER"})
_METHODS_OF_JOIN = frozenset({"", "NATURAL"})
_STOPS = ("joins", "limit", "offset", "pivots", "sample")
"""Parts of a query in brackets, or of a set operation, through which no filter passes."""


@dataclass(frozen=True)
class Bound:
    """What a column may be: a span of a column of time, values of a column of texts or whole numbers."""

    span: Span = EVERYTHING
    values: frozenset[str] | None = None

    def both(self, other: Self) -> "Bound":
        """What fulfils both."""
        values = [each.values for each in (self, other) if each.values is not None]
        return Bound(_intersected(self.span, other.span), frozenset.intersection(*values) if values else None)

    @classmethod
    def any_of(cls, bounds: Sequence[Self]) -> Self:
        """What fulfils one of them, of which there is one at least."""
        span = bounds[0].span
        for each in bounds[1:]:
            span = _united(span, each.span)
        values = [each.values for each in bounds if each.values is not None]
        return cls(span, frozenset[str]().union(*values) if len(values) == len(bounds) else None)


ANYTHING = Bound()
Bounds = Mapping[str, Bound]
"""By the name of a column, in lower case."""
Columns = Mapping[str, pa.DataType | None]
"""By the name of a column, in lower case, its type; None: it has none for which there are bounds."""


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


@dataclass
class _Source:
    """Something in a FROM clause. `columns`: those that it is known to have, no others; None if that is not known."""

    node: exp.Expr
    columns: Columns | None
    bounds: dict[str, Bound] = field(default_factory=dict)


class _Named(NamedTuple):
    """What a WITH clause defines. `visible`: what names of queries mean within it."""

    cte: exp.CTE
    visible: "_Scope"


_Scope = Mapping[str, _Named]
"""By name, in lower case, what the WITH clauses around a query define."""
_Sources = Mapping[str, _Source]
"""By alias, in lower case."""


class _Key(NamedTuple):
    """A column of a source."""

    alias: str
    name: str
    type: pa.DataType


_Found = Mapping[_Key, Bound]


class Pushdown:
    """Derives the bounds of every table of one query."""

    def __init__(self, evaluate: Evaluate, columns_of: Callable[[exp.Table], Columns | None]) -> None:
        """Set up.

        Args:
            evaluate: the values of an expression without columns.
            columns_of: the columns of a table; None for what a WITH clause names.
        """
        self._constants, self._columns_of = Constants(evaluate), columns_of
        self._found: dict[int, Bounds] = {}
        self._references: dict[int, list[Bounds]] = {}
        self._seen: set[int] = set()
        self._named: dict[str, set[int]] = {}
        self._scopes: dict[int, tuple[_Scope, Sequence[_Named]]] = {}
        self._outputs_known: dict[int, list[tuple[str, pa.DataType | None]] | None] = {}

    def bounds(self, query: exp.Query) -> Mapping[int, Bounds]:
        """By the `id` of each of its tables the bounds of its columns. A table that is not in it has none."""
        for table in query.find_all(exp.Table):
            self._named.setdefault(table.name.lower(), set()).add(id(table))
        self._query(query, {}, {})
        return self._found

    def _query(self, query: exp.Expr, incoming: Bounds, around: _Scope) -> None:
        """`incoming`: bounds of the columns of its result; `around`: what WITH clauses around it define."""
        scope, defined = self._scope(query, around)
        if isinstance(query, exp.Subquery):
            self._query(query.this, {} if _stops(query) else incoming, scope)
        elif isinstance(query, exp.SetOperation):
            self._set_operation(query, {} if _stops(query) else incoming, scope)
        elif isinstance(query, exp.Select):
            self._select(query, incoming, scope)
        else:
            self._nested(query, scope)
        for cte, visible in reversed(defined):
            self._query(cte.this, self._bounds_of_references(cte), visible)

    def _scope(self, query: exp.Expr, around: _Scope) -> tuple[_Scope, Sequence[_Named]]:
        """What names of queries mean within a query, and what of that it defines itself."""
        with_ = query.args.get("with_")
        if not isinstance(with_, exp.With):
            return around, ()
        if id(query) in self._scopes:
            return self._scopes[id(query)]
        defined: list[_Named] = []
        scope = dict(around)
        for cte in with_.expressions:
            named = _Named(cte, scope if with_.args.get("recursive") else dict(scope))
            scope[cte.alias.lower()] = named
            defined.append(named)
        self._scopes[id(query)] = scope, defined
        for cte, visible in defined:
            self._outputs(cte.this, visible)
        return scope, defined

    def _bounds_of_references(self, cte: exp.CTE) -> Bounds:
        """The bounds that hold wherever a WITH query is read; none if that is anywhere that was not analyzed."""
        references = self._references.get(id(cte), [])
        is_renamed = bool(cte.args["alias"].args.get("columns"))
        if is_renamed or not references or not self._named.get(cte.alias.lower(), set()) <= self._seen:
            return {}
        names = set(references[0]).intersection(*references[1:])
        return {name: Bound.any_of([each[name] for each in references]) for name in names}

    def _set_operation(self, query: exp.SetOperation, incoming: Bounds, scope: _Scope) -> None:
        parts, outputs = _parts_of_set(query), self._outputs(query, scope)
        names = Counter(name for name, _ in outputs or ())
        passed = {
            place: incoming[name]
            for place, (name, type_) in enumerate(outputs or ())
            if type_ is not None and name in incoming and names[name] == 1
        }
        for part in parts:
            own = self._outputs(part, scope) or [] if passed else []
            self._query(part, {own[place][0]: bound for place, bound in passed.items()}, scope)

    def _select(self, query: exp.Select, incoming: Bounds, scope: _Scope) -> None:
        sources, joins = self._sources(query, scope), query.args.get("joins") or []
        if sources is None:
            self._nested(query, scope)
            return
        keys: dict[_Key, Bound] = dict(self._all(_conjuncts(query.args.get("where")), sources))
        if incoming and _passes_on(query):
            _add(keys, self._passed(query, incoming, sources))
        _add(keys, self._joined(joins, sources))
        for _ in range(len(joins)):
            self._spread(joins, sources, keys)
        for (alias, name, _), bound in keys.items():
            sources[alias].bounds[name] = bound
        for source in sources.values():
            self._source(source, scope)
        self._nested(query, scope, without=[source.node for source in sources.values()])

    def _sources(self, query: exp.Select, scope: _Scope) -> dict[str, _Source] | None:
        """What a query reads from; None if it is joined in a way that is not known."""
        from_, joins = query.args.get("from_"), query.args.get("joins") or []
        nodes = [from_.this] if from_ else []
        nodes += [join.this for join in joins]
        found = {
            node.alias_or_name.lower() or f"?{place}": _Source(node, self._columns(node, scope))
            for place, node in enumerate(nodes)
        }
        is_known = all(
            (join.kind or "").upper() in _KINDS_OF_JOIN and (join.method or "").upper() in _METHODS_OF_JOIN
            for join in joins
        )
        return found if is_known and len(found) == len(nodes) and not query.args.get("laterals") else None

    def _columns(self, node: exp.Expr, scope: _Scope) -> Columns | None:
        """The columns of a source."""
        alias = node.args.get("alias")
        if _stops(node) or (alias and alias.args.get("columns")):
            return None
        if isinstance(node, exp.Table) and (columns := self._columns_of(node)) is not None:
            return columns
        if isinstance(node, exp.Subquery):
            outputs = self._outputs(node, scope)
        else:
            named = _named(node, scope)
            is_renamed = named is None or named.cte.args["alias"].args.get("columns")
            outputs = None if named is None or is_renamed else self._outputs(named.cte.this, named.visible)
        if outputs is None:
            return None
        names = Counter(name for name, _ in outputs)
        return {name: type_ if names[name] == 1 else None for name, type_ in outputs}

    def _outputs(self, query: exp.Expr, around: _Scope) -> list[tuple[str, pa.DataType | None]] | None:
        """The names and types of the columns of a query, in order; None if they are not known."""
        if id(query) not in self._outputs_known:
            self._outputs_known[id(query)] = None  # what a recursive query reads of itself
            self._outputs_known[id(query)] = self._outputs_found(query, around)
        return self._outputs_known[id(query)]

    def _outputs_found(self, query: exp.Expr, around: _Scope) -> list[tuple[str, pa.DataType | None]] | None:
        scope = around if isinstance(query, exp.Table) else self._scope(query, around)[0]
        if isinstance(query, exp.Subquery):
            return None if query.args.get("joins") or query.args.get("pivots") else self._outputs(query.this, scope)
        if isinstance(query, exp.SetOperation):
            parts = [self._outputs(part, scope) for part in _parts_of_set(query)]
            first = parts[0]
            if first is None or any(each is None or len(each) != len(first) for each in parts):
                return None
            types = [{each[place][1] for each in parts if each} for place in range(len(first))]
            return [(name, of.pop() if len(of) == 1 else None) for (name, _), of in zip(first, types, strict=True)]
        if not isinstance(query, exp.Select):
            return None
        sources = self._sources(query, scope)
        return None if sources is None else self._outputs_of_select(query, sources)

    def _outputs_of_select(self, query: exp.Select, sources: _Sources) -> list[tuple[str, pa.DataType | None]] | None:
        found: list[tuple[str, pa.DataType | None]] = []
        for projection in query.expressions:
            if _is_whole_star(projection) and len(sources) == 1:
                [source] = sources.values()
                if source.columns is None:
                    return None
                found += source.columns.items()
            elif projection.is_star:
                return None
            else:
                keys = self._keys(projection.unalias(), sources)
                found.append((projection.alias_or_name.lower(), keys[0].type if keys else None))
        return found

    def _source(self, source: _Source, scope: _Scope) -> None:
        node, bounds = source.node, source.bounds
        if isinstance(node, exp.Subquery):
            self._query(node, bounds, scope)
            return
        named = _named(node, scope)
        if isinstance(node, exp.Table) and self._columns_of(node) is not None:
            self._found[id(node)] = bounds
        elif named is not None:
            self._references.setdefault(id(named.cte), []).append(bounds)
            self._seen.add(id(node))
        self._nested(node, scope)

    def _nested(self, node: exp.Expr, scope: _Scope, without: Sequence[exp.Expr] = ()) -> None:
        """Queries within expressions: filters around them do not reach them."""
        rest: list[exp.Expr] = [node]
        skipped = {id(each) for each in without}
        while rest:
            each = rest.pop()
            for child in each.iter_expressions():
                if id(child) in skipped or isinstance(child, exp.With):
                    continue
                if isinstance(child, exp.Query):
                    self._query(child, {}, scope)
                else:
                    rest.append(child)

    def _passed(self, query: exp.Select, incoming: Bounds, sources: _Sources) -> Iterator[tuple[_Key, Bound]]:
        """Bounds of the result as those of the sources whose columns are given on."""
        names = Counter(name for name, _ in self._outputs_of_select(query, sources) or ())
        for projection in query.expressions:
            if _is_whole_star(projection):
                given = [(name, exp.column(name)) for name in incoming]
            else:
                given = [(projection.alias_or_name.lower(), projection.unalias())]
            for name, inner in given:
                if name in incoming and names[name] == 1:
                    yield from ((key, incoming[name]) for key in self._keys(inner, sources))

    def _joined(self, joins: Sequence[exp.Join], sources: _Sources) -> Iterator[tuple[_Key, Bound]]:
        """The bounds that conditions of joins set."""
        names = list(sources)
        for place, join in enumerate(joins, start=len(names) - len(joins)):
            side = (join.side or "").upper()
            own = names[place]
            for key, bound in self._all(_conjuncts(join.args.get("on")), sources).items():
                is_kept = (
                    side == "FULL" or (side == "LEFT" and key.alias != own) or (side == "RIGHT" and key.alias == own)
                )
                if not is_kept:
                    yield key, bound

    def _spread(self, joins: Sequence[exp.Join], sources: _Sources, keys: dict[_Key, Bound]) -> None:
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

    def _equalities(self, join: exp.Join, own: str, sources: _Sources) -> Iterator[tuple[_Key, _Key]]:
        """Pairs of a column of what was there before, and one of what is joined, of the same type."""
        pairs: list[tuple[exp.Expr, exp.Expr]] = [
            (part.left, part.right) for part in _conjuncts(join.args.get("on")) if isinstance(part, exp.EQ)
        ]
        before = list(sources)[: list(sources).index(own)]
        if len(before) == 1:
            names = [each.name for each in join.args.get("using") or []]
            pairs += [(exp.column(name, table=before[0]), exp.column(name, table=own)) for name in names]
        for left, right in pairs:
            keys = [*self._keys(left, sources), *self._keys(right, sources)]
            if len(keys) == len(("left", "right")) and keys[0].type == keys[1].type:
                one, other = sorted(keys, key=lambda key: key.alias == own)
                if other.alias == own and one.alias != own:
                    yield one, other

    def _keys(self, of: exp.Expr, sources: _Sources) -> list[_Key]:
        """The columns of sources that a column is, which a join may have merged; none if that is not certain."""
        if not isinstance(of, exp.Column):
            return []
        name, alias = of.name.lower(), of.table.lower()
        if alias:
            having = [alias] if alias in sources else []
        elif any(source.columns is None for source in sources.values()):
            return []
        else:
            having = [each for each, source in sources.items() if name in (source.columns or ())]
        types = {(sources[each].columns or {}).get(name) for each in having}
        if len(types) != 1 or None in types:
            return []
        [type_] = types
        return [_Key(each, name, type_) for each in having]

    def _all(self, conditions: Iterable[exp.Expr], sources: _Sources) -> _Found:
        """The bounds that follow from conditions being true together."""
        found: dict[_Key, Bound] = {}
        for condition in conditions:
            _add(found, self._of(condition, sources).items())
        return found

    def _of(self, condition: exp.Expr, sources: _Sources) -> _Found:
        """The bounds that follow from a condition being true."""
        condition = condition.unnest()
        if isinstance(condition, exp.And):
            return self._all(condition.flatten(), sources)
        if isinstance(condition, exp.Or):
            found = [self._of(each, sources) for each in condition.flatten()]
            keys = set(found[0]).intersection(*found[1:])
            return {key: Bound.any_of([each[key] for each in found]) for key in keys}
        if isinstance(condition, exp.Between):
            return self._between(condition, sources)
        if isinstance(condition, exp.In) and condition.expressions:
            return self._equal(condition.this, condition.expressions, sources)
        if isinstance(condition, exp.EQ | exp.GT | exp.GTE | exp.LT | exp.LTE):
            return self._comparison(condition, sources)
        return {}

    def _comparison(self, condition: exp.Binary, sources: _Sources) -> _Found:
        left, right = condition.left, condition.right
        if isinstance(right, exp.Any):
            return self._equal(left, _elements(right), sources) if isinstance(condition, exp.EQ) else {}
        flipped = not is_constant(right)
        column, other = (right, left) if flipped else (left, right)
        if isinstance(condition, exp.EQ):
            return self._equal(column, [other], sources)
        is_least = isinstance(condition, exp.GT | exp.GTE) is not flipped
        return self._within(column, other if is_least else None, None if is_least else other, sources)

    def _between(self, condition: exp.Between, sources: _Sources) -> _Found:
        low, high = condition.args["low"], condition.args["high"]
        if condition.args.get("symmetric"):
            one = self._within(condition.this, low, high, sources)
            other = self._within(condition.this, high, low, sources)
            return {key: Bound.any_of([one[key], other[key]]) for key in one.keys() & other.keys()}
        return self._within(condition.this, low, high, sources)

    def _within(self, of: exp.Expr, low: exp.Expr | None, high: exp.Expr | None, sources: _Sources) -> _Found:
        """The bounds of an expression that is at least and at most what is given."""
        column, slack = _column_in(of)
        found: dict[_Key, Bound] = {}
        for key in self._keys(column, sources) if column else ():
            if key.type not in (DATE, INSTANT):
                continue
            first, last = (self._end(each, key.type) for each in (low, high))
            margin = _margin([each for each in (first, last) if each], key.type, slack)
            found[key] = Bound(_widened(Span(first and first.at, last and last.at), margin))
        return found

    def _end(self, of: exp.Expr | None, type_: pa.DataType) -> Moment | None:
        """What a column is compared with; None if it is compared with nothing."""
        if of is None:
            return None
        return self._constants.moment(of, type_) if is_constant(of) else Moment(None)

    def _equal(self, of: exp.Expr, values: Sequence[exp.Expr], sources: _Sources) -> _Found:
        """The bounds of an expression that is equal to one of these values."""
        column, slack = _column_in(of)
        keys = self._keys(column, sources) if column and values and all(map(is_constant, values)) else []
        return {key: self._any(values, key.type, slack) for key in keys}

    def _any(self, values: Sequence[exp.Expr], type_: pa.DataType, slack: timedelta | None) -> Bound:
        if type_ in (DATE, INSTANT):
            moments = self._constants.moments(values, type_)
            known = [each.at for each in moments if each.at is not None]
            if len(known) < len(moments):
                return ANYTHING
            return Bound(_widened(Span(min(known), max(known)), _margin(moments, type_, slack)))
        if type_ not in (TEXT, WHOLE) or slack is not None:
            return ANYTHING
        value_of = self._constants.text if type_ == TEXT else self._constants.whole
        found = {value_of(each) for each in values}
        return ANYTHING if None in found else Bound(values=frozenset(each for each in found if each is not None))


def _add(into: dict[_Key, Bound], bounds: Iterable[tuple[_Key, Bound]]) -> None:
    """Bounds that hold, too."""
    for key, bound in bounds:
        into[key] = into.get(key, ANYTHING).both(bound)


def _named(node: exp.Expr, scope: _Scope) -> _Named | None:
    """The WITH query that a source stands for; None if it is none."""
    is_name = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.db
    return scope.get(node.name.lower()) if is_name else None


def _conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that must all be true."""
    if condition is None:
        return []
    inner = condition.this if isinstance(condition, exp.Where) else condition
    return list(inner.flatten()) if isinstance(inner, exp.And) else [inner]


def _parts_of_set(query: exp.SetOperation) -> list[exp.Expr]:
    """The queries that set operations put together, in order."""
    found: list[exp.Expr] = []
    part: exp.Expr = query
    while isinstance(part, exp.SetOperation) and (part is query or not part.args.get("with_")):
        found.append(part.right)
        part = part.left
    return [part, *reversed(found)]


def _is_whole_star(projection: exp.Expr) -> bool:
    """Whether it gives on every column under its own name."""
    return isinstance(projection, exp.Star) and not any(projection.args.values())


def _stops(query: exp.Expr) -> bool:
    """Whether no filter of the result may be applied to what is read, as with a part of `_STOPS`."""
    return any(query.args.get(each) for each in _STOPS)


def _passes_on(query: exp.Select) -> bool:
    """Whether fewer rows in give fewer rows out, and the same ones: nothing counts or numbers rows before a filter."""
    if any(query.args.get(name) for name in ("limit", "offset", "qualify", "sample")):
        return False
    distinct = query.args.get("distinct")
    if distinct and distinct.args.get("on"):
        return False
    return not any(projection.find(exp.Window) for projection in query.expressions)


def _elements(of: exp.Any) -> list[exp.Expr]:
    """The elements of an array that is written, each cast as the array is; none of others."""
    array, type_ = of.this.unnest(), None
    if isinstance(array, exp.Cast):
        array, type_ = array.this.unnest(), array.to
    if not isinstance(array, exp.Array):
        return []
    if type_ is None:
        return list(array.expressions)
    if type_.this is not exp.DType.ARRAY or len(type_.expressions) != 1:
        return []
    return [exp.Cast(this=each.copy(), to=type_.expressions[0].copy()) for each in array.expressions]


def _margin(moments: Sequence[Moment], type_: pa.DataType, slack: timedelta | None) -> timedelta:
    """How far a column may be from what it, or what is made of it, is compared with. `slack`: see `_column_in`."""
    is_loose = any(each.is_loose for each in moments)
    margin = timedelta()
    if is_loose and not all(each.is_text for each in moments):
        margin += _MIXED
    if slack is None:
        return margin
    return margin + slack + (ONE_DAY if type_ == INSTANT else timedelta()) + (ONE_DAY if is_loose else timedelta())


def _column_in(of: exp.Expr) -> tuple[exp.Column | None, timedelta | None]:
    """The column that an expression is, or is cut from, and how far apart they may be; None: they are equal."""
    steps, of = list[timedelta](), of.unnest()
    while not isinstance(of, exp.Column):
        if isinstance(of, exp.AtTimeZone) or (isinstance(of, exp.Cast) and of.to.this in TIMES):
            steps.append(ONE_DAY)
        elif isinstance(of, exp.DateTrunc | exp.TimestampTrunc) and (days := _days_of(of.args.get("unit"))):
            steps.append(timedelta(days=days + 1))
        else:
            return None, None
        of = of.this.unnest()
    return of, sum(steps, timedelta()) if steps else None


def _days_of(unit: object) -> int | None:
    """How many days a unit has at most that times are cut by; None if it is not known."""
    if not isinstance(unit, exp.Var | exp.Literal):
        return None
    return _UNITS.get(unit.name.upper())
