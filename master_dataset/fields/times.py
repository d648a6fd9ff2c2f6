"""Instants, and the intervals and durations that sensors report."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from master_dataset.fields.field import Described, Schema
from master_dataset.fields.numbers import Whole
from master_dataset.parsing.results import UNIX_EPOCH, InvalidRecordError, Reason
from master_dataset.registry.stores import Currency

ISO_8601 = re.compile(
    r"\d{4}-\d\d-\d\dT[0-2]\d:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-][0-2]\d(?::?[0-5]\d)?)", re.ASCII
)
FIRST_MS = 0  # 1970-01-01 UTC
AFTER_LAST_MS = int((datetime(2201, 1, 1, tzinfo=UNIX_EPOCH.tzinfo) - UNIX_EPOCH).total_seconds()) * 1000
is_written_well = ISO_8601.fullmatch


@dataclass(frozen=True)
class Instant(Described):
    """ISO 8601 with an offset or `Z`. Becomes milliseconds since 1970 UTC; finer digits are truncated."""

    optional: bool = False

    @property
    def hint(self) -> Any:  # noqa: ANN401 - see Field
        """A string, or null if the field is optional."""
        return str | None if self.optional else str

    @property
    def schema(self) -> Schema:
        """A string. `pattern` decides; `date-time` is slightly stricter, but only an annotation."""
        rule = "ISO 8601 with an offset or `Z`, in the years 1970 to 2200; digits beyond milliseconds are cut."
        form = {"format": "date-time", "pattern": f"^{ISO_8601.pattern}$"}
        return {"type": "string", **form, "description": rule, "examples": ["2026-03-07T10:00:00+01:00"]}

    def read(self, value: object, _: Currency) -> int:
        """Return milliseconds. `bad_time` for naive times, leap seconds and years outside 1970 to 2200."""
        if type(value) is not str or not is_written_well(value):
            raise InvalidRecordError(
                Reason.BAD_TIME, "must be a time such as 2026-11-21T09:00:00Z, with an offset or Z"
            )
        try:
            since = datetime.fromisoformat(value) - UNIX_EPOCH
        except (ValueError, OverflowError):
            raise InvalidRecordError(Reason.BAD_TIME, "names a day or a time that does not exist") from None
        happened_ms = since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000
        if not FIRST_MS <= happened_ms < AFTER_LAST_MS:
            raise InvalidRecordError(Reason.BAD_TIME, "lies outside the years 1970 to 2200")
        return happened_ms


WINDOW_MS = 900_000
"""15 minutes: the longest interval, and the length of a window."""
HOUR_MS = 3_600_000
INTERVAL = Whole(1, WINDOW_MS, about="Length of the interval, which lies in one 15-minute UTC window.")
"""The length of a counting interval that begins at `happened_at`."""


def refuse_crossing(start_ms: int, interval_ms: int) -> None:
    """Raise InvalidRecordError `interval_crosses_window` unless [start, start + interval) lies in one window."""
    if start_ms % WINDOW_MS + interval_ms > WINDOW_MS:
        why = "extends beyond the 15-minute UTC window that `happened_at` lies in"
        raise InvalidRecordError(Reason.INTERVAL_CROSSES_WINDOW, why, "/interval_ms")


def lasted(start_ms: int, end_ms: int, most_ms: int, field: str) -> int:
    """Return end - start in milliseconds.

    Args:
        start_ms: Start, milliseconds since 1970.
        end_ms: End, milliseconds since 1970.
        most_ms: The longest duration.
        field: Name of the field with the start.

    Raises:
        InvalidRecordError: `negative_duration`, `duration_too_long`.
    """
    if end_ms < start_ms:
        raise InvalidRecordError(Reason.NEGATIVE_DURATION, "lies after the end", f"/{field}")
    if end_ms - start_ms > most_ms:
        raise InvalidRecordError(
            Reason.DURATION_TOO_LONG, f"lies more than {most_ms // HOUR_MS} hours before the end", f"/{field}"
        )
    return end_ms - start_ms


def required(start_ms: int | None, field: str) -> int:
    """Return an instant that this kind of event must have. InvalidRecordError `missing_field` without it."""
    if start_ms is None:
        raise InvalidRecordError(Reason.MISSING_FIELD, "is missing", f"/{field}")
    return start_ms


def flags(*named: tuple[str, bool]) -> list[str]:
    """Return the names of the flags that are true, sorted."""
    return sorted(name for name, holds in named if holds)
