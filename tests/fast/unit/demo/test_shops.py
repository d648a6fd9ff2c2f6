"""The demo's stores are open when they have receipts, and what is measured is no number of pieces."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import orjson
import pandas as pd
import pytest

from lab.demo.journey import DOLLARS, Journey, receipt_messages
from lab.demo.shops import is_open, registry_entries
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import Event
from master_dataset.registry.stores import Store, Terms
from master_dataset.registry.stores_file import MOST_LISTED
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS, Receipt

NOW = datetime(2026, 11, 24, 23, tzinfo=UTC)
LAST = date(2017, 12, 31)
MILK, FUEL = 1, 2


def journey_of(*receipts: tuple[int, str], quantity: int = 1, product: int = MILK) -> Journey:
    """Receipts of a line each, by store and local time, and before them one of store 9."""
    listed = sorted([(9, "2017-12-01 12:00"), *receipts], key=lambda each: each[1])
    numbers = np.arange(len(listed))
    columns = {
        "store": [store for store, _ in listed],
        "basket": 1000 + numbers,
        "wall": pd.to_datetime([wall for _, wall in listed], format="ISO8601"),
        "first": numbers,
        "count": 1,
    }
    products, quantities, cents = (np.full(len(listed), value) for value in (product, quantity, 2500))
    titles = {MILK: "Milk", FUEL: "Gasoline"}
    return Journey(pd.DataFrame(columns), products, quantities, cents, titles, frozenset({FUEL}))


def entry(journey: Journey, store: int) -> Store:
    return next(each for each in registry_entries(journey, NOW) if each.id == str(store))


@pytest.mark.parametrize(
    ("walls", "period"),
    [
        (["10:00", "15:30"], "08:00-21:00"),
        (["06:59", "22:00"], "06:00-23:00"),
        (["06:10", "00:40"], "06:00-01:00"),
        (["23:50"], "08:00-24:00"),
        ([f"{hour:02}:30" for hour in range(24) if hour != 4], "00:00-24:00"),
    ],
)
def test_opening_hours_are_the_usual_ones_and_those_of_the_receipts(walls: list[str], period: str) -> None:
    store = entry(journey_of(*((7, f"{LAST} {wall}") for wall in walls)), 7)

    assert set(store.opening_hours.values()) == {(period,)}


def test_days_without_receipts_are_closed_but_for_those_that_are_played() -> None:
    store = entry(journey_of((7, "2017-12-30 01:00"), (7, "2017-12-20 23:00"), (7, "2017-12-31 12:00")), 7)

    today = date(2026, 11, 24)
    days = [today - timedelta(days=ago) for ago in range(30, 2, -1)]
    assert list(store.closed_on) == [day for day in days if day != today - timedelta(days=11)]


def test_a_night_belongs_to_the_day_before_it() -> None:
    store = entry(journey_of((7, "2017-12-20 01:00"), (7, f"{LAST} 12:00")), 7)

    assert date(2026, 11, 12) not in store.closed_on
    assert date(2026, 11, 13) in store.closed_on


def test_weekdays_without_receipts_are_closed_in_a_store_that_is_not_played() -> None:
    store = entry(journey_of((7, "2017-12-20 12:00"), (9, f"{LAST} 12:00"), (9, f"{LAST} 13:00")), 7)

    assert set(store.opening_hours) == {"fri"}


@pytest.mark.parametrize("now", [NOW, datetime(2026, 3, 9, 8, tzinfo=UTC), datetime(2026, 11, 1, 9, tzinfo=UTC)])
def test_no_receipt_lies_outside_the_opening_hours(now: datetime) -> None:
    """Also on days on which clocks change."""
    numbers = np.arange(3000)
    walls = pd.Timestamp("2017-12-01") + pd.to_timedelta(numbers * 887, unit="s")
    journey = journey_of(*((number % 61, str(wall)) for number, wall in zip(numbers.tolist(), walls, strict=True)))
    stores = {store.id: store for store in registry_entries(journey, now)}

    receipts = [orjson.loads(value) for value in receipt_messages(journey, journey.receipts, now)[1]]

    assert len(receipts) > 2900
    printed = [(stores[str(each["operation_id"])], datetime.fromisoformat(each["happened_at"])) for each in receipts]
    assert [(store.id, at) for store, at in printed if not is_open(store, at)] == []
    assert all(len(store.closed_on) <= MOST_LISTED for store in stores.values())


@pytest.mark.parametrize(
    ("product", "quantity", "amount"),
    [(MILK, 12, 12), (MILK, 10_598, 10_598), (FUEL, 10_598, 10.598), (FUEL, 10_000, 1), (FUEL, 1, 1), (FUEL, 0, 0)],
)
def test_fuel_is_sent_in_gallons_and_counts_as_one_piece(product: int, quantity: int, amount: float) -> None:
    journey = journey_of((7, f"{LAST} 12:00"), quantity=quantity, product=product)
    *_, value = receipt_messages(journey, journey.receipts, NOW)[1]

    [line] = orjson.loads(value)["transactions"]
    assert line["amount"] == amount
    assert line["total"] == 25
    found = parse(POS_TRANSACTIONS, value, lambda _: Terms(DOLLARS))
    assert isinstance(found, Event)
    assert isinstance(found.payload, Receipt)
    assert found.payload.units_sold == (min(amount, 1) if product == FUEL else amount)
    assert "total_mismatch" not in found.payload.flags or not amount
