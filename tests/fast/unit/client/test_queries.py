"""What the client asks and how it reads the answers, over the real application."""

import asyncio
import inspect
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from galatea.client import AsyncClient, Client
from galatea.client.errors import NotFoundError, ResponseError
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import async_client, client

MONDAY, TUESDAY, WEDNESDAY = date(2026, 11, 16), date(2026, 11, 17), date(2026, 11, 18)


@pytest.fixture
def asking() -> Asking:
    """A sale of Tuesday that is published, one a week before, and one of Wednesday that speed alone knows."""
    world = World()
    world.receive(receipt("2026-11-10T10:07:00Z", minor=100), "2026-11-10T10:07:10Z")
    world.receive(receipt("2026-11-17T10:07:00Z", minor=250), "2026-11-17T10:07:10Z")
    world.rebuild("2026-11-18T00:00Z")
    world.receive(receipt("2026-11-18T10:07:00Z", minor=240, number=2), "2026-11-18T10:07:10Z")
    return Asking(world)


def test_a_metric_is_read_with_every_digit_and_with_what_it_rests_on(asking: Asking) -> None:
    answer = client(asking).metric("net_sales", store="1", start=TUESDAY, end="2026-11-19")

    [tuesday, wednesday] = answer.points
    assert (str(tuesday.value), tuesday.final) == ("2.50", True)
    assert (str(wednesday.value), wednesday.final) == ("2.40", False)
    assert tuesday.start == datetime(2026, 11, 16, 23, tzinfo=UTC)
    assert (answer.unit, answer.currency, answer.timezone) == ("money", "EUR", "Europe/Bratislava")
    assert (answer.as_of.publication, answer.as_of.layers, answer.as_of.waiting_for_batch) == (1, ("batch", "speed"), 0)
    assert answer.as_of.cut == datetime(2026, 11, 18, tzinfo=UTC)
    assert answer.as_of.speed_as_of == datetime(2026, 11, 18, 10, 7, 10, tzinfo=UTC)


def test_counts_are_whole_and_what_nobody_knows_is_none(asking: Asking) -> None:
    [count] = client(asking).metric("total_transactions_count", start=TUESDAY, end=WEDNESDAY).points
    [rate] = client(asking).metric("conversion_rate", start=TUESDAY, end=WEDNESDAY).points

    assert (count.value, type(count.value)) == (1, int)
    assert (rate.value, rate.flags) == (None, ("no_source",))


def test_a_comparison_says_what_was_before_and_the_change(asking: Asking) -> None:
    answer = client(asking).metric("net_sales", start=TUESDAY, end=WEDNESDAY, compare="previous_week")

    [point] = answer.points
    assert (point.before, point.change) == (Decimal("1.00"), Decimal("150.0"))
    assert answer.series[0].compared is not None


def test_hours_of_the_week_are_named(asking: Asking) -> None:
    points = client(asking).metric("net_sales", start=MONDAY, end=WEDNESDAY, grain="hour_of_week", by="currency").points

    assert [(at.weekday, at.hour, at.value) for at in points if at.value] == [(2, 11, Decimal("2.50"))]


def test_every_argument_reaches_the_api(asking: Asking) -> None:
    instant = datetime(2026, 11, 17, tzinfo=UTC)
    connection = client(asking).metric(
        "net_sales",
        start=instant,
        end=instant + timedelta(days=1),
        store=["1"],
        grain="day",
        by=["currency"],
        compare="previous_week",
        hours="all",
        timezone="UTC",
        as_of=1,
        partial=True,
        comp=True,
        only_covered=False,
        context=["holidays", "weather"],
    )

    assert connection.series == ()
    assert [each.reason for each in connection.left_out] == ["open_since_unknown"]
    assert connection.context is not None
    assert set(connection.context) == {"holidays", "weather"}
    assert (connection.as_of.publication, connection.as_of.layers) == (1, ("batch",))


def test_an_instant_without_a_time_zone_is_rejected_before_any_request(asking: Asking) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        client(asking).metric("net_sales", start=datetime(2026, 11, 17), end=WEDNESDAY)  # noqa: DTZ001


def test_metrics_and_stores_are_listed(asking: Asking) -> None:
    connection = client(asking)

    assert {"net_sales": "money"}.items() <= {each.metric: each.unit for each in connection.metrics()}.items()
    assert [(store.id, store.timezone, store.currency) for store in connection.stores()] == [
        ("1", "Europe/Bratislava", "EUR")
    ]


def test_cells_are_shown_layer_by_layer_in_minor_units(asking: Asking) -> None:
    [early, late] = client(asking).cells("sales", start=TUESDAY, end="2026-11-19").cells

    assert (early.batch or {})["gross_sales"] == 250
    assert (late.batch, (late.speed or {})["gross_sales"], (late.merged or {})["gross_sales"]) == (None, 240, 240)


def test_receipts_come_from_all_pages() -> None:
    world = World()
    for number in range(5):
        world.receive(receipt("2026-11-17T10:07:00Z", minor=250, number=number), "2026-11-17T10:07:10Z")
    connection = client(Asking(world))

    found = list(connection.raw_receipts("1", TUESDAY, limit=2))

    assert sorted(each.transaction_id for each in found) == ["0", "1", "2", "3", "4"]


def test_publications_come_from_all_pages_newest_first(asking: Asking) -> None:
    asking.world.rebuild("2026-11-19T00:00Z")

    assert [each.publication for each in client(asking).publications(limit=1)] == [2, 1, 0]


def test_freshness_says_how_far_each_layer_is(asking: Asking) -> None:
    fresh = client(asking).freshness()

    assert (fresh.publication, fresh.layers) == (1, ("batch", "speed"))
    assert fresh.speed_as_of == datetime(2026, 11, 18, 10, 7, 10, tzinfo=UTC)


def test_one_metric_of_several_is_answered_as_if_alone(asking: Asking) -> None:
    answers = client(asking).several(["net_sales"], start=TUESDAY, end=WEDNESDAY)

    assert answers["net_sales"].points[0].value == Decimal("2.50")
    assert answers.as_of.publication == 1


def test_a_name_with_odd_letters_stays_one_segment_of_the_path(asking: Asking) -> None:
    with pytest.raises(NotFoundError) as refused:
        client(asking).metric("../stores?x=1#", start=TUESDAY, end=WEDNESDAY)

    assert refused.value.status == 404


def test_an_argument_that_there_is_not_is_refused_and_not_ignored(asking: Asking) -> None:
    with pytest.raises(ResponseError) as refused:
        client(asking).metric("net_sales", start=TUESDAY, end=WEDNESDAY, stores="1")  # type: ignore[call-arg]

    assert refused.value.code == "unknown_argument"


def test_the_client_that_awaits_gives_the_same_answers(asking: Asking) -> None:
    async def ask() -> tuple[object, ...]:
        async with async_client(asking) as connection:
            answer = await connection.metric("net_sales", start=TUESDAY, end=WEDNESDAY)
            return answer, [each.publication async for each in connection.publications(limit=1)]

    waited = client(asking)

    assert asyncio.run(ask()) == (waited.metric("net_sales", start=TUESDAY, end=WEDNESDAY), [1, 0])


def test_both_clients_offer_the_same_with_the_same_words() -> None:
    names = {name for name in vars(Client) if not name.startswith("_")}

    assert names == {name for name in vars(AsyncClient) if not name.startswith("_")}
    for name in names - {"call", "follow", "each", "close"}:
        first, second = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.signature(first) == inspect.signature(second)
        assert first.__doc__ == second.__doc__
    assert "compare" in inspect.signature(Client.metric).parameters
