"""Numbers as text for people: a figure with its unit, a change, an age. `static/live.js` writes the same numbers."""

from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from msgspec import UNSET

from master_dataset.registry.stores import currency
from serving_layer.pages import language
from serving_layer.pages.language import MINUS, UNKNOWN
from serving_layer.pages.language import gettext as _
from serving_layer.responses.encoding import Number
from serving_layer.responses.metrics import Point, Value

SIGNS = {"up": "+", "down": MINUS, "level": "\N{PLUS-MINUS SIGN}"}
SUFFIXES = {"percent": "%", "celsius": "°C", "mm": "mm", "hours": "h"}
MINUTE, HOUR, DAY = 60, 3600, 86_400
HALF_A_SECOND_MS = 500
TINY_BASE_PERCENT = 1000
"""From this change on, the number before says more than the change. As in `static/live.js`."""
LEVEL_BELOW = 0.05
"""A change below this is written as zero. As in `static/live.js`."""


class Figure(NamedTuple):
    """`before`: what precedes the number: a currency symbol, after a minus sign if it has one. `unit`: what follows."""

    before: str
    number: str
    unit: str

    def __str__(self) -> str:
        """All parts, as a line of text has them."""
        return f"{self.before}{self.number}{' ' if self.unit else ''}{self.unit}"


def figure(value: Value, unit: str, code: str = "EUR") -> Figure:
    """A value in its unit. `code`: the currency, if the unit is money. None is shown as a dash."""
    if not isinstance(value, Number):
        return Figure("", UNKNOWN, "")
    if unit == "money":
        return money(value, code, currency(code).digits)
    if unit == "ms":
        return Figure("", duration(value), "")
    digits = 0 if unit == "n" else 1
    return Figure("", rounded(value, digits), suffix(unit))


def suffix(unit: str) -> str:
    """What follows a number in a unit other than money; empty if nothing does."""
    return _("years") if unit == "years" else SUFFIXES.get(unit, "")


def money(value: Number, code: str, digits: int) -> Figure:
    """An amount with its symbol. A code instead of a symbol is kept apart from the number."""
    symbol, number = language.currency_symbol(code), rounded(value, digits)
    if not language.has_symbol_first():
        return Figure("", number, symbol)
    gap = "\N{NO-BREAK SPACE}" * symbol[-1:].isalpha()
    return Figure(MINUS * number.startswith(MINUS) + symbol + gap, number.removeprefix(MINUS), "")


def rounded(value: Number, digits: int) -> str:
    """A number with that many decimals. Ties are rounded away from zero, as browsers do; zero has no sign."""
    exact = Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, language.EXACT)
    return language.number(exact or exact.copy_abs(), digits)


def duration(ms: Number) -> str:
    """Milliseconds in their two largest units. Half a second is rounded up, as in `static/live.js`."""
    seconds = int((ms + HALF_A_SECOND_MS) // 1000)
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min {seconds % MINUTE:02} s"
    return f"{seconds // HOUR} h {seconds % HOUR // MINUTE:02} min"


def change(point: Point | None, unit: str = "", code: str = "EUR") -> str:
    """By how much a point changed, in percent or percentage points; empty if that is unknown.

    A change from almost nothing is the number that it came from: "from $24".
    """
    value, in_unit = _change(point)
    if value is None:
        return ""
    if in_unit == "%" and abs(value) >= TINY_BASE_PERCENT and unit:
        return _("from {number}").format(number=figure(before(point), unit, code))
    return f"{SIGNS[direction(point)]}{rounded(abs(value), 1)} {in_unit}"


def direction(point: Point | None) -> str:
    """`up`, `down` or `level`; empty if the change is unknown."""
    value, _unit = _change(point)
    if value is None:
        return ""
    return "level" if abs(float(value)) < LEVEL_BELOW else "up" if value > 0 else "down"


def before(point: Point | None) -> Value:
    """The value that a point is compared with; None if it is unknown or nothing is compared."""
    return None if point is None or point.before is UNSET else point.before


def _change(point: Point | None) -> tuple[float | None, str]:
    if point is None:
        return None, ""
    value, unit = (point.change, "%") if point.change_points is UNSET else (point.change_points, _("points"))
    return (None if value is UNSET else value), unit


def age(passed: timedelta | None) -> str:
    """The time that has passed, at least zero; "never" for None."""
    if passed is None:
        return _("never")
    seconds = max(int(passed.total_seconds()), 0)
    days, rest = divmod(seconds, DAY)
    return f"{days} d {rest // HOUR} h" if days else duration(seconds * 1000)


def count(value: Number | None) -> str:
    """A whole number with thousands separators; a dash for None."""
    return UNKNOWN if value is None else rounded(value, 0)


def plain_number(value: Decimal | None) -> str:
    """A decimal without trailing zeros or exponent; a dash for None."""
    if value is None:
        return UNKNOWN
    text = f"{value:f}"
    digits = len(text.partition(".")[2].rstrip("0"))
    return language.number(value, digits)


def instant(text: str | None) -> datetime | None:
    """An instant of a response, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
