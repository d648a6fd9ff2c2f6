"""Several metrics in one question: all of one moment."""

import pytest

from galatea.client.answers import Answers
from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import client

NAMES = ["net_sales", "conversion_rate"]


@pytest.fixture
def answers() -> Answers:
    """Of one sale that speed alone knows."""
    world = World()
    world.receive(receipt("2026-11-17T10:07:00Z", minor=250), "2026-11-17T10:07:10Z")
    return client(Asking(world)).several(NAMES, start="2026-11-17", end="2026-11-18")


def test_several_metrics_are_of_one_moment(answers: Answers) -> None:
    assert [answer.metric for answer in answers.answers] == NAMES
    assert str(answers["net_sales"].points[0].value) == "2.50"
    assert {answer.as_of.speed_as_of for answer in answers.answers} == {answers.as_of.speed_as_of}
    assert (answers.as_of.waiting_for_batch, answers["net_sales"].as_of.waiting_for_batch) == (None, 0)
    assert [(row["metric"], row["unit"]) for row in answers.to_rows()] == [(NAMES[0], "money"), (NAMES[1], "percent")]


def test_a_metric_that_was_not_requested_is_a_key_error(answers: Answers) -> None:
    with pytest.raises(KeyError):
        answers["traffic_in"]


def test_stores_of_a_long_list_come_in_pages() -> None:
    shops = [Store(id=number, timezone="UTC") for number in ("1", "2", "3")]
    connection = client(Asking(World(*shops)))

    first = connection.several(NAMES, start="2026-11-17", end="2026-11-18", limit=2)
    second = connection.metric(NAMES[0], start="2026-11-17", end="2026-11-18", limit=2, after=first.next or "")

    assert [series.store for series in first["net_sales"].series] == ["1", "2"]
    assert ([series.store for series in second.series], second.next) == (["3"], None)
