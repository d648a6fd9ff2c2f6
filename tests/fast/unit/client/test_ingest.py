"""Events in requests that the API takes, and what became of each, against the shape that the API promises."""

import asyncio
import gzip
import json
import random
from collections.abc import Callable
from decimal import Decimal

import httpx
import pytest
import stamina

from galatea.client import AsyncClient
from galatea.client.errors import InvalidResponseError, NotFoundError, UnavailableError
from galatea.client.ingest import IngestInterruptedError
from tests.support.world_clients import answering

EventValidator = Callable[[bytes, int], str]


class Topic:
    """Takes what it is sent, as `outcome_of` says of a record and of how often that came; keeps every request."""

    def __init__(self, outcome_of: EventValidator = lambda _, __: "accepted") -> None:
        self.outcome_of = outcome_of
        self.came: dict[bytes, int] = {}
        self.requests: list[list[bytes]] = []
        self.bodies: list[bytes] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("POST", "/v1/events/pos_transactions")
        assert request.headers["content-type"] == "application/x-ndjson"
        is_gzip = request.headers.get("content-encoding") == "gzip"
        self.bodies.append(request.content)
        records = (gzip.decompress(request.content) if is_gzip else request.content).split(b"\n")
        self.requests.append(records)
        items = []
        for index, record in enumerate(records):
            self.came[record] = self.came.get(record, 0) + 1
            outcome = self.outcome_of(record, self.came[record])
            wrong = {"reason": "wrong_type", "pointer": "/price"} if outcome == "rejected" else {}
            items.append({"index": index, "outcome": outcome, "reason": None, "pointer": None} | wrong)
        said = [item["outcome"] for item in items]
        counts = {outcome: said.count(outcome) for outcome in ("accepted", "rejected", "unknown")}
        if counts["unknown"] == len(items):
            problem = {"code": "broker_unavailable", "title": "Not confirmed.", "detail": "Send the same again."}
            headers = {"content-type": "application/problem+json", "retry-after": "2"}
            return httpx.Response(503, json=problem, headers=headers)
        status = {counts["accepted"]: 202, counts["rejected"]: 422}.get(len(items), 207)
        return httpx.Response(status, json=counts | {"items": items})


def events(count: int) -> list[dict[str, object]]:
    return [{"transaction_id": number, "price": Decimal("1.10")} for number in range(count)]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("galatea.client.ingest.PAUSE_SECONDS", 0.0)


def test_events_go_a_thousand_at_a_time_in_their_order() -> None:
    topic = Topic()

    done = answering(topic).ingest("pos_transactions", events(2500))

    assert (done.accepted, done.rejected, done.unknown) == (2500, (), ())
    assert [len(records) for records in topic.requests] == [1000, 1000, 500]
    sent = [json.loads(record)["transaction_id"] for records in topic.requests for record in records]
    assert sent == list(range(2500))


def test_an_amount_is_sent_as_a_number_with_its_digits() -> None:
    topic = Topic()

    answering(topic).ingest("pos_transactions", events(1))

    assert topic.requests == [[b'{"transaction_id":0,"price":1.10}']]


def test_a_request_is_never_longer_than_a_megabyte() -> None:
    topic = Topic()
    chance = random.Random(1)
    lines = [json.dumps({"n": number, "text": chance.randbytes(150_000).hex()}).encode() for number in range(10)]

    done = answering(topic).ingest("pos_transactions", lines)

    assert done.accepted == 10
    assert [len(records) for records in topic.requests] == [3, 3, 3, 1]
    assert max(len(b"\n".join(records)) for records in topic.requests) <= 1_000_000
    assert max(map(len, topic.bodies)) < 600_000


def test_what_would_unfold_like_a_bomb_is_sent_as_it_is() -> None:
    topic = Topic()

    done = answering(topic).ingest("pos_transactions", [b'{"text": "' + b"a" * 100_000 + b'"}'])

    assert done.accepted == 1
    assert topic.bodies[0].startswith(b'{"text"')


def test_lines_of_a_file_are_events_and_blank_ones_are_none() -> None:
    topic = Topic(lambda record, _: "rejected" if b"bad" in record else "accepted")

    done = answering(topic).ingest("pos_transactions", [b'{"a":\n1}\r\n', b"\n", b"  \n", b"bad\n"])

    assert topic.requests == [[b'{"a": 1}', b"bad"]]
    assert (done.accepted, [item.index for item in done.rejected]) == (1, [3])


def test_what_is_rejected_says_why_and_which_event_it_was() -> None:
    topic = Topic(lambda record, _: "rejected" if b":1001," in record else "accepted")

    done = answering(topic).ingest("pos_transactions", events(1003))

    [item] = done.rejected
    assert (done.accepted, item.index, item.reason, item.pointer) == (1002, 1001, "wrong_type", "/price")


def test_if_all_are_rejected_that_is_an_answer_too() -> None:
    done = answering(Topic(lambda _, __: "rejected")).ingest("pos_transactions", events(2))

    assert (done.accepted, [item.index for item in done.rejected]) == (0, [0, 1])


def test_only_what_is_unknown_is_sent_again_byte_for_byte() -> None:
    topic = Topic(lambda record, times: "unknown" if b":3," in record and times < 3 else "accepted")

    with stamina.set_testing(True, attempts=4):
        done = answering(topic).ingest("pos_transactions", events(5))

    assert (done.accepted, done.unknown) == (5, ())
    assert [len(records) for records in topic.requests] == [5, 1, 1]
    assert topic.requests[1] == topic.requests[2] == [topic.requests[0][3]]


@pytest.mark.parametrize("attempts", [1, 3])
def test_what_stays_unknown_is_named_when_its_attempts_are_over(attempts: int) -> None:
    topic = Topic(lambda record, _: "unknown" if b":3," in record else "accepted")

    with stamina.set_testing(True, attempts=2):
        done = answering(topic).ingest("pos_transactions", events(1500), attempts=attempts)

    assert (done.accepted, [(item.index, item.outcome) for item in done.unknown]) == (1499, [(3, "unknown")])


def test_unavailable_is_repeated_as_a_whole() -> None:
    topic = Topic(lambda _, times: "unknown" if times < 3 else "accepted")

    with stamina.set_testing(True, attempts=4):
        done = answering(topic).ingest("pos_transactions", events(2))

    assert (done.accepted, len(topic.requests)) == (2, 3)
    assert topic.requests[0] == topic.requests[2]


def test_an_ingest_that_has_to_stop_says_what_was_settled_and_from_where_to_go_on() -> None:
    topic = Topic(lambda record, _: "unknown" if json.loads(record)["transaction_id"] >= 1000 else "accepted")

    with stamina.set_testing(True), pytest.raises(IngestInterruptedError) as stopped:
        answering(topic).ingest("pos_transactions", events(1500))

    assert (stopped.value.ingested.accepted, stopped.value.index) == (1000, 1000)
    assert isinstance(stopped.value.__cause__, UnavailableError)


def test_a_source_that_there_is_not_stops_at_once() -> None:
    problem = {"code": "unknown_name", "title": "There is no source.", "detail": "Ask otherwise."}
    server = httpx.Response(404, json=problem, headers={"content-type": "application/problem+json"})

    with pytest.raises(IngestInterruptedError) as stopped:
        answering(lambda _: server).ingest("tills", events(1))

    assert isinstance(stopped.value.__cause__, NotFoundError)


def test_an_answer_that_leaves_out_an_event_is_none() -> None:
    server = httpx.Response(202, json={"accepted": 1, "rejected": 0, "unknown": 0, "items": []})

    with pytest.raises(IngestInterruptedError) as stopped:
        answering(lambda _: server).ingest("pos_transactions", events(1))

    assert isinstance(stopped.value.__cause__, InvalidResponseError)


def test_what_no_request_can_hold_is_rejected_without_being_sent() -> None:
    topic = Topic()

    done = answering(topic).ingest("pos_transactions", [b"[" + b"1" * 1_000_000, b"{}"])

    assert (done.accepted, [(item.index, item.reason) for item in done.rejected]) == (1, [(0, "too_large")])


@pytest.mark.parametrize("wrong", ["text", 3, None])
def test_what_is_no_event_is_a_mistake_of_the_caller(wrong: object) -> None:
    with pytest.raises(TypeError, match="a mapping or bytes"):
        answering(Topic()).ingest("pos_transactions", [wrong])  # type: ignore[list-item]


def test_the_client_that_awaits_sends_in_the_same_way() -> None:
    topic = Topic(lambda record, times: "unknown" if b":3," in record and times == 1 else "accepted")

    async def send() -> int:
        async with AsyncClient("http://galatea", transport=httpx.MockTransport(topic)) as connection:
            return (await connection.ingest("pos_transactions", events(5))).accepted

    assert asyncio.run(send()) == 5
    assert [len(records) for records in topic.requests] == [5, 1]
