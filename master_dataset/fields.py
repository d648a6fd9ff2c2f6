"""The types a field of a source can have. Each reads one decoded JSON value exactly, or refuses it with a reason."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, ClassVar, Protocol

from master_dataset.currency import Currency
from master_dataset.parsing.dead_letter import Reason, Refused
from master_dataset.parsing.event import EPOCH

BIGINT_MAX = 2**63 - 1
MAX_PLACES = 19  # digits before the point that BIGINT can hold
ID_BYTES = 256
LABEL_BYTES = 64
TOO_LARGE = "is a number beyond what can be stored"
scaleb = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN).scaleb  # the default context rounds silently at 28 digits
POWERS = [10**digits for digits in range(19)]
ISO_8601 = re.compile(
    r"\d{4}-\d\d-\d\dT[0-2]\d:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-][0-2]\d(?::?[0-5]\d)?)", re.ASCII
).fullmatch
FIRST_MS = 0  # 1970-01-01 UTC
AFTER_LAST_MS = int((datetime(2201, 1, 1, tzinfo=EPOCH.tzinfo) - EPOCH).total_seconds()) * 1000


class Field(Protocol):
    """One field of a source. `hint` is what msgspec may let through; `read` decides."""

    @property
    def optional(self) -> bool:
        """Absent and null both mean None."""

    @property
    def hint(self) -> Any:  # noqa: ANN401 - a type form, for which Python 3.11 has no type
        """The annotation for the decoder: never stricter than `read`, so that it cannot refuse what `read` takes."""

    def read(self, value: Any, currency: Currency) -> Any:  # noqa: ANN401 - a parser is where Any ends
        """Give the typed value. JSON numbers arrive as int or finite Decimal. Raises Refused."""


@dataclass(frozen=True)
class Id:
    """A number or a string, compared as text: 1 is "1" and not "01".

    1.0 is refused: whether it equals 1 or "1.0" is anyone's guess.
    """

    optional: ClassVar[bool] = False
    hint: ClassVar[Any] = int | str

    def read(self, value: object, _: Currency) -> str:
        """Give the text. Empty or over 256 bytes of UTF-8 is `bad_identity`: it is part of keys."""
        if type(value) is int:
            if not -BIGINT_MAX <= value <= BIGINT_MAX:
                raise Refused(Reason.BAD_NUMBER, "is a number beyond 64 bits; send such an id as a string")
            return str(value)
        if type(value) is not str:
            raise Refused(Reason.WRONG_TYPE, "must be a string or a whole number")
        if not value or (len(value) > ID_BYTES // 4 and len(value.encode()) > ID_BYTES):
            raise Refused(Reason.BAD_IDENTITY, f"must hold 1 to {ID_BYTES} bytes")
        return value


@dataclass(frozen=True)
class Instant:
    """ISO 8601 with an offset or `Z`. Becomes milliseconds since 1970 UTC; finer digits are cut, never rounded."""

    optional: bool = False

    @property
    def hint(self) -> Any:  # noqa: ANN401 - see Field
        """A string, or null where it may be absent."""
        return str | None if self.optional else str

    def read(self, value: object, _: Currency) -> int:
        """Give milliseconds. Naive times, leap seconds and years outside 1970..2200 are `bad_time`."""
        if type(value) is not str or not ISO_8601(value):
            raise Refused(Reason.BAD_TIME, "must be a time such as 2026-11-21T09:00:00Z, with an offset or Z")
        try:
            since = datetime.fromisoformat(value) - EPOCH
        except (ValueError, OverflowError):
            raise Refused(Reason.BAD_TIME, "names a day or a time that does not exist") from None
        happened_ms = since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000
        if not FIRST_MS <= happened_ms < AFTER_LAST_MS:
            raise Refused(Reason.BAD_TIME, "lies outside the years 1970 to 2200")
        return happened_ms


@dataclass(frozen=True)
class Text:
    """Any text. With `max_bytes` it may serve as a key; an optional empty text counts as absent."""

    optional: bool = False
    max_bytes: int | None = None

    @property
    def hint(self) -> Any:  # noqa: ANN401 - see Field
        """A string, or null where it may be absent."""
        return str | None if self.optional else str

    def read(self, value: object, _: Currency) -> str | None:
        """Give the text as it is."""
        if type(value) is not str:
            raise Refused(Reason.WRONG_TYPE, "must be a string")
        if self.max_bytes is not None and len(value) > self.max_bytes // 4 and len(value.encode()) > self.max_bytes:
            raise Refused(Reason.OUT_OF_RANGE, f"must hold at most {self.max_bytes} bytes")
        return None if self.optional and not value else value


@dataclass(frozen=True)
class Label:
    """A short text that names something within a store: a sensor, a door line, a zone, a queue. 1 to 64 bytes."""

    optional: ClassVar[bool] = False
    hint: ClassVar[Any] = str

    def read(self, value: object, _: Currency) -> str:
        """Give the text. Empty or longer is `bad_identity`: it is part of keys."""
        if type(value) is not str:
            raise Refused(Reason.WRONG_TYPE, "must be a string")
        if not value or (len(value) > LABEL_BYTES // 4 and len(value.encode()) > LABEL_BYTES):
            raise Refused(Reason.BAD_IDENTITY, f"must hold 1 to {LABEL_BYTES} bytes")
        return value


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]
    optional: ClassVar[bool] = False
    hint: ClassVar[Any] = str

    def read(self, value: object, _: Currency) -> str:
        """Give the word. Any other is `unknown_value`."""
        if type(value) is not str:
            raise Refused(Reason.WRONG_TYPE, "must be a string")
        if value not in self.words:
            raise Refused(Reason.UNKNOWN_VALUE, f"must be one of {', '.join(self.words)}")
        return value


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds, both included. `otherwise`: what an absent one counts as."""

    least: int
    most: int
    optional: bool = False
    otherwise: int | None = None
    hint: ClassVar[Any] = Any

    def read(self, value: object, _: Currency) -> int:
        """Give the number. Beyond the bounds is `out_of_range`."""
        number = scaled(value, 0, BIGINT_MAX + 1)
        if not self.least <= number <= self.most:
            raise Refused(Reason.OUT_OF_RANGE, f"must lie between {self.least:,} and {self.most:,}")
        return number


@dataclass(frozen=True)
class Flag:
    """True or false; absent is false."""

    optional: ClassVar[bool] = True
    otherwise: ClassVar[bool] = False
    hint: ClassVar[Any] = Any

    def read(self, value: object, _: Currency) -> bool:
        """Give the truth. Words and numbers are `wrong_type`."""
        if type(value) is not bool:
            raise Refused(Reason.WRONG_TYPE, "must be true or false")
        return value


def absent(field: "Field | Lines") -> Any:  # noqa: ANN401 - typed by its field
    """Give what an optional field counts as where it is left out: mostly None."""
    return getattr(field, "otherwise", None)


@dataclass(frozen=True)
class Scaled:
    """A JSON number as a whole number of its smallest unit, exactly. A number in a string is refused."""

    decimals: int
    below: int = BIGINT_MAX + 1  # exclusive bound of the absolute scaled value
    optional: bool = False
    hint: ClassVar[Any] = Any

    def read(self, value: object, _: Currency) -> int:
        """Give value x 10^decimals."""
        return scaled(value, self.decimals, self.below)


@dataclass(frozen=True)
class Minor:
    """Money in minor units of the store's currency: as many decimals as ISO 4217 gives it."""

    optional: bool = False
    hint: ClassVar[Any] = Any

    def read(self, value: object, currency: Currency) -> int:
        """Give cents, yen, or thousandths of a dinar."""
        return scaled(value, currency.digits, BIGINT_MAX + 1)


@dataclass(frozen=True)
class Lines:
    """A list of records, such as the lines of a receipt. Each becomes a tuple of its fields in the order given here."""

    fields: Mapping[str, Field]
    optional: ClassVar[bool] = False


def millionths() -> Scaled:
    """Give the type of a unit price: decimal(18,6)."""
    return Scaled(decimals=6, below=10**18)


def thousandths() -> Scaled:
    """Give the type of a quantity, whole or weighed."""
    return Scaled(decimals=3)


def scaled(value: object, decimals: int, below: int) -> int:
    """Give value x 10^decimals, or refuse; nothing is rounded.

    Size is tested before any big number is built, because 1e999999999 is short to send.
    """
    if type(value) is int:
        whole = value * POWERS[decimals]
    elif type(value) is Decimal:
        if value.adjusted() >= MAX_PLACES and value:
            raise Refused(Reason.BAD_NUMBER, TOO_LARGE)
        moved = scaleb(value, decimals)
        whole = int(moved)
        if whole != moved:
            raise Refused(Reason.BAD_NUMBER, f"has more than {decimals} decimals" if decimals else "must be whole")
    else:
        raise Refused(Reason.WRONG_TYPE, "must be a number")
    if -below < whole < below:
        return int(whole)
    raise Refused(Reason.BAD_NUMBER, TOO_LARGE)
