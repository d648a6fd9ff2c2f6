"""Requests as hostile and broken clients send them get one answer, the right one, and the next good one passes."""

import socket
from collections.abc import Iterator

import pytest

from master_dataset.registry.stores import Store
from serving_layer.http.connections import ConnectionLimits
from serving_layer.limits import Limits
from tests.support import World
from tests.support.corpus.wire.wire_case import WireCase, wire_cases
from tests.support.raw_http import Wire, wire
from tests.support.world_api import Asking
from tests.support.world_clients import served

SECONDS = 1.0
"""For a request to arrive: ten times as fast as in the product, so that nobody waits for these tests."""
LIMITS, CONNECTION = Limits(receive_seconds=SECONDS), ConnectionLimits(receive_seconds=SECONDS, idle_seconds=5)
GOOD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
CASES = wire_cases()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(Asking(World(Store(id="1", timezone="UTC")), limits=LIMITS), CONNECTION) as url:
        yield url


def named(case: WireCase) -> str:
    return case.name.encode("unicode_escape").decode()


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_request_gets_its_answer_and_the_next_good_one_passes(url: str, case: WireCase) -> None:
    with wire(url) as spoken:
        say(spoken, case)
        spoken.listen(len(case.statuses) + case.is_closed)

        assert (spoken.statuses, spoken.code, spoken.is_closed) == (case.statuses, case.code, case.is_closed)
        if not case.is_closed:
            spoken.say(GOOD)
            spoken.listen(len(case.statuses) + 1)
            assert spoken.statuses[-1] == 200

    with wire(url) as after:
        after.say(GOOD)
        after.listen(1)
        assert after.statuses == [200]


def test_the_corpus_is_as_large_as_it_is_said_to_be() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 80


def say(spoken: Wire, case: WireCase) -> None:
    spoken.say(case.sent)
    if case.half:
        spoken.connected.shutdown(socket.SHUT_WR)
    spoken.drip(case.dripped, pause=SECONDS / 20)
