"""The day that is played: the last receipt comes as the play ends, and everything that tills do wrong is in it."""

from datetime import UTC, datetime, timedelta

import numpy as np
import orjson
import pandas as pd
import pytest

from lab.demo.journey import DOLLARS, Journey, receipt_messages
from lab.demo.shops import is_open, registry_entries
from lab.demo.trading_day import TradingDay, trading_day
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter, Event
from master_dataset.registry.stores import Terms
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RECEIPTS = 300
SPEED_COUNTS = timedelta(hours=23)


@pytest.fixture
def journey() -> Journey:
    """One line a receipt, one receipt every three minutes of 2017-12-31, every third in store 7."""
    numbers = np.arange(RECEIPTS)
    wall = pd.Timestamp("2017-12-31 08:00") + pd.to_timedelta(numbers * 180, unit="s")
    receipts = pd.DataFrame(
        {
            "store": np.where(numbers % 3 == 0, 7, 100 + numbers % 40),
            "basket": 1000 + numbers,
            "wall": wall,
            "first": numbers,
            "count": 1,
        }
    )
    quantity = np.where(numbers % 50 == 0, 0, 1 + numbers % 3)
    return Journey(receipts, 1 + numbers % 9, quantity, 100 + numbers, {1: "Milk"})


@pytest.fixture
def day(journey: Journey) -> TradingDay:
    return trading_day(journey, registry_entries(journey, NOW), NOW, NOW)


def read(value: bytes, at: datetime = NOW) -> object:
    return parse(POS_TRANSACTIONS, value, lambda _: Terms(DOLLARS), received_us=int(at.timestamp() * 1e6))


def test_only_what_is_broken_on_purpose_becomes_a_dead_letter(day: TradingDay) -> None:
    dead_letters = [
        each for each in (read(delivery.value) for delivery in day.deliveries) if isinstance(each, DeadLetter)
    ]

    assert len(dead_letters) == day.counts["broken"] == 3
    assert {dead_letter.reason for dead_letter in dead_letters} == {"not_json", "bad_time", "missing_field"}


def test_deliveries_are_in_the_order_in_which_they_are_sent(day: TradingDay) -> None:
    at = [delivery.at for delivery in day.deliveries]

    assert at == sorted(at)
    assert len(at) == sum(day.counts.values())


def test_the_receipts_of_the_day_are_none_that_the_speed_layer_leaves_out_but_those_days_late(day: TradingDay) -> None:
    events = [each for each in (read(delivery.value) for delivery in day.deliveries) if isinstance(each, Event)]
    ages = [NOW - event.happened_at for event in events]

    assert min(ages) > timedelta(0)
    assert sum(age > SPEED_COUNTS for age in ages) == day.counts["late"] > 0


def test_every_receipt_is_printed_while_its_store_is_open(journey: Journey, day: TradingDay) -> None:
    shops = {shop.id: shop for shop in registry_entries(journey, NOW)}
    events = [each for each in (read(delivery.value) for delivery in day.deliveries) if isinstance(each, Event)]

    assert [event.happened_at for event in events if not is_open(shops[event.store], event.happened_at)] == []


def test_every_receipt_of_the_past_can_be_read_and_the_last_day_is_today(journey: Journey) -> None:
    evening = NOW + timedelta(hours=8)
    total, written = receipt_messages(journey, journey.receipts, evening)
    messages = list(written)

    assert not [each for each in (read(each, evening) for each in messages) if isinstance(each, DeadLetter)]
    happened = [datetime.fromisoformat(orjson.loads(each)["happened_at"]) for each in messages]
    assert len(messages) == total
    assert 0 < total < len(journey.receipts)
    assert max(happened) <= evening
    assert {at.date() for at in happened} == {evening.date()}
