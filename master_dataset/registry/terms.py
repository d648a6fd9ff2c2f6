"""What has to be known of a store to read its records: registered facts that become part of every event of it.

They are fixed once a store has events: what was read with other terms would not fit what is read now.
"""

from datetime import date, datetime, time, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from master_dataset.registry.currency import DEFAULT_CURRENCY, Currency

_EPOCH_DAY = date(1970, 1, 1)
MIDNIGHT = time(0)


class Terms(NamedTuple):
    """`timezone`, `day_starts_at`: when the store's business days begin.

    `sensors`: each with a source that it feeds, for one camera may feed several; `zones`: the parts of the sales floor.
    Empty: none is registered, and then none is missed.
    """

    currency: Currency = DEFAULT_CURRENCY
    timezone: str = "UTC"
    day_starts_at: time = MIDNIGHT
    sensors: frozenset[tuple[str, str]] = frozenset()
    zones: frozenset[str] = frozenset()

    def business_day(self, happened_ms: int) -> int:
        """The local date, as days since 1970, of the business day that the instant lies in.

        It begins at the first instant whose local clock on that date is at or past `day_starts_at`.
        """
        there = datetime.fromtimestamp(happened_ms / 1000, _zone(self.timezone))
        is_before = there.time() < self.day_starts_at and not self._has_begun(there)
        return (there.date() - _EPOCH_DAY).days - is_before

    def _has_begun(self, there: datetime) -> bool:
        """Whether the day began before clocks went back: it begins once."""
        began = datetime.combine(there.date(), self.day_starts_at, there.tzinfo)
        return there.fold == 1 and began.timestamp() <= there.timestamp()

    def knows_sensor(self, sensor: str, source: str) -> bool:
        """Whether that sensor is registered for that source, or the store has registered none."""
        return not self.sensors or (sensor, source) in self.sensors


DEFAULT_TERMS = Terms()
"""Of a store that is not registered."""


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def business_date(day: int) -> date:
    """The date of a number of days since 1970."""
    return _EPOCH_DAY + timedelta(days=day)
