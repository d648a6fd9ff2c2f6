"""Numbers in words of people: a figure and its unit. `static/live.js` writes the same from the same answers."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from master_dataset.registry.stores import currency

NOTHING = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
SIGNS = {"up": "+", "down": MINUS, "level": "\N{PLUS-MINUS SIGN}"}
SUFFIX = {"percent": "%", "celsius": "°C", "mm": "mm", "hours": "h", "years": "years"}
MINUTE, HOUR = 60, 3600
Number = int | float | Decimal


class Figure(NamedTuple):
    """`before`: what stands in front of the number, a currency. `unit`: what stands behind it."""

    before: str
    number: str
    unit: str

    @property
    def bare(self) -> str:
        """Without a currency, which stands nearby."""
        return " ".join(part for part in self[1:] if part)

    def __str__(self) -> str:
        """In one piece."""
        return " ".join(part for part in self if part)


def figure(value: Number | None, unit: str, code: str = "EUR") -> Figure:
    """A value of an answer in its unit. `code`: the currency, where it is money."""
    if value is None:
        return Figure("", NOTHING, "")
    if unit == "money":
        return Figure(code, f"{value:,.{currency(code).digits}f}".replace("-", MINUS), "")
    if unit == "ms":
        return Figure("", lasted(value), "")
    digits = 0 if unit == "n" else 1
    return Figure("", f"{value:,.{digits}f}".replace("-", MINUS), SUFFIX.get(unit, ""))


def lasted(ms: Number) -> str:
    """A duration in its two greatest units."""
    seconds = round(ms / 1000)
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min {seconds % MINUTE:02} s"
    return f"{seconds // HOUR} h {seconds % HOUR // MINUTE:02} min"


def change(point: Mapping[str, Any]) -> str:
    """By how much a point changed: in percent, of percentages in points; empty if that is not known."""
    value, unit = (point.get("change_points"), "points") if "change_points" in point else (point.get("change"), "%")
    return "" if value is None else f"{SIGNS[direction(point)]}{abs(value):.1f} {unit}"


def direction(point: Mapping[str, Any]) -> str:
    """`up`, `down` or `level`; empty if that is not known."""
    value = point.get("change_points") if "change_points" in point else point.get("change")
    if value is None:
        return ""
    return "level" if round(value, 1) == 0 else "up" if value > 0 else "down"


def aged(age: timedelta | None) -> str:
    """How long ago; in the past at least by nothing."""
    if age is None:
        return "never"
    seconds = max(int(age.total_seconds()), 0)
    days, rest = divmod(seconds, 86_400)
    return f"{days} d {rest // HOUR} h" if days else lasted(seconds * 1000)


def read_at(text: str | None) -> datetime | None:
    """An instant of an answer."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def whole(value: Number | None) -> str:
    """A count, with its thousands apart."""
    return NOTHING if value is None else f"{value:,}"
