"""For how long a shop is open at a stretch, by its ordinary week."""

from datetime import time

from master_dataset.registry.opening_hours import WEEKDAYS
from master_dataset.registry.stores import Store

DAY = 24 * 60
_WEEK = 7 * DAY


def longest_open(store: Store) -> int:
    """Minutes of its longest stretch; 0 if it never says that it opens. A week is the most that is looked for."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(_periods(store, 0) + _periods(store, _WEEK)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return min(max((end - start for start, end in merged), default=0), _WEEK)


def _periods(store: Store, since: int) -> list[tuple[int, int]]:
    found = []
    for number, weekday in enumerate(WEEKDAYS):
        for period in store.opening_hours.get(weekday, ()):
            opens, closes = (_minute(text) for text in period.split("-"))
            start = since + number * DAY + opens
            found.append((start, start + (closes - opens if closes > opens else closes - opens + DAY)))
    return found


def _minute(text: str) -> int:
    if text == "24:00":
        return DAY
    at = time.fromisoformat(text)
    return at.hour * 60 + at.minute
