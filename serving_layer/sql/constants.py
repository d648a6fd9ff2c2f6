"""What constants of a query are: values that its filters compare columns with, known before any row is read."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta
from typing import NamedTuple

from sqlglot import exp

from master_dataset.registry.file_rows import plain_date
from serving_layer.sql.table import DATE

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_EVALUATED = 200
"""How many constants of a statement DuckDB evaluates, each in a call of its own."""
MOST_AT_ONCE = 20
"""How many times that are compared with one column are evaluated; of more, the dates are looked at that they show."""
TIMES = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)
_ANY_ZONE = timedelta(days=3)
"""More than a time can be from its date in UTC, whatever its time zone."""
_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+(Z|[+-][0-9:]+)?)?")
_WHOLE_NUMBER = re.compile(r"[ \t\n\r\f\v]*([+-]?[0-9]{1,18})[ \t\n\r\f\v]*")
_NEVER_CONSTANT = (
    exp.AggFunc,
    exp.Column,
    exp.Explode,
    exp.ExplodingGenerateSeries,
    exp.Parameter,
    exp.Placeholder,
    exp.Query,
    exp.Rand,
    exp.Randn,
    exp.Star,
    exp.UDTF,
    exp.Uuid,
    exp.Window,
)
_RANDOM = frozenset({"gen_random_uuid", "random", "setseed", "uuid", "uuidv4", "uuidv7"})
_VOLATILE = _RANDOM | {"unnest"}
"""Names of functions that give another value, or several, for each row."""


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


class Moment(NamedTuple):
    """A constant that a date or an instant is compared with.

    Attributes:
        at: its value under the type of the column; None: it is not known.
        is_text: whether it is a text, which takes its type from what it is compared with.
        is_loose: whether it is a text other than a plain date, so that its day depends on the type that it takes.
    """

    at: date | datetime | None
    is_text: bool = False
    is_loose: bool = False


def is_constant(expression: exp.Expr) -> bool:
    """Whether the value of an expression is the same for every row, and can be known before any is read."""
    return not any(
        isinstance(node, _NEVER_CONSTANT) or (isinstance(node, exp.Anonymous) and node.name.lower() in _VOLATILE)
        for node in expression.walk()
    )


def is_volatile(query: exp.Expr) -> bool:
    """Whether an equal query over equal rows can have another result."""
    return any(
        isinstance(node, exp.Rand | exp.Randn | exp.Uuid)
        or (isinstance(node, exp.Anonymous) and node.name.lower() in _RANDOM)
        for node in query.walk()
    )


@dataclass
class Constants:
    """Finds the values of the constants of one query. Most are literals, for which DuckDB is not asked."""

    evaluate: Evaluate
    _known: dict[exp.Expr, Constant] = field(default_factory=dict)

    def text(self, of: exp.Expr) -> str | None:
        """The value of a text; None for everything else."""
        written = _literal_text(of)
        if written is not None or isinstance(of.unnest(), exp.Literal):
            return written
        kind = exp.EQ(
            this=exp.Anonymous(this="typeof", expressions=[of.copy()]), expression=exp.Literal.string("VARCHAR")
        )
        return self._evaluated(exp.Case(ifs=[exp.If(this=kind, true=of.copy())])).text

    def whole(self, of: exp.Expr) -> str | None:
        """The digits of a whole number, or of a text of one; None for everything else."""
        inner = of.unnest()
        written = inner.name if isinstance(inner, exp.Literal) else _literal_text(of)
        if written is None:
            written = self._evaluated(of).text
        number = None if written is None else _WHOLE_NUMBER.fullmatch(written)
        return str(int(number[1])) if number else None

    def moments(self, values: Sequence[exp.Expr], kind: object) -> list[Moment]:
        """Values that a column of dates or instants is compared with; of very many, moments around them all."""
        unread = [each for each in values if _day(each, kind) is None]
        if len(unread) <= MOST_AT_ONCE:
            return [self.moment(each, kind) for each in values]
        days = [day for each in unread if (day := _written_day(each)) is not None]
        if len(days) < len(unread) or min(days).year == MINYEAR or max(days).year == MAXYEAR:
            return [Moment(None)]
        skipped = {id(each) for each in unread}
        others = [self.moment(each, kind) for each in values if id(each) not in skipped]
        ends = min(days) - _ANY_ZONE, max(days) + _ANY_ZONE
        return [*(Moment(end if kind == DATE else datetime.combine(end, time(), UTC)) for end in ends), *others]

    def moment(self, of: exp.Expr, kind: object) -> Moment:
        """A value that a column of dates or instants is compared with."""
        day = _day(of, kind)
        return self._moment(of, kind) if day is None else Moment(day, is_text=_literal_text(of) is not None)

    def _moment(self, of: exp.Expr, kind: object) -> Moment:
        found = self._evaluated(of)
        at = found.day if kind == DATE else found.instant
        return Moment(at, found.text is not None, found.text is not None and not _is_plain(of))

    def _evaluated(self, of: exp.Expr) -> Constant:
        known = self._known.get(of)
        if known is None:
            if len(self._known) == MOST_EVALUATED:
                return Constant()
            known = self._known[of] = self.evaluate(of)
        return known


def _literal_text(of: exp.Expr) -> str | None:
    """The text that is written, also where it is cast to a text; None for everything else."""
    of = of.unnest()
    while isinstance(of, exp.Cast) and of.to.this in (exp.DType.TEXT, exp.DType.VARCHAR) and not of.to.expressions:
        of = of.this.unnest()
    return of.name if isinstance(of, exp.Literal) and of.is_string else None


def _is_plain(of: exp.Expr) -> bool:
    text = _literal_text(of)
    return text is not None and _plain_day(text) is not None


def _day(of: exp.Expr, kind: object) -> date | None:
    """The date that is written, if it is compared with one; None for everything that DuckDB has to read."""
    if kind != DATE:
        return None
    of = of.unnest()
    if isinstance(of, exp.Cast) and of.to.this is exp.DType.DATE:
        of = of.this.unnest()
    text = _literal_text(of)
    return None if text is None else _plain_day(text)


def _written_day(of: exp.Expr) -> date | None:
    """The date that a text of a time begins with, also where it is cast to a time; None for everything else."""
    of = of.unnest()
    if isinstance(of, exp.Cast) and of.to.this in TIMES:
        of = of.this.unnest()
    text = _literal_text(of)
    return _plain_day(text[:10]) if text is not None and _TIME.fullmatch(text) else None


def _plain_day(text: str) -> date | None:
    try:
        return plain_date(text)
    except ValueError:
        return None
