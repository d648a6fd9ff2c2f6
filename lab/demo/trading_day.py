"""A day of trade to be played live: the busiest real day, with all that tills do wrong mixed in.

Its receipts are moved so that the last one is printed as the play ends, so all are less than a day old and speed counts
them. Mixed in, all chosen by position, so that two plays are alike: duplicates, receipts days late, several receipts in
one second of one till, another content under a known identity, and records that no event can be made of.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import orjson
import pandas as pd

from lab.demo.journey import Journey, zone_of

DUPLICATE_EVERY, LATE_EVERY, SAME_SECOND_EVERY, BROKEN_EVERY, CONFLICT_EVERY = 20, 25, 30, 100, 200
RIVAL_ID = 10**14
"""Added to the number of a receipt that is made from another: baskets have smaller numbers."""
LATE_DAYS = 2, 20
WATCHED_UNTIL = 0.4
"""The watched windows are over by then, so that the second rebuild can be seen to change their state alone."""


@dataclass(frozen=True)
class Delivery:
    """`at`: when it is sent, from 0 (the start of the play) to 1."""

    at: float
    store: str
    value: bytes


@dataclass(frozen=True)
class TradingDay:
    """What is sent, in order, and what it is made of.

    `focus`: the store to watch; `windows`: its busiest early windows, `late_window`: that of a receipt which comes days
    late, all in seconds since 1970.
    """

    deliveries: Sequence[Delivery]
    counts: dict[str, int]
    focus: str
    windows: Sequence[int]
    late_window: int


def trading_day(journey: Journey, ends_at: datetime) -> TradingDay:
    """Plan the play that ends at this instant."""
    receipts = busiest_day(journey)
    last = receipts["wall"].iloc[-1]
    ago = [timedelta(seconds=round((last - wall).total_seconds())) for wall in receipts["wall"]]
    happened = [ends_at.replace(microsecond=0) - each for each in ago]
    zones = [ZoneInfo(zone_of(store)) for store in receipts["store"].tolist()]
    written = [at.astimezone(zone).isoformat() for at, zone in zip(happened, zones, strict=True)]
    values = list(journey.messages(receipts, written))
    stores = [str(store) for store in receipts["store"].tolist()]
    focus = str(receipts["store"].value_counts().idxmax())
    deliveries = [Delivery(n / len(values), stores[n], value) for n, value in enumerate(values)]
    mixed = {
        "duplicates": [_later(each, each.value) for each in deliveries[::DUPLICATE_EVERY]],
        "late": [_late(each, number) for number, each in enumerate(deliveries) if _is_late(each, number, focus)],
        "same_second": [_later(each, _rival(each.value)) for each in deliveries[3::SAME_SECOND_EVERY]],
        "conflicts": [_later(each, _another(each.value)) for each in deliveries[5:250:CONFLICT_EVERY]],
        "broken": [_later(each, _broken(each.value, nth)) for nth, each in enumerate(deliveries[7::BROKEN_EVERY])],
    }
    everything = sorted([*deliveries, *(each for kind in mixed.values() for each in kind)], key=lambda each: each.at)
    counts = {"receipts": len(deliveries), **{kind: len(each) for kind, each in mixed.items()}}
    soon = round(len(values) * WATCHED_UNTIL)
    early = [at for at, store in zip(happened[:soon], stores[:soon], strict=True) if store == focus]
    late = next(each for each in mixed["late"] if each.store == focus)
    return TradingDay(everything, counts, focus, _busiest_windows(early), _window(_instant(late.value)))


def busiest_day(journey: Journey) -> pd.DataFrame:
    """Give the receipts of the day that is played."""
    days = journey.receipts["wall"].dt.floor("D")
    busiest: pd.DataFrame = journey.receipts[days == days.value_counts().idxmax()]
    return busiest


def _busiest_windows(instants: Sequence[datetime]) -> list[int]:
    windows = pd.Series([_window(at) for at in instants]).value_counts(sort=True)
    return sorted(int(window) for window in windows.index[:4])


def _window(at: datetime) -> int:
    return int(at.timestamp()) // 900 * 900


def _instant(value: bytes) -> datetime:
    return datetime.fromisoformat(orjson.loads(value)["happened_at"])


def _later(delivery: Delivery, value: bytes) -> Delivery:
    return Delivery(min(delivery.at + 0.08, 0.999), delivery.store, value)


def _is_late(delivery: Delivery, number: int, focus: str) -> bool:
    return number % LATE_EVERY == 0 or (delivery.store == focus and number % 3 == 0)


def _late(delivery: Delivery, number: int) -> Delivery:
    """Print another receipt like this one some days earlier; it reaches us only now."""
    receipt = orjson.loads(_rival(delivery.value))
    days = LATE_DAYS[0] + number % (LATE_DAYS[1] - LATE_DAYS[0] + 1)
    receipt["happened_at"] = (datetime.fromisoformat(receipt["happened_at"]) - timedelta(days=days)).isoformat()
    return _later(delivery, orjson.dumps(receipt))


def _another(value: bytes) -> bytes:
    """Say something else under the same identity."""
    return value.replace(b'"title":"', b'"title":"Not ', 1)


def _rival(value: bytes) -> bytes:
    """Print another receipt at the same till in the same second."""
    receipt = orjson.loads(value)
    receipt["transaction_id"] += RIVAL_ID
    return orjson.dumps(receipt)


def _broken(value: bytes, number: int) -> bytes:
    """Break a receipt in one of five ways: cut off, naive time, no lines, a price that is a word, a day ahead."""
    receipt = orjson.loads(_rival(value))
    at = datetime.fromisoformat(receipt["happened_at"])
    match number % 5:
        case 0:
            return value[: len(value) // 2]
        case 1:
            receipt["happened_at"] = at.replace(tzinfo=None).isoformat()
        case 2:
            del receipt["transactions"]
        case 3:
            receipt["transactions"][0]["price"] = "much"
        case _:
            receipt["happened_at"] = (at + timedelta(days=2)).isoformat()
    return orjson.dumps(receipt)
