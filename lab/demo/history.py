"""The past: a year of receipts, moved by whole days so that the last day was yesterday on each shop's own wall."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from lab.demo.journey import ZONES, Journey, zone_of
from master_dataset.registry.currency import currency
from master_dataset.registry.stores import Store

DOLLARS = currency("USD")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
OPEN = ("06:00-23:00",)


def stores(journey: Journey) -> list[Store]:
    """Give every shop of the data an entry of the registry."""
    return [
        Store(
            id=str(store),
            timezone=zone_of(store),
            name=f"Store {store}, {zone_of(store).partition('/')[2].replace('_', ' ')}",
            currency=DOLLARS,
            opening_hours=dict.fromkeys(WEEKDAYS, OPEN),
        )
        for store in journey.stores
    ]


def messages(journey: Journey, now: datetime) -> Iterator[bytes]:
    """Write every receipt, oldest first."""
    receipts, happened_at = _moved(journey, now)
    return journey.messages(receipts, happened_at)


def instants(journey: Journey, now: datetime) -> dict[str, list[datetime]]:
    """When each store's receipts were printed, of those that `messages` writes."""
    receipts, happened_at = _moved(journey, now)
    found: dict[str, list[datetime]] = {}
    for store, at in zip(receipts["store"].tolist(), happened_at, strict=True):
        found.setdefault(str(store), []).append(datetime.fromisoformat(at))
    return found


def _moved(journey: Journey, now: datetime) -> tuple[pd.DataFrame, list[str]]:
    receipts = journey.receipts
    instant = np.empty(len(receipts), dtype="datetime64[s]")
    written = np.empty(len(receipts), dtype=object)
    zones = np.array([ZONES.index(zone_of(store)) for store in receipts["store"].to_numpy().tolist()])
    for number, name in enumerate(ZONES):
        yesterday = now.astimezone(ZoneInfo(name)).date() - timedelta(days=1)
        here = zones == number
        wall = receipts["wall"][here] + pd.Timedelta(yesterday - journey.last_day)
        always_first = np.ones(len(wall), dtype=bool)  # of an hour that a clock shows twice
        local = wall.dt.tz_localize(name, ambiguous=always_first, nonexistent="shift_forward")
        instant[here] = local.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy().astype("datetime64[s]")
        written[here] = [at.isoformat() for at in local]
    order = np.argsort(instant, kind="stable")
    return receipts.iloc[order], written[order].tolist()
