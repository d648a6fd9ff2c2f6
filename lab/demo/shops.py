"""The stores of the demo as they are registered. Their opening hours are derived from their receipts of the year.

The data do not say when a store is open. So it is open from the first to the last hour of the day in which it ever
printed a receipt, and closed on days without any.
"""

from datetime import date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np

from lab.demo.journey import DOLLARS, Ints, Journey, busiest_day, zone_of
from master_dataset.registry.stores import WEEKDAYS, Store, business_date
from views.core.local_time import open_periods

USUAL_HOURS = range(8, 21)
"""Every store is open in these hours: most stores of the data have but a few receipts."""
SHORTEST_NIGHT = 2
"""A store that would be closed for fewer hours is open around the clock."""
SKIPPED = 2
"""The hour that clocks skip in spring: its receipts are printed in the next one."""
STILL_OPEN = timedelta(days=2)
"""The trading day that is played reaches so far back; no date since then is a closed one."""


def registry_entries(journey: Journey, now: datetime) -> list[Store]:
    """Give every store of the data an entry of the registry.

    Args:
        journey: The data.
        now: The data are moved so that their last day is the day of this instant, as for `receipt_messages`.
    """
    played = set(busiest_day(journey)["store"].tolist())
    hours = journey.receipts["wall"].to_numpy().astype("datetime64[h]").astype(np.int64)
    of_stores = journey.receipts.groupby("store").indices
    return [_entry(journey, store, hours[of_stores[store]], now, is_played=store in played) for store in journey.stores]


def is_open(store: Store, at: datetime) -> bool:
    """Return whether a registered store is open at an instant."""
    second = int(at.timestamp())
    return any(opens <= second < closes for opens, closes in open_periods(store, second, second))


def _entry(journey: Journey, store: int, hours: Ints, now: datetime, *, is_played: bool) -> Store:
    """Return an entry. `hours`: of local time since 1970 in which the store has receipts, before the data are moved."""
    zone = zone_of(store)
    today = now.astimezone(ZoneInfo(zone)).date()
    opens, closes = _period({int(hour) for hour in np.unique(hours % 24)})
    moved = today - journey.last_day
    days = np.unique((hours - opens) // 24).tolist()  # hours after midnight belong to the day before
    traded = {business_date(day) + moved for day in days}
    weekdays = range(7) if is_played else sorted({day.weekday() for day in traded})
    return Store(
        id=str(store),
        timezone=zone,
        name=f"Store {store}, {zone.partition('/')[2].replace('_', ' ')}",
        currency=DOLLARS,
        opening_hours={WEEKDAYS[day]: (f"{opens:02}:00-{closes:02}:00",) for day in weekdays},
        closed_on=tuple(day for day in _days(journey, today) if day not in traded),
    )


def _period(hours: set[int]) -> tuple[int, int]:
    """Return when a store opens and closes that has receipts in these hours: at most 23 and 24."""
    after_skipped = {SKIPPED + 1} if SKIPPED in hours else set[int]()
    known = sorted({*USUAL_HOURS, *hours, *after_skipped})
    night, opens = max(((later - earlier) % 24 - 1, later) for earlier, later in pairwise([*known, known[0]]))
    return (opens, (opens - night) % 24 or 24) if night >= SHORTEST_NIGHT else (0, 24)


def _days(journey: Journey, today: date) -> list[date]:
    """Return the dates of the moved data, but for the last ones."""
    length = journey.last_day - journey.receipts["wall"].iloc[0].date()
    return [today - timedelta(days=ago) for ago in range(length.days, STILL_OPEN.days, -1)]
