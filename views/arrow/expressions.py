"""The Spark SQL of views, evaluated by Arrow.

    text -> sqlglot's tree -> functions of columns -> one column

A small, closed subset: what views need of whole numbers, texts, booleans, instants, structs and arrays. Everything
outside it is refused by name before a row is read, and never evaluated in another way. Numbers are 64-bit whole
numbers, and an overflow is an error, as in Spark's ANSI mode. A law compares every registered expression with Spark
(`tests/integration/test_small_rebuilds.py`).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from master_dataset.errors import DefinitionError

Values: TypeAlias = Any
"""A `pa.Array` with a value for each row, or a `pa.Scalar` with one for all; pyarrow ships no types."""
SEED = 42
"""Spark's seed of `xxhash64`."""
_INSTANT = pa.timestamp("us", tz="UTC")
_TRUE, _FALSE = pa.scalar(True), pa.scalar(False)  # noqa: FBT003 - SQL's literals


class Rows:
    """Columns of one length, by name. What was evaluated once over them is remembered."""

    def __init__(self, columns: Mapping[str, Callable[[], pa.Array]], number: int) -> None:
        """`columns`: each is called at most once, when it is first needed. `number`: of rows."""
        self._columns, self.number = columns, number
        self._read: dict[str, pa.Array] = {}
        self._known: dict[exp.Expr, Values] = {}

    @classmethod
    def of(cls, table: pa.Table) -> "Rows":
        """The rows of a table."""
        return cls({name: _reader(table, name) for name in table.column_names}, table.num_rows)

    @property
    def names(self) -> Iterable[str]:
        """The names of the columns."""
        return self._columns.keys()

    def column(self, name: str) -> pa.Array:
        """A column. DefinitionError if there is none."""
        if name not in self._read:
            if name not in self._columns:
                raise DefinitionError(f"there is no column `{name}`", do="Correct the view.")
            self._read[name] = self._columns[name]()
        return self._read[name]

    def known(self, node: exp.Expr, evaluate: "Callable[[Rows], Values]") -> Values:
        """The value of an expression over these rows. Equal nodes have the same structure, names and texts."""
        if node not in self._known:
            self._known[node] = evaluate(self)
        return self._known[node]

    def where(self, mask: pa.Array) -> "Rows":
        """The rows where the mask is true."""
        return Rows({name: self._filtered(name, mask) for name in self._columns}, pc.sum(mask).as_py() or 0)

    def _filtered(self, name: str, mask: pa.Array) -> Callable[[], pa.Array]:
        return lambda: self.column(name).filter(mask)

    def elements(self, name: str, lists: pa.ListArray) -> "Elements":
        """A row for each element of a list per row; null lists have none. The element is the column `name`."""
        return Elements(self, name, lists)


class Elements(Rows):
    """The elements of a list per row, each with the columns of its row."""

    def __init__(self, rows: Rows, name: str, lists: pa.ListArray) -> None:
        """See `Rows.elements`."""
        self.parents = parents = _parents(lists)
        own = {each: _taken(rows, each, parents) for each in rows.names}
        super().__init__(own | {name: lambda: pc.list_flatten(lists)}, len(self.parents))


def _taken(rows: Rows, name: str, parents: pa.Array) -> Callable[[], pa.Array]:
    """Refers to nothing that refers to it: the memory of columns is freed with the last reference, not by `gc`."""
    return lambda: rows.column(name).take(parents)


def _reader(table: pa.Table, name: str) -> Callable[[], pa.Array]:
    read: Callable[[], pa.Array] = table[name].combine_chunks
    return read


def evaluate(expression: str, rows: Rows) -> pa.Array:
    """The value of a Spark SQL expression for each row. DefinitionError if it is outside the subset."""
    try:
        return _column(compiled(expression)(rows), rows.number)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        message = f"`{expression}` cannot be evaluated: {str(error).partition(chr(10))[0]}"
        raise DefinitionError(message, do="Correct the view.") from error


def is_true(condition: str, rows: Rows) -> pa.Array:
    """Where a condition holds; where it is null it does not."""
    return pc.fill_null(evaluate(condition, rows), _FALSE)


def _column(values: Values, number: int) -> pa.Array:
    if isinstance(values, pa.Scalar):
        return pa.nulls(number, values.type) if not values.is_valid else pa.repeat(values, number)
    return values


Evaluated = Callable[[Rows], Values]


@cache
def compiled(expression: str) -> Evaluated:
    """The function of an expression. DefinitionError if it cannot be parsed or is outside the subset."""
    try:
        tree = parse_one(expression, dialect="spark")
        return _compile(tree)
    except SqlglotError as error:
        message = f"`{expression}` cannot be read as Spark SQL: {str(error).partition(chr(10))[0]}"
        raise DefinitionError(message, do="Correct the view.") from error


def _refused(what: str, node: exp.Expr) -> DefinitionError:
    message = f"`{node.sql(dialect='spark')}`: views cannot use {what}"
    return DefinitionError(message, do="Use what docs/explanation/architecture.md lists.")


def _compile(node: exp.Expr) -> Evaluated:
    make = _COMPILERS.get(type(node))
    if make is None:
        raise _refused(f"`{node.key}`", node)
    said = {name for name, value in node.args.items() if value not in (None, False, [])}
    if unknown := said - _SAID - _SAID_OF.get(type(node), frozenset()):  # such as the offset of `element_at`
        raise _refused(f"`{node.key}` with {' and '.join(sorted(unknown))}", node)
    evaluate_node = make(node)
    return lambda rows: rows.known(node, evaluate_node)


# Columns, fields, literals ------------------------------------------------------------------------------------------


def _of_column(node: exp.Column) -> Evaluated:
    first, *fields = (part.name for part in node.parts)
    return lambda rows: reduce(_field, fields, rows.column(first))


def _of_identifier(node: exp.Identifier) -> Evaluated:
    name = node.name
    return lambda rows: rows.column(name)


def _of_dot(node: exp.Dot) -> Evaluated:
    of, name = _compile(node.this), node.expression.name
    return lambda rows: _field(of(rows), name)


def _field(values: Values, name: str) -> Values:
    """A field of a struct, or of each struct of a list."""
    if pa.types.is_list(values.type):
        return _listed(pc.struct_field(pc.list_flatten(values), name), values)
    return pc.struct_field(values, name)


def _of_literal(node: exp.Literal) -> Evaluated:
    if node.is_string:
        text = pa.scalar(node.this)
        return lambda _: text
    if not node.this.isdecimal():
        raise _refused("numbers that are not whole", node)
    number = pa.scalar(int(node.this), pa.int64())
    return lambda _: number


def _of_boolean(node: exp.Boolean) -> Evaluated:
    value = _TRUE if node.this else _FALSE
    return lambda _: value


def _of_null(_: exp.Null) -> Evaluated:
    nothing = pa.scalar(None)
    return lambda _: nothing


def _of_cast(node: exp.Expr) -> Evaluated:
    of, kind = _compile(node.this), node.args["to"].sql(dialect="spark")
    if kind not in _CASTS:
        raise _refused(f"`{kind}`", node)
    to, accepted = _CASTS[kind]

    def evaluated(rows: Rows) -> Values:
        values = of(rows)
        if not any(accepts(values.type) for accepts in (*accepted, pa.types.is_null)):
            raise _refused(f"a cast of {values.type}", node)
        return values.cast(to)

    return evaluated


_CASTS = {
    "BIGINT": (pa.int64(), (pa.types.is_int64,)),
    "STRING": (pa.string(), (pa.types.is_string, pa.types.is_int64, pa.types.is_boolean)),
}


# Conditions ---------------------------------------------------------------------------------------------------------


def _binary(function: Callable[[Values, Values], Values]) -> Callable[[exp.Expr], Evaluated]:
    def make(node: exp.Expr) -> Evaluated:
        left, right = _compile(node.this), _compile(node.expression)
        return lambda rows: function(left(rows), right(rows))

    return make


def _unary(function: Callable[[Values], Values]) -> Callable[[exp.Expr], Evaluated]:
    def make(node: exp.Expr) -> Evaluated:
        of = _compile(node.this)
        return lambda rows: function(of(rows))

    return make


def _of_paren(node: exp.Paren) -> Evaluated:
    return _compile(node.this)


def _of_is(node: exp.Is) -> Evaluated:
    if not isinstance(node.expression, exp.Null):
        raise _refused("`is` but for `is null`", node)
    of = _compile(node.this)
    return lambda rows: pc.is_null(of(rows))


def _of_between(node: exp.Between) -> Evaluated:
    of, low, high = (_compile(node.args[name]) for name in ("this", "low", "high"))

    def evaluated(rows: Rows) -> Values:
        values = of(rows)
        return pc.and_kleene(pc.greater_equal(values, low(rows)), pc.less_equal(values, high(rows)))

    return evaluated


def _of_in(node: exp.In) -> Evaluated:
    of, these = _compile(node.this), [_compile(each) for each in node.expressions]
    if not these:
        raise _refused("`in` without a list", node)
    return lambda rows: reduce(pc.or_kleene, (pc.equal(of(rows), one(rows)) for one in these))


def _of_if(node: exp.If) -> Evaluated:
    return _choice(node.this, node.args["true"], node.args.get("false") or exp.Null())


def _of_case(node: exp.Case) -> Evaluated:
    rest = node.args.get("default") or exp.Null()
    for one in reversed(node.args["ifs"]):
        condition = exp.EQ(this=exp.paren(node.this), expression=exp.paren(one.this)) if node.this else one.this.copy()
        rest = exp.If(this=condition, true=one.args["true"].copy(), false=rest.copy())
    return _compile(rest)


_OVER_FEW = (
    *(exp.Transform, exp.ArrayFilter, exp.GenerateSeries, exp.Array, exp.Bracket, exp.Case, exp.Anonymous),
    *(exp.Add, exp.Sub, exp.Mul, exp.Neg),
)
"""What is evaluated only for the rows that need it: it is slow, or an error elsewhere, such as a series backwards."""


def _choice(condition: exp.Expr, yes: exp.Expr, no: exp.Expr) -> Evaluated:
    holds, chosen, other = _compile(condition), _compile(yes), _compile(no)
    if not any(each.find(*_OVER_FEW) for each in (yes, no)):
        return lambda rows: _chosen(pc.fill_null(holds(rows), _FALSE), chosen(rows), other(rows))
    return _either(lambda rows: pc.fill_null(holds(rows), _FALSE), chosen, other)


def _either(holds: Evaluated, chosen: Evaluated, other: Evaluated) -> Evaluated:
    """Each over the rows that need it alone. `holds` is never null."""

    def evaluated(rows: Rows) -> Values:
        mask = _column(holds(rows), rows.number)
        true = pc.sum(mask).as_py() or 0
        if rows.number and true in (0, rows.number):
            only = _column((chosen if true else other)(rows), rows.number)
            if not pa.types.is_null(only.type):  # else the other branch says of which type the nulls are
                return only
        parts = [
            _column(of(own), own.number)
            for of, own in ((chosen, rows.where(mask)), (other, rows.where(pc.invert(mask))))
        ]
        kind = next((part.type for part in parts if not pa.types.is_null(part.type)), pa.null())
        is_chosen = mask.to_numpy(zero_copy_only=False)
        places = np.empty(rows.number, np.int64)
        places[is_chosen], places[~is_chosen] = np.arange(true), np.arange(true, rows.number)
        return pa.concat_arrays([part.cast(kind) for part in parts]).take(pa.array(places))

    return evaluated


def _chosen(mask: Values, yes: Values, no: Values) -> Values:
    if pa.types.is_null(yes.type) and not pa.types.is_null(no.type):
        yes = pa.scalar(None, no.type)
    if pa.types.is_null(no.type) and not pa.types.is_null(yes.type):
        no = pa.scalar(None, yes.type)
    return pc.if_else(mask, yes, no)


def _of_and(node: exp.And) -> Evaluated:
    left, right = _compile(node.this), _compile(node.expression)
    if not node.expression.find(*_OVER_FEW):
        return lambda rows: pc.and_kleene(left(rows), right(rows))
    decided = _decided(left, when=_FALSE)
    return _either(decided, left, lambda rows: pc.and_kleene(left(rows), right(rows)))


def _of_or(node: exp.Or) -> Evaluated:
    left, right = _compile(node.this), _compile(node.expression)
    if not node.expression.find(*_OVER_FEW):
        return lambda rows: pc.or_kleene(left(rows), right(rows))
    decided = _decided(left, when=_TRUE)
    return _either(decided, left, lambda rows: pc.or_kleene(left(rows), right(rows)))


def _decided(left: Evaluated, *, when: pa.Scalar) -> Evaluated:
    """Where the left operand has this value, so that the right one does not matter."""
    return lambda rows: pc.fill_null(pc.equal(left(rows), when), _FALSE)


def _of_coalesce(node: exp.Coalesce) -> Evaluated:
    these = [_compile(each) for each in (node.this, *node.expressions)]
    if any(each.find(*_OVER_FEW) for each in node.expressions):
        return reduce(_first_valid, reversed(these))

    def evaluated(rows: Rows) -> Values:
        values = [one(rows) for one in these]
        kind = next((each.type for each in values if not pa.types.is_null(each.type)), pa.null())
        return pc.coalesce(*(each.cast(kind) if pa.types.is_null(each.type) else each for each in values))

    return evaluated


def _first_valid(rest: Evaluated, first: Evaluated) -> Evaluated:
    return _either(lambda rows: pc.is_valid(first(rows)), first, rest)


# Numbers and instants -----------------------------------------------------------------------------------------------


def _divisor(node: exp.Expr, of: exp.Expr) -> int:
    """A whole number above zero: nothing else is divided by, so that no row can fail."""
    while isinstance(of, exp.Paren | exp.Cast | exp.TryCast):
        of = of.this
    if not isinstance(of, exp.Literal) or of.is_string or not of.this.isdecimal() or not int(of.this):
        raise _refused("a division by anything but a whole number above zero", node)
    return int(of.this)


def _remainder(values: Values, by: int) -> Values:
    """Of a division towards zero: it has the sign of the dividend."""
    return pc.subtract(values, pc.multiply(pc.divide(values, by), by))


def _floor_remainder(values: Values, by: int) -> Values:
    left = _remainder(values, by)
    return pc.if_else(pc.less(left, 0), pc.add(left, by), left)


def _floor_divided(values: Values, by: int) -> Values:
    return pc.divide(pc.subtract_checked(values, _floor_remainder(values, by)), by)


def _divided(function: Callable[[Values, int], Values]) -> Callable[[exp.Expr], Evaluated]:
    def make(node: exp.Expr) -> Evaluated:
        dividend, divisor = node.expressions if isinstance(node, exp.Anonymous) else (node.this, node.expression)
        of, by = _compile(dividend), _divisor(node, divisor)
        return lambda rows: function(of(rows), by)

    return make


def _of_extreme(function: Callable[..., Values]) -> Callable[[exp.Expr], Evaluated]:
    def make(node: exp.Expr) -> Evaluated:
        these = [_compile(each) for each in (node.this, *node.expressions)]
        return lambda rows: function(*(one(rows) for one in these), skip_nulls=True)

    return make


def _since_1970(unit: int) -> Callable[[Values], Values]:
    """A field of an instant, in units of that many microseconds."""
    return lambda values: _floor_divided(values.cast(pa.int64()), unit) if unit > 1 else values.cast(pa.int64())


def _instant(unit: int) -> Callable[[Values], Values]:
    return lambda values: pc.multiply_checked(values, unit).cast(_INSTANT)


def _hashed(values: Values) -> Values:
    texts = _column(values, 1) if isinstance(values, pa.Scalar) else values
    if not pa.types.is_string(texts.type):
        raise DefinitionError("`xxhash64` is only of a text", do="Correct the view.")
    encoded = texts.dictionary_encode()
    hashes = [_signed(xxhash.xxh64_intdigest(text.encode(), SEED)) for text in encoded.dictionary.to_pylist()]
    seeds = pa.array([SEED])  # of a null: nothing was mixed into the seed
    found = pc.fill_null(pa.array(hashes, pa.int64()).take(encoded.indices), seeds[0])
    return found[0] if isinstance(values, pa.Scalar) else found


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


_FUNCTIONS: Mapping[str, Callable[[exp.Expr], Evaluated]] = {
    "pmod": _divided(_floor_remainder),
    "timestamp_micros": lambda node: _call(node, _instant(1)),
    "timestamp_millis": lambda node: _call(node, _instant(1000)),
    "xxhash64": lambda node: _call(node, _hashed),
}


def _call(node: exp.Expr, function: Callable[[Values], Values]) -> Evaluated:
    if len(node.expressions) != 1:
        raise _refused(f"`{node.name}` of several values", node)
    of = _compile(node.expressions[0])
    return lambda rows: function(of(rows))


def _of_function(node: exp.Anonymous) -> Evaluated:
    make = _FUNCTIONS.get(node.name.lower())
    if make is None:
        raise _refused(f"`{node.name}`", node)
    return make(node)


# Structs and arrays -------------------------------------------------------------------------------------------------


def _listed(elements: pa.Array, like: pa.ListArray) -> pa.ListArray:
    """Lists of other elements, with the lengths and nulls of `like`."""
    return _lists(elements, pc.fill_null(pc.list_value_length(like), 0).to_numpy(), pc.is_null(like))


def _parents(lists: pa.ListArray) -> pa.Array:
    """The row of each element. Arrow's own function also counts what may lie below a null list."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    return pa.array(np.repeat(np.arange(len(lists)), lengths), pa.int64())


def _lists(elements: pa.Array, lengths: "np.ndarray[Any, Any]", is_null: pa.Array | None = None) -> pa.ListArray:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), elements, mask=is_null)


def _lambda(node: exp.Expr) -> tuple[str, Evaluated]:
    function = node.expression
    if not isinstance(function, exp.Lambda) or len(function.expressions) != 1:
        raise _refused("a function of elements that is not like `x -> ...`", node)
    return function.expressions[0].name, _compile(function.this)


def _of_transform(node: exp.Transform) -> Evaluated:
    of, (name, body) = _compile(node.this), _lambda(node)

    def evaluated(rows: Rows) -> Values:
        lists = _column(of(rows), rows.number)
        elements = rows.elements(name, lists)
        return _listed(_column(body(elements), elements.number), lists)

    return evaluated


def _of_filter(node: exp.ArrayFilter) -> Evaluated:
    of, (name, body) = _compile(node.this), _lambda(node)

    def evaluated(rows: Rows) -> Values:
        lists = _column(of(rows), rows.number)
        elements = rows.elements(name, lists)
        kept = _column(pc.fill_null(body(elements), _FALSE), elements.number)
        lengths = np.bincount(elements.parents.filter(kept).to_numpy(), minlength=rows.number)
        return _lists(elements.column(name).filter(kept), lengths, pc.is_null(lists))

    return evaluated


def _of_array(node: exp.Array) -> Evaluated:
    these = [_compile(each) for each in node.expressions]
    if not these:
        raise _refused("an empty array", node)

    def evaluated(rows: Rows) -> Values:
        columns = [_column(one(rows), rows.number) for one in these]
        together = pa.concat_arrays(columns)
        order = np.arange(len(together)).reshape(len(columns), rows.number).T.ravel()
        return _lists(together.take(pa.array(order)), np.full(rows.number, len(columns)))

    return evaluated


def _of_struct(node: exp.Struct) -> Evaluated:
    if not all(isinstance(each, exp.PropertyEQ) for each in node.expressions):
        raise _refused("a struct without names", node)
    fields = {each.this.name: _compile(each.expression) for each in node.expressions}

    def evaluated(rows: Rows) -> Values:
        columns = [_column(one(rows), rows.number) for one in fields.values()]
        return pa.StructArray.from_arrays(columns, names=list(fields))

    return evaluated


def _of_element(node: exp.Bracket) -> Evaluated:
    of = _compile(node.this)
    [place] = node.expressions
    if not isinstance(place, exp.Literal) or place.is_string:
        raise _refused("an element by anything but its number", node)
    at, text = int(place.this), node.sql(dialect="spark")

    def evaluated(rows: Rows) -> Values:
        lists = _column(of(rows), rows.number)
        is_null = pc.is_null(lists).to_numpy(zero_copy_only=False)
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        if (lengths <= at)[~is_null].any():
            raise DefinitionError(
                f"`{text}` reads beyond the end of an array", do="Use it where the array is long enough."
            )
        starts = np.cumsum(lengths) - lengths
        places = pa.array(starts + at, pa.int64(), mask=is_null)
        return pc.list_flatten(lists).take(places)

    return evaluated


def _of_size(node: exp.ArraySize) -> Evaluated:
    of = _compile(node.this)
    return lambda rows: pc.list_value_length(of(rows)).cast(pa.int64())


def _of_contains(node: exp.ArrayContains) -> Evaluated:
    of, wanted = _compile(node.this), _compile(node.expression)

    def evaluated(rows: Rows) -> Values:
        lists, value = _column(of(rows), rows.number), wanted(rows)
        if not isinstance(value, pa.Scalar):
            raise _refused("`array_contains` of anything but a literal", node)
        parents, equal = _parents(lists), pc.equal(pc.list_flatten(lists), value)
        found = np.bincount(parents.filter(equal).to_numpy(), minlength=rows.number) > 0
        unsure = np.bincount(parents.filter(pc.is_null(equal)).to_numpy(), minlength=rows.number) > 0
        unknown = unsure & ~found | pc.is_null(lists).to_numpy(zero_copy_only=False)
        return pa.array(found, mask=unknown)

    return evaluated


def _of_sorted(node: exp.ArraySort) -> Evaluated:
    if not node.args["nulls_first"].this:
        raise _refused("`array_sort`", node)
    of = _compile(node.this)

    def evaluated(rows: Rows) -> Values:
        lists = _column(of(rows), rows.number)
        elements = pc.list_flatten(lists)
        keys = {"parent": _parents(lists), "is_valid": pc.is_valid(elements), "element": elements}
        order = pc.sort_indices(pa.table(keys), [(key, "ascending") for key in keys])  # nulls first
        return _listed(elements.take(order), lists)

    return evaluated


def _of_series(node: exp.GenerateSeries) -> Evaluated:
    start, end = _compile(node.args["start"]), _compile(node.args["end"])

    def evaluated(rows: Rows) -> Values:
        first, last = (_column(of(rows), rows.number) for of in (start, end))
        is_null = pc.or_(pc.is_null(first), pc.is_null(last))
        begins, ends = (pc.fill_null(each, 0).to_numpy() for each in (first, last))
        if (begins > ends)[~is_null.to_numpy(zero_copy_only=False)].any():
            raise DefinitionError(
                f"`{node.sql(dialect='spark')}` goes backwards", do="Use it where the first number is not the greater."
            )
        lengths = np.where(is_null.to_numpy(zero_copy_only=False), 0, ends - begins + 1)
        before = np.cumsum(lengths) - lengths
        numbers = np.arange(lengths.sum()) - np.repeat(before, lengths) + np.repeat(begins, lengths)
        return _lists(pa.array(numbers, pa.int64()), lengths, is_null)

    return evaluated


_SAID = frozenset({"this", "expression", "expressions"})
"""What sqlglot says of a node that every compiler here reads."""
_SAID_OF: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset({"table", "db", "catalog"}),  # a field of a struct is written like a column of a table
    exp.Identifier: frozenset({"quoted"}),
    exp.Literal: frozenset({"is_string"}),
    exp.Cast: frozenset({"to"}),
    exp.TryCast: frozenset({"to"}),
    exp.Between: frozenset({"low", "high"}),
    exp.If: frozenset({"true", "false"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.Least: frozenset({"ignore_nulls"}),
    exp.Greatest: frozenset({"ignore_nulls"}),
    exp.GenerateSeries: frozenset({"start", "end"}),
    exp.ArraySort: frozenset({"nulls_first"}),
}
"""What else the compiler of a node reads."""
_COMPILERS: Mapping[type[exp.Expr], Callable[[Any], Evaluated]] = {
    exp.Column: _of_column,
    exp.Identifier: _of_identifier,
    exp.Dot: _of_dot,
    exp.Literal: _of_literal,
    exp.Boolean: _of_boolean,
    exp.Null: _of_null,
    exp.Cast: _of_cast,
    exp.TryCast: _of_cast,
    exp.Paren: _of_paren,
    exp.Not: _unary(pc.invert),
    exp.And: _of_and,
    exp.Or: _of_or,
    exp.EQ: _binary(pc.equal),
    exp.NEQ: _binary(pc.not_equal),
    exp.LT: _binary(pc.less),
    exp.LTE: _binary(pc.less_equal),
    exp.GT: _binary(pc.greater),
    exp.GTE: _binary(pc.greater_equal),
    exp.Is: _of_is,
    exp.Between: _of_between,
    exp.In: _of_in,
    exp.If: _of_if,
    exp.Case: _of_case,
    exp.Coalesce: _of_coalesce,
    exp.Add: _binary(pc.add_checked),
    exp.Sub: _binary(pc.subtract_checked),
    exp.Mul: _binary(pc.multiply_checked),
    exp.Neg: _unary(pc.negate_checked),
    exp.IntDiv: _divided(pc.divide),
    exp.Mod: _divided(_remainder),
    exp.Least: _of_extreme(pc.min_element_wise),
    exp.Greatest: _of_extreme(pc.max_element_wise),
    exp.UnixSeconds: _unary(_since_1970(1_000_000)),
    exp.UnixMillis: _unary(_since_1970(1000)),
    exp.UnixMicros: _unary(_since_1970(1)),
    exp.Anonymous: _of_function,
    exp.Transform: _of_transform,
    exp.ArrayFilter: _of_filter,
    exp.Array: _of_array,
    exp.Struct: _of_struct,
    exp.Bracket: _of_element,
    exp.ArraySize: _of_size,
    exp.ArrayContains: _of_contains,
    exp.ArraySort: _of_sorted,
    exp.GenerateSeries: _of_series,
}
