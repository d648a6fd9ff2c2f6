"""Bad input over HTTP gets the reason that the parser gives on the topic, and what comes beside it passes."""

from functools import cache
from typing import Any

import pytest

from master_dataset.registry.stores import Currency, Store
from serving_layer.limits import LIMITS, Limits
from tests.support import World
from tests.support.corpus.case import Case, by_hand, receipt
from tests.support.corpus.generated import generated
from tests.support.world_api import Asking

OF_THE_BYTES = {"empty_value", "too_large", "not_utf8", "not_json", "too_deep"}
"""What an array that holds such a record is, too: it cannot be taken apart."""
GOOD = receipt({"transaction_id": "4711", "happened_at": '"2016-01-01T00:00:00Z"', "price": "1", "total": "2"})
AT_THE_END_OF_TIME = 7_500_000_000_000_000  # in 2207: nothing is from the future
OF_ANY_AGE = Limits(ingest_oldest_days=1_000_000)
ACCEPTED = ("accepted", None, None)
CASES = [*by_hand(), *generated()]
FITTING = [case for case in CASES if len(case.value) <= LIMITS.body_bytes]
MEANS_MANY = {"json: top level list"}
"""On a topic it is no event, over HTTP it is a list of one."""
SMALL = [case for case in FITTING if len(case.value) + 2 * len(GOOD) + 4 <= LIMITS.body_bytes]
ALONE_ON_A_LINE = [case for case in SMALL if case.value.strip() and b"\n" not in case.value.removesuffix(b"\n")]
ELEMENTS = [case for case in SMALL if case.expected not in OF_THE_BYTES]


@cache
def asking(currency: Currency) -> Asking:
    return Asking(World(Store(id="1", timezone="UTC", currency=currency)), limits=OF_ANY_AGE)


def became(case: Case, said: bytes, kind: str = "application/json") -> list[tuple[Any, ...]]:
    server = asking(case.store_currency)
    server.clock_us = case.received_us or AT_THE_END_OF_TIME
    response = server.sent(said, content_type=kind)
    items = response.json()["items"]
    assert [item["index"] for item in items] == list(range(len(items)))
    return [(item["outcome"], item["reason"], item["pointer"]) for item in items]


def expected(case: Case) -> tuple[Any, ...]:
    return ACCEPTED if case.expected == "event" else ("rejected", case.expected, case.field)


def named(case: Case) -> str:
    return case.name[:80].encode("unicode_escape").decode()


@pytest.mark.parametrize("case", [case for case in FITTING if case.name not in MEANS_MANY], ids=named)
def test_a_record_alone_gets_the_reason_of_the_parser(case: Case) -> None:
    assert became(case, case.value) == [expected(case)]


@pytest.mark.parametrize("case", ALONE_ON_A_LINE, ids=named)
def test_a_record_on_a_line_gets_the_same_and_its_neighbours_pass(case: Case) -> None:
    said = b"\n".join([GOOD, case.value, GOOD])

    assert became(case, said, "application/x-ndjson") == [ACCEPTED, expected(case), ACCEPTED]


@pytest.mark.parametrize("case", ELEMENTS, ids=named)
def test_a_record_in_an_array_gets_the_same_and_its_neighbours_pass(case: Case) -> None:
    assert became(case, b"[" + b",".join([GOOD, case.value, GOOD]) + b"]") == [ACCEPTED, expected(case), ACCEPTED]


def test_what_is_left_out_here_is_larger_than_any_body() -> None:
    left_out = [case for case in CASES if case not in FITTING]

    assert {case.expected for case in left_out} == {"too_large"}
    assert {asking(case.store_currency).sent(case.value).json()["code"] for case in left_out} == {"body_too_large"}


def test_what_is_accepted_stands_in_the_topic_byte_for_byte() -> None:
    events = [case for case in ELEMENTS if case.expected == "event" and not case.received_us]
    server = Asking(World(Store(id="1", timezone="UTC")), limits=OF_ANY_AGE)
    for case in events:
        server.sent(b"[ " + case.value + b" ]")

    stored = server.broker.values("pos_transactions")

    assert len(stored) > 100
    assert set(stored) <= {case.value.strip() for case in events}
