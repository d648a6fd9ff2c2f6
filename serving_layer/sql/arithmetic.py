"""Arithmetic that means something else in DuckDB than in PostgreSQL, by the kinds of what it is of."""

from sqlglot import exp

from serving_layer.sql.calls import Change, change_of_call
from serving_layer.sql.catalog_functions import PREFIX
from serving_layer.sql.kinds import ColumnTypes, Kind, Kinds
from serving_layer.sql.results import MOST_DIGITS, SqlStateError
from serving_layer.sql.translate import NUMERIC, NUMERIC_DECIMALS, put

MOST_WITHIN = 100
"""How many operations that mean something else in DuckDB may be within each other."""


def as_in_postgresql(query: exp.Query, columns: ColumnTypes) -> exp.Query:
    """The query with arithmetic that DuckDB does as PostgreSQL. The query itself is changed.

    Raises:
        SqlStateError: 54001 if too many operations that are changed are within each other: each one copies its inner.
    """
    kinds, changes, within = Kinds(columns), list[tuple[exp.Expr, Change]](), dict[int, int]()
    for node in query.walk():
        change = _change(node, kinds)
        within[id(node)] = within.get(id(node.parent), 0) + (change is not None)
        if change is not None:
            changes.append((node, change))
        if within[id(node)] > MOST_WITHIN:
            message = f"More than {MOST_WITHIN} operations or casts are within each other."
            raise SqlStateError("54001", message, "Use a simpler statement.")
    for node, change in reversed(changes):
        put(change(), node)
    return query


def _change(node: exp.Expr, kinds: Kinds) -> Change | None:
    """What makes another expression of one, once the ones in it are changed; None if it means the same."""
    if isinstance(node, exp.Div) and Kind.SUM in (kinds.of(node.this), kinds.of(node.expression)):
        return lambda: exp.Div(this=_decimal(node.this), expression=node.expression.copy())
    if isinstance(node, exp.Sub):
        found = kinds.of(node.this), kinds.of(node.expression)
        if Kind.INSTANT in found and Kind.INTERVAL not in found:
            arguments = [node.this, node.expression]
            return lambda: exp.Anonymous(this=f"{PREFIX}elapsed", expressions=[each.copy() for each in arguments])
    if type(node) is exp.Cast and (cast := _cast(node, kinds.of(node.this))) is not None:
        return cast
    return change_of_call(node, kinds)


def _cast(node: exp.Cast, of: Kind | None) -> Change | None:
    to = node.to
    if to.this in _TEXTS and (to.expressions or to.this is exp.DType.CHAR):
        return lambda: _cut(node, of)
    if to.this in _TEXTS and of in _TEXT_MACROS:
        return lambda: _text(node.this, of)
    if to.this is exp.DType.DECIMAL and not to.expressions:
        return lambda: _numeric(node.this, of)
    return None


_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR, exp.DType.NCHAR, exp.DType.BPCHAR)
_TEXT_MACROS = {Kind.FLOAT: f"{PREFIX}float_text", Kind.ARRAY: f"{PREFIX}array_text"}


def _text(value: exp.Expr, of: Kind | None) -> exp.Expr:
    macro = _TEXT_MACROS.get(of) if of is not None else None
    if macro is not None:
        return exp.Anonymous(this=macro, expressions=[value.copy()])
    return _to(value, "VARCHAR")


def _cut(node: exp.Cast, of: Kind | None) -> exp.Expr:
    """A text of so many characters at most; blanks at the end do not count in `char`."""
    length = node.to.expressions[0].this.copy() if node.to.expressions else exp.Literal.number(1)
    cut = exp.Left(this=_text(node.this, of), expression=length)
    return exp.Anonymous(this="rtrim", expressions=[cut]) if node.to.this is exp.DType.CHAR else cut


def _numeric(value: exp.Expr, of: Kind | None) -> exp.Expr:
    """A decimal without a limit of its digits, as far as there are such."""
    if of is Kind.DECIMAL:
        return exp.Paren(this=value.copy())
    if of in (Kind.WHOLE, Kind.SUM):
        return _to(value, f"DECIMAL({MOST_DIGITS - NUMERIC_DECIMALS}, 0)")  # leaves room for fractions beside it
    shortest = _to(value, "VARCHAR") if of is Kind.FLOAT else value
    return _to(shortest, NUMERIC)


def _to(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=value.copy(), to=exp.DataType.build(kind, dialect="duckdb"))


def _decimal(number: exp.Expr) -> exp.Expr:
    """A whole number as a decimal; decimals and floating-point numbers stay as they are."""
    zero = _to(exp.Literal.number(0), f"DECIMAL({MOST_DIGITS}, 0)")
    return exp.Paren(this=exp.Add(this=number.copy(), expression=zero))
