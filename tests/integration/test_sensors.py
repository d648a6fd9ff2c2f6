"""All sources on a real stack: what sensors send is in the merged answers at once, and the same after a rebuild."""

import time
from datetime import UTC, datetime
from random import Random

import orjson
import pytest

from deploy.batch import context_of
from tests.integration.conftest import UNTIL_A_CUT_COVERS_IT, Stack, around_now
from tests.support.sensors import BEGIN, record, topics

STORES = ("81", "82", "83")


def sensed(topic: str, store: str, number: int, wave: int = 1) -> list[bytes]:
    """Records of the hours before now: some are repeated, some came too late for speed."""
    chance = Random(f"{topic}{store}{wave}")
    shift = datetime.now(UTC).replace(second=0, microsecond=0) - BEGIN
    found = []
    for _ in range(number):
        drawn = (
            -chance.choice([5, 200, 700, 2000]) - chance.randrange(200),
            chance.randrange(4000),
            chance.randrange(6),
        )
        value = orjson.loads(record(topic, drawn, store))
        for name in ("happened_at", "joined_at", "entered_at", "started_at", "service_started_at"):
            if name in value:
                value[name] = (datetime.fromisoformat(value[name]) + shift).isoformat()
        found += [orjson.dumps(value)] * chance.choice([1, 1, 1, 2])
    return found


def sighting(store: str, device: int, zone: str) -> bytes:
    return orjson.dumps(
        {
            "happened_at": datetime.now(UTC).isoformat(),
            "operation_id": store,
            "sensor_id": "ap",
            "device": f"{device:032x}",
            "salt_id": "x",
            "zone": zone,
            "signal_dbm": -50,
        }
    )


def ingest(stack: Stack, number: int, wave: int = 1) -> None:
    for topic in topics():
        stack.ingest(topic, [value for store in STORES for value in sensed(topic, store, number, wave)])
    time.sleep(UNTIL_A_CUT_COVERS_IT)


@pytest.fixture(scope="module")
def sent(stack: Stack) -> Stack:
    ingest(stack, 50)
    return stack


def test_what_sensors_send_is_in_speed_as_a_recompute_says(sent: Stack) -> None:
    verdict = sent.verify()

    assert (verdict.differing, verdict.examples) == (0, [])
    assert verdict.cells > 500
    assert verdict.waiting_for_batch > 0


@pytest.mark.nightly
def test_what_waited_is_all_that_a_second_publication_corrects(sent: Stack) -> None:
    sent.rebuild()
    ingest(sent, 60, wave=2)

    done = sent.rebuild()

    verdict = sent.verify()
    assert set(done["corrections"]["causes"]) == {"waited"}
    assert (verdict.differing, verdict.examples, verdict.waiting_for_batch) == (0, [], 0)


@pytest.mark.nightly
def test_a_visit_is_shown_when_its_device_is_gone_and_stays_as_it_is(sent: Stack) -> None:
    for _ in range(4):
        sent.ingest("wifi_sightings", [sighting("84", 1, "inside"), sighting("84", 2, "outside")])
    shown = closed(sent)

    sent.rebuild()

    final = visits(sent)
    assert sum(cell["merged"]["outside"] for cell in shown) == 2
    assert [cell["merged"] for cell in final] == [cell["merged"] for cell in shown]
    assert all(cell["batch"] for cell in final)


def visits(stack: Stack) -> list[dict[str, dict[str, int]]]:
    found: list[dict[str, dict[str, int]]] = stack.get("/v1/views/wifi_visits/cells", store="84", **around_now())[
        "cells"
    ]
    return found


def closed(stack: Stack) -> list[dict[str, dict[str, int]]]:
    """The cells, once both devices were not heard for longer than the gap."""
    until, fence = time.monotonic() + 240, context_of(stack.settings).fence
    while time.monotonic() < until:
        fence.mark(fence.newest_cut())  # by markers time passes in partitions that nobody sends to
        if sum(cell["merged"]["outside"] for cell in visits(stack)) == 2:
            return visits(stack)
    raise AssertionError("the visits were never shown")
