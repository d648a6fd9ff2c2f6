"""Numbers as text for people: a figure with its unit, a change, an age. `static/live.js` writes the same numbers."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from msgspec import UNSET

from master_dataset.registry.stores import currency
from serving_layer.responses.encoding import Number
from serving_layer.responses.metrics import Point, Value

UNKNOWN = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
SIGNS = {"up": "+", "down": MINUS, "level": "\N{PLUS-MINUS SIGN}"}
SUFFIXES = {"percent": "%", "celsius": "°C", "mm": "mm", "hours": "h", "years": "years"}
MINUTE, HOUR, DAY = 60, 3600, 86_400


class Figure(NamedTuple):
    """`before`: what precedes the number, a currency. `unit`: what follows it."""

    before: str
    number: str
    unit: str

    @property
    def without_currency(self) -> str:
        """For a place where the currency is shown nearby."""
        return " ".join(part for part in self[1:] if part)

    def __str__(self) -> str:
        """All parts, separated by spaces."""
        return " ".join(part for part in self if part)


def figure(value: Value, unit: str, code: str = "EUR") -> Figure:
    """A value in its unit. `code`: the currency, if the unit is money. None is shown as a dash."""
    if not isinstance(value, Number):
        return Figure("", UNKNOWN, "")
    if unit == "money":
        return Figure(code, with_minus(f"{value:,.{currency(code).digits}f}"), "")
    if unit == "ms":
        return Figure("", duration(value), "")
    digits = 0 if unit == "n" else 1
    return Figure("", with_minus(f"{value:,.{digits}f}"), SUFFIXES.get(unit, ""))


def duration(ms: Number) -> str:
    """Milliseconds in their two largest units."""
    seconds = round(ms / 1000)
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min {seconds % MINUTE:02} s"
    return f"{seconds // HOUR} h {seconds % HOUR // MINUTE:02} min"


def change(point: Point | None) -> str:
    """By how much a point changed, in percent or percentage points; empty if that is unknown."""
    value, unit = _change(point)
    # Through the text, so that a tie is rounded as the number reads and not as its binary fraction.
    return "" if value is None else f"{SIGNS[direction(point)]}{abs(Decimal(str(value))):.1f} {unit}"


def direction(point: Point | None) -> str:
    """`up`, `down` or `level`; empty if the change is unknown."""
    value, _ = _change(point)
    if value is None:
        return ""
    return "level" if round(value, 1) == 0 else "up" if value > 0 else "down"


def before(point: Point | None) -> Value:
    """The value that a point is compared with; None if it is unknown or nothing is compared."""
    return None if point is None or point.before is UNSET else point.before


def _change(point: Point | None) -> tuple[float | None, str]:
    if point is None:
        return None, ""
    value, unit = (point.change, "%") if point.change_points is UNSET else (point.change_points, "points")
    return (None if value is UNSET else value), unit


def age(passed: timedelta | None) -> str:
    """The time that has passed, at least zero; "never" for None."""
    if passed is None:
        return "never"
    seconds = max(int(passed.total_seconds()), 0)
    days, rest = divmod(seconds, DAY)
    return f"{days} d {rest // HOUR} h" if days else duration(seconds * 1000)


def count(value: Number | None) -> str:
    """A whole number with thousands separators; a dash for None."""
    return UNKNOWN if value is None else f"{value:,}"


def plain_number(value: Decimal | None) -> str:
    """A decimal without trailing zeros or exponent; a dash for None."""
    if value is None:
        return UNKNOWN
    text = f"{value:,f}"
    return with_minus(text.rstrip("0").rstrip(".") if "." in text else text)


def with_minus(text: str) -> str:
    """A formatted number with a real minus sign instead of a hyphen."""
    return text.replace("-", MINUS)


def instant(text: str | None) -> datetime | None:
    """An instant of a response, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
