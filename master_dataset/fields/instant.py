"""Moments of events."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from master_dataset.fields.field import Described, Schema
from master_dataset.parsing.dead_letter import Reason, Refused
from master_dataset.parsing.event import EPOCH
from master_dataset.registry.currency import Currency

ISO_8601 = re.compile(
    r"\d{4}-\d\d-\d\dT[0-2]\d:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-][0-2]\d(?::?[0-5]\d)?)", re.ASCII
)
FIRST_MS = 0  # 1970-01-01 UTC
AFTER_LAST_MS = int((datetime(2201, 1, 1, tzinfo=EPOCH.tzinfo) - EPOCH).total_seconds()) * 1000
is_written_well = ISO_8601.fullmatch


@dataclass(frozen=True)
class Instant(Described):
    """ISO 8601 with an offset or `Z`. Becomes milliseconds since 1970 UTC; finer digits are cut, never rounded."""

    optional: bool = False

    @property
    def hint(self) -> Any:  # noqa: ANN401 - see Field
        """A string, or null where it may be absent."""
        return str | None if self.optional else str

    @property
    def schema(self) -> Schema:
        """A string. `pattern` is what counts; `date-time` is a little stricter, and an annotation only."""
        rule = "ISO 8601 with an offset or `Z`, in the years 1970 to 2200; digits beyond milliseconds are cut."
        form = {"format": "date-time", "pattern": f"^{ISO_8601.pattern}$"}
        return {"type": "string", **form, "description": rule, "examples": ["2026-03-07T10:00:00+01:00"]}

    def read(self, value: object, _: Currency) -> int:
        """Give milliseconds. Naive times, leap seconds and years outside 1970..2200 are `bad_time`."""
        if type(value) is not str or not is_written_well(value):
            raise Refused(Reason.BAD_TIME, "must be a time such as 2026-11-21T09:00:00Z, with an offset or Z")
        try:
            since = datetime.fromisoformat(value) - EPOCH
        except (ValueError, OverflowError):
            raise Refused(Reason.BAD_TIME, "names a day or a time that does not exist") from None
        happened_ms = since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000
        if not FIRST_MS <= happened_ms < AFTER_LAST_MS:
            raise Refused(Reason.BAD_TIME, "lies outside the years 1970 to 2200")
        return happened_ms
