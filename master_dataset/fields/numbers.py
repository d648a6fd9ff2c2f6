"""Numeric fields: each value becomes a whole number, exactly, or is rejected."""

from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, ClassVar

from master_dataset.fields.field import Described, Schema
from master_dataset.parsing.results import InvalidRecordError, Reason
from master_dataset.registry.stores import Currency

BIGINT_MAX = 2**63 - 1
MAX_PLACES = 19  # digits before the point that BIGINT can hold
TOO_LARGE = "is too large a number to be stored"
scaleb = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN).scaleb  # the default context rounds silently at 28 digits
POWERS = [10**digits for digits in range(19)]


@dataclass(frozen=True)
class Whole(Described):
    """A whole number within inclusive bounds. `otherwise`: the value of an absent one."""

    least: int
    most: int
    optional: bool = False
    otherwise: int | None = None
    hint: ClassVar[Any] = Any

    @property
    def schema(self) -> Schema:
        """A whole number; 5.0 is one."""
        default = {} if self.otherwise is None else {"default": self.otherwise}
        bounds = {"minimum": self.least, "maximum": self.most, **default}
        rule = f"A whole number from {self.least:,} to {self.most:,}."
        return {"type": "integer", **bounds, "description": rule, "examples": [max(self.least, 1)]}

    def read(self, value: object, _: Currency) -> int:
        """Return the number. `out_of_range` beyond the bounds."""
        number = scaled(value, 0, BIGINT_MAX + 1)
        if not self.least <= number <= self.most:
            raise InvalidRecordError(Reason.OUT_OF_RANGE, f"must lie between {self.least:,} and {self.most:,}")
        return number


@dataclass(frozen=True)
class Sign(Described):
    """1, or -1 for a reversal; absent is 1."""

    optional: ClassVar[bool] = True
    otherwise: ClassVar[int] = 1
    hint: ClassVar[Any] = Any

    @property
    def schema(self) -> Schema:
        """One of the two."""
        return {"type": "integer", "enum": [1, -1], "default": 1, "description": "1 or -1.", "examples": [1]}

    def read(self, value: object, _: Currency) -> int:
        """Return the number. `out_of_range` for any other."""
        number = scaled(value, 0, BIGINT_MAX + 1)
        if number not in (1, -1):
            raise InvalidRecordError(Reason.OUT_OF_RANGE, "must be 1 or -1")
        return number


@dataclass(frozen=True)
class Scaled(Described):
    """A JSON number as a whole number of its smallest unit, exactly. A number in a string is rejected."""

    decimals: int
    below: int = BIGINT_MAX + 1  # exclusive bound of the absolute scaled value
    optional: bool = False
    hint: ClassVar[Any] = Any

    @property
    def schema(self) -> Schema:
        """A number. No `multipleOf`: validators that use floats would reject 1.09."""
        above = -(-self.below // 10**self.decimals)
        bounds = {"exclusiveMinimum": -above, "exclusiveMaximum": above}
        return {
            "type": "number",
            **bounds,
            "description": f"At most {self.decimals} decimals.",
            "examples": [1.5],
        }

    def read(self, value: object, _: Currency) -> int:
        """Return value x 10^decimals."""
        return scaled(value, self.decimals, self.below)


@dataclass(frozen=True)
class Minor(Described):
    """Money in minor units of the store's currency: as many decimals as ISO 4217 gives it."""

    optional: bool = False
    hint: ClassVar[Any] = Any

    @property
    def schema(self) -> Schema:
        """A number, in the major unit."""
        rule = "At most as many decimals as the store's currency has."
        bounds = {"minimum": -BIGINT_MAX, "maximum": BIGINT_MAX}
        return {"type": "number", **bounds, "description": rule, "examples": [2.18]}

    def read(self, value: object, currency: Currency) -> int:
        """Return cents, yen, or thousandths of a dinar."""
        return scaled(value, currency.digits, BIGINT_MAX + 1)


def millionths(about: str) -> Scaled:
    """Return the type of a unit price: decimal(18,6)."""
    return Scaled(decimals=6, below=10**18, about=about)


def thousandths(about: str) -> Scaled:
    """Return the type of a quantity, whole or weighed."""
    return Scaled(decimals=3, about=about)


def scaled(value: object, decimals: int, below: int) -> int:
    """Return value x 10^decimals, exactly.

    Size is checked before any big number is built, because 1e999999999 is short to send.

    Raises:
        InvalidRecordError: It is no number, has too many decimals, or is not below `below`.
    """
    if type(value) is int:
        whole = value * POWERS[decimals]
    elif type(value) is Decimal:
        if value.adjusted() >= MAX_PLACES and value:
            raise InvalidRecordError(Reason.BAD_NUMBER, TOO_LARGE)
        moved = scaleb(value, decimals)
        whole = int(moved)
        if whole != moved:
            raise InvalidRecordError(
                Reason.BAD_NUMBER, f"has more than {decimals} decimals" if decimals else "must be whole"
            )
    else:
        raise InvalidRecordError(Reason.WRONG_TYPE, "must be a number")
    if -below < whole < below:
        return int(whole)
    raise InvalidRecordError(Reason.BAD_NUMBER, TOO_LARGE)
