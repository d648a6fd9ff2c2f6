"""What means something else in DuckDB than in PostgreSQL: arithmetic, casts, functions and comparisons."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

from serving_layer.sql.catalog_functions import PREFIX
from serving_layer.sql.kinds import ColumnTypes, Kind, Kinds
from serving_layer.sql.results import MOST_DIGITS, SqlStateError, bounded
from serving_layer.sql.translate import NUMERIC, NUMERIC_DECIMALS, put

Change = Callable[[], exp.Expr]
MOST_WITHIN = 100
"""How many operations that mean something else in DuckDB may be within each other."""
_WHOLE_MOST = 2**63 - 1
_NUMBERS = (Kind.WHOLE, Kind.SUM, Kind.DECIMAL)
_UNITS: Mapping[str, str] = {
    each: unit
    for unit, names in {
        "MICROSECOND": "MICROSECONDS US USEC USECS",
        "MILLISECOND": "MILLISECONDS MS MSEC MSECS",
        "SECOND": "SECONDS SEC SECS S",
        "MINUTE": "MINUTES MIN MINS M",
        "HOUR": "HOURS HR HRS H",
        "DAY": "DAYS D",
        "WEEK": "WEEKS W",
        "MONTH": "MONTHS MON MONS",
        "QUARTER": "QTR",
        "YEAR": "YEARS YR YRS Y",
        "DECADE": "DECADES DEC DECS",
    }.items()
    for each in (unit, *names.split())
}
"""What units of `date_trunc` are called. Centuries and millennia begin in other years in DuckDB."""
_REFUSED: Mapping[str, str] = {
    "printf": "Use `format('%s', ...)`, round and lpad.",
    "regexp_matches": "Use `~`, regexp_replace, regexp_extract or substring.",
}
_WITH_ERRORS: Mapping[type[exp.Expr], str] = {exp.Sqrt: "sqrt", exp.Ln: "ln"}


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
    return _change_of_call(node, kinds)


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


def _change_of_call(node: exp.Expr, kinds: Kinds) -> Change | None:  # noqa: C901, PLR0911, PLR0912 - one line a form
    """What makes another expression of one, once the ones in it are changed; None if it means the same.

    Raises:
        SqlStateError: 0A000 for what is not answered, so that it does not mean something else.
    """
    if isinstance(node, exp.Literal):
        is_large = not node.is_string and node.name.isdecimal() and bounded(node.name) > _WHOLE_MOST
        return (lambda: _large(node.name)) if is_large else None
    if isinstance(node, exp.EQ | exp.NEQ):
        rows = _row(node.this), _row(node.expression)
        return (lambda: _rows_compared(node)) if None not in rows else None
    if isinstance(node, exp.In):
        return (lambda: _row_in(node)) if _row(node.this) and node.expressions else None
    if isinstance(node, exp.Round) and not node.args.get("decimals") and kinds.of(node.this) is Kind.FLOAT:
        return lambda: _call("round_even", node.this, exp.Literal.number(0))
    if isinstance(node, exp.Extract) and str(node.this).upper() in _FRACTIONS:
        return lambda: _fraction(node)
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        return _truncated(node)
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont):
        by = node.expression.expressions[0]
        return (lambda: _of_floats(node)) if kinds.of(by.this) in _NUMBERS else None
    if isinstance(node, exp.Substring):
        is_plain = _is_at_least(1, node.args.get("start")) and _is_at_least(0, node.args.get("length"))
        return None if is_plain else lambda: _substring(node)
    if isinstance(node, exp.Concat):
        flags = [kinds.of(each) is Kind.FLAG for each in node.expressions]
        return (lambda: _concat(node, flags)) if any(flags) else None
    if isinstance(node, exp.Hex):
        return lambda: exp.Lower(this=node.copy())
    if isinstance(node, exp.ArraySize) and node.args.get("expression"):
        return lambda: _call(f"{PREFIX}array_upper", node.this, node.expression)
    if isinstance(node, exp.SplitPart) and not (node.args["delimiter"].name):
        return lambda: _call(f"{PREFIX}split_part", node.this, node.args["delimiter"], node.args["part_index"])
    if type(node) in _WITH_ERRORS:
        return lambda: _call(f"{PREFIX}{_WITH_ERRORS[type(node)]}", node.this)
    if isinstance(node, exp.Log):
        arguments = [each for each in (node.this, node.args.get("expression")) if each is not None]
        return lambda: _call(f"{PREFIX}log", *arguments)
    if isinstance(node, exp.IntDiv) and not kinds.of(node.this) is kinds.of(node.expression) is Kind.WHOLE:
        return lambda: _call("trunc", exp.Div(this=node.this.copy(), expression=node.expression.copy()))
    if isinstance(node, exp.Format):
        return lambda: _formatted(node)
    if _is_json_agg(node) or (isinstance(node, exp.Filter) and _is_json_agg(node.this)):
        return _json_agg(node)
    if isinstance(node, exp.Anonymous) and node.name.lower() in _REFUSED:
        raise SqlStateError("0A000", f"The function {node.name.lower()} is not supported.", _REFUSED[node.name.lower()])
    return None


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])


def _large(digits: str) -> exp.Expr:
    if len(digits.lstrip("0")) > MOST_DIGITS:
        raise SqlStateError("22003", f"A number has more than {MOST_DIGITS} digits.", "Write it with an exponent.")
    decimal = exp.DataType.build(f"DECIMAL({MOST_DIGITS}, 0)", dialect="duckdb")
    return exp.Cast(this=exp.Literal.string(digits), to=decimal)


def _row(node: exp.Expr) -> Sequence[exp.Expr] | None:
    node = node.unnest()
    is_row = isinstance(node, exp.Tuple) or (isinstance(node, exp.Anonymous) and node.name.lower() == "row")
    return node.expressions if is_row else None


def _equal(one: Sequence[exp.Expr], other: Sequence[exp.Expr]) -> exp.Expr:
    if len(one) != len(other):
        raise SqlStateError("42601", "Rows of different lengths cannot be compared.", None)
    pairs = (exp.EQ(this=_bracketed(a), expression=_bracketed(b)) for a, b in zip(one, other, strict=True))
    return exp.Paren(this=exp.and_(*pairs, copy=False))


def _bracketed(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy()) if isinstance(node, exp.Binary | exp.Not) else node.copy()


def _rows_compared(node: exp.EQ | exp.NEQ) -> exp.Expr:
    equal = _equal(_row(node.this) or (), _row(node.expression) or ())
    return equal if isinstance(node, exp.EQ) else exp.Paren(this=exp.Not(this=equal))


def _row_in(node: exp.In) -> exp.Expr:
    row = _row(node.this) or ()
    found = [_equal(row, _row(each) or [each]) for each in node.expressions]
    return exp.Paren(this=exp.or_(*found, copy=False))


_FRACTIONS: Mapping[str, str] = {
    **dict.fromkeys(("SECOND", "SECONDS", "SEC", "SECS", "S"), "0.000001"),
    **dict.fromkeys(("MILLISECOND", "MILLISECONDS", "MS", "MSEC", "MSECS"), "0.001"),
}
"""Units that have a fraction in PostgreSQL: how many of them a microsecond is."""


def _fraction(node: exp.Extract) -> exp.Expr:
    micros = exp.Extract(this=exp.var("MICROSECOND"), expression=node.expression.copy())
    decimal = exp.Cast(this=micros, to=exp.DataType.build("DECIMAL(12, 0)", dialect="duckdb"))
    return exp.Paren(this=exp.Mul(this=decimal, expression=exp.Literal.number(_FRACTIONS[str(node.this).upper()])))


def _truncated(node: exp.TimestampTrunc | exp.DateTrunc) -> Change | None:
    unit = node.args.get("unit")
    name = unit.name.upper() if isinstance(unit, exp.Var | exp.Literal) else ""
    if isinstance(unit, exp.WeekStart) or not name:
        return None
    if name not in _UNITS:
        hint = "Units are second, minute, hour, day, week, month, quarter, year and decade."
        raise SqlStateError("0A000", f'date_trunc to the unit "{name[:20].lower()}" is not supported.', hint)
    if name == _UNITS[name]:
        return None

    def changed() -> exp.Expr:
        found = node.copy()
        found.set("unit", exp.var(_UNITS[name]))
        return found

    return changed


def _of_floats(node: exp.WithinGroup) -> exp.Expr:
    changed = node.copy()
    by = changed.expression.expressions[0]
    by.set("this", exp.Cast(this=by.this.copy(), to=exp.DataType.build("DOUBLE", dialect="duckdb")))
    return changed


def _is_at_least(least: int, number: exp.Expr | None) -> bool:
    is_known = isinstance(number, exp.Literal) and number.name.isdecimal()
    return number is None or (is_known and bounded(number.name) >= least)


def _substring(node: exp.Substring) -> exp.Expr:
    arguments = (node.this, node.args.get("start"), node.args.get("length"))
    return _call(f"{PREFIX}substring", *(each for each in arguments if each is not None))


def _concat(node: exp.Concat, flags: Sequence[bool]) -> exp.Expr:
    changed = node.copy()
    for each, is_flag in zip(list(changed.expressions), flags, strict=True):
        if is_flag:
            text = exp.Cast(this=each.copy(), to=exp.DataType.build("VARCHAR", dialect="duckdb"))
            each.replace(exp.Left(this=text, expression=exp.Literal.number(1)))
    return changed


def _is_json_agg(node: exp.Expr) -> bool:
    is_named = isinstance(node, exp.Anonymous) and node.name.lower() in ("json_agg", "jsonb_agg")
    return isinstance(node, exp.JSONArrayAgg) or is_named


def _json_agg(node: exp.Expr) -> Change | None:
    """All values as one document, with a filter if there is one."""
    within = node.parent
    if isinstance(within, exp.Filter) and within.this is node:
        return None  # changed with it
    if isinstance(within, exp.Window) and within.this is node:
        raise SqlStateError("0A000", "json_agg with OVER is not supported.", "Use array_agg.")

    def changed() -> exp.Expr:
        of = node.this if isinstance(node, exp.Filter) else node
        listed = _call("list", of.this if isinstance(of, exp.JSONArrayAgg) else of.expressions[0])
        if isinstance(node, exp.Filter):
            listed = exp.Filter(this=listed, expression=node.expression.copy())
        return _call("to_json", listed)

    return changed


_PLACE = re.compile(r"%(?:(?P<number>[0-9]+)\$)?(?P<kind>.)", re.DOTALL)


def _formatted(node: exp.Format) -> exp.Expr:
    """The parts of a format, put together. SqlStateError 0A000 if it is no constant, 22023 if it is none."""
    if not (isinstance(node.this, exp.Literal) and node.this.is_string):
        raise SqlStateError("0A000", "The format has to be a constant.", "Write it into the statement.")
    return exp.Paren(this=_call("concat", exp.Literal.string(""), *_parts(node.this.name, node.expressions)))


def _parts(text: str, arguments: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    end, place = 0, 0
    for match in _PLACE.finditer(text):
        yield exp.Literal.string(text[end : match.start()])
        end, kind = match.end(), match["kind"]
        if kind == "%":
            yield exp.Literal.string("%")
            continue
        place = bounded(match["number"]) if match["number"] else place + 1
        if kind not in "sIL":
            raise SqlStateError("0A000", "A format has %s, %I, %L and %%, without a width.", "Use lpad or rpad.")
        if not 1 <= place <= len(arguments):
            raise SqlStateError("22023", "The format has more places than there are arguments.", None)
        argument = arguments[place - 1]
        quoted = {"I": "quote_ident", "L": "quote_nullable"}.get(kind)
        yield _call(f"{PREFIX}{quoted}", argument) if quoted else argument
    yield exp.Literal.string(text[end:])
