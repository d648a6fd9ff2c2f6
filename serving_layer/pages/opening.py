"""When a store is open on one of its days, in words."""

from collections.abc import Sequence
from datetime import date

from master_dataset.registry.opening_hours import WEEKDAYS
from master_dataset.registry.stores import Store


def periods_of(store: Store, day: date) -> Sequence[str]:
    """The periods that begin on that day; none if it is closed, or if nobody said."""
    return () if day in store.closed_on else store.opening_hours.get(WEEKDAYS[day.weekday()], ())


def opening(store: Store, day: date) -> str:
    """In words; empty if nobody said."""
    periods = periods_of(store, day)
    if periods:
        return f"open {', '.join(periods)}"
    return "closed" if store.opening_hours else ""
