"""Events over HTTP: the outcome of each, and what is in the topic."""

import asyncio
import gzip
import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import orjson
import pytest
from prometheus_client import REGISTRY

from master_dataset.errors import CassandraUnavailableError
from master_dataset.kafka.producer import DeliveryStatus, ProducerRecord
from master_dataset.parsing.parse import key_of
from master_dataset.registry.stores import Store, currency
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from serving_layer.ingest import ingest
from serving_layer.ingest.events_body import EventsBody
from serving_layer.ingest.ingest import EventValidator, IngestService
from serving_layer.limits import LIMITS, Limits
from serving_layer.responses.encoding import encode
from tests.support import World, receipt
from tests.support.corpus.record import record
from tests.support.world_api import OPERATOR_KEY, Asking

TOPIC = POS_TRANSACTIONS.topic
LINES = "application/x-ndjson"
WRONG = receipt("yesterday", minor=100)


def sale(number: int = 1, store: str = "1") -> bytes:
    return receipt("2026-11-21T09:00:00Z", minor=100, number=number, store=store)


def array(*records: bytes) -> bytes:
    return b"[" + b",".join(records) + b"]"


@pytest.fixture
def asking() -> Asking:
    return Asking(World(Store(id="1", timezone="UTC", tenant="ours"), Store(id="2", timezone="UTC", tenant="theirs")))


def outcomes(body: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(each["outcome"], each["reason"], each["pointer"]) for each in body["items"]]


def test_one_event_is_accepted_with_the_bytes_that_were_sent_and_keyed_by_its_store(asking: Asking) -> None:
    said = b" " + sale().replace(b": ", b" :  ")[:-1] + b', "x":1.10 }\n'

    response = asking.sent(said)

    item = {"index": 0, "outcome": "accepted", "reason": None, "pointer": None, "sentence": None}
    assert response.status_code == 202
    token = response.headers["galatea-token"]
    assert response.json() == {"accepted": 1, "rejected": 0, "unknown": 0, "items": [item], "token": token}
    assert asking.broker.topics == {TOPIC: [ProducerRecord(b"1", said)]}


def test_elements_of_an_array_keep_their_own_bytes_and_their_order(asking: Asking) -> None:
    one, other = sale(1).replace(b'"price": 1.0', b'"price": 1.00'), sale(2).replace(b": ", b" :\t")

    response = asking.sent(b" [\n" + one + b" ,\r\n " + other + b"] ")

    assert response.status_code == 202
    assert asking.broker.values(TOPIC) == [one, other]


def test_lines_are_taken_as_they_are_and_blank_ones_are_none(asking: Asking) -> None:
    response = asking.sent(b"\n".join([sale(1), b"", b"  \r", sale(2) + b"\r", b""]), content_type=LINES)

    assert (response.status_code, response.json()["accepted"]) == (202, 2)
    assert asking.broker.values(TOPIC) == [sale(1), sale(2)]


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
def test_a_body_may_be_gzip(asking: Asking, kind: str) -> None:
    response = asking.sent(gzip.compress(array(sale(1), sale(2))), content_type=kind, content_encoding="gzip")

    assert (response.status_code, response.json()["accepted"]) == (202, 2)
    assert asking.broker.values(TOPIC) == [sale(1), sale(2)]


def test_of_mixed_events_the_good_ones_are_sent_and_each_wrong_one_is_named(asking: Asking) -> None:
    response = asking.sent(array(WRONG, sale(1), b"7"))

    body = response.json()
    assert response.status_code == 207
    assert (body["accepted"], body["rejected"], body["unknown"]) == (1, 2, 0)
    assert outcomes(body) == [
        ("rejected", "bad_time", "/happened_at"),
        ("accepted", None, None),
        ("rejected", "not_json", ""),
    ]
    assert body["items"][2]["sentence"] == "The record is not one JSON object."
    assert asking.broker.values(TOPIC) == [sale(1)]


def test_events_that_are_all_wrong_are_422_and_nothing_is_sent(asking: Asking) -> None:
    response = asking.sent(array(WRONG, WRONG))

    assert (response.status_code, response.json()["rejected"]) == (422, 2)
    assert asking.broker.values(TOPIC) == []


def test_an_array_that_is_broken_is_rejected_whole(asking: Asking) -> None:
    response = asking.sent(b"[" + sale() + b",")

    assert response.status_code == 422
    assert outcomes(response.json()) == [("rejected", "not_json", "")]
    assert asking.broker.values(TOPIC) == []


@pytest.mark.parametrize(
    ("status", "item"),
    [
        (DeliveryStatus.UNCONFIRMED, ("unknown", "broker_unavailable", None)),
        (None, ("unknown", "broker_unavailable", None)),
        (DeliveryStatus.TOO_LARGE, ("rejected", "too_large", "")),
    ],
)
def test_what_the_broker_does_not_confirm_is_reported_beside_what_it_does(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, status: DeliveryStatus | None, item: tuple[Any, ...]
) -> None:
    monkeypatch.setattr(ingest, "DELIVERY_TIMEOUT_SECONDS", 0.05)
    asking.broker.says = lambda sent: status if sent.value == sale(2) else DeliveryStatus.ACKNOWLEDGED

    response = asking.sent(array(sale(1), sale(2), sale(3)))

    assert response.status_code == 207
    assert outcomes(response.json()) == [("accepted", None, None), item, ("accepted", None, None)]


@pytest.mark.parametrize("status", [DeliveryStatus.UNCONFIRMED, None])
def test_while_the_broker_is_away_the_same_may_be_sent_again_soon(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, status: DeliveryStatus | None
) -> None:
    monkeypatch.setattr(ingest, "DELIVERY_TIMEOUT_SECONDS", 0.05)
    asking.broker.says = lambda _: status

    response = asking.sent(array(sale(1), sale(2)))

    assert (response.status_code, response.json()["code"]) == (503, "broker_unavailable")
    assert response.headers["retry-after"] == "2"


def test_if_nothing_is_accepted_but_something_unknown_the_items_are_listed(asking: Asking) -> None:
    asking.broker.says = lambda _: DeliveryStatus.UNCONFIRMED

    response = asking.sent(array(WRONG, sale()))

    assert response.status_code == 207
    assert [each[0] for each in outcomes(response.json())] == ["rejected", "unknown"]


def test_a_full_queue_is_reported_at_once_and_nothing_is_sent(asking: Asking) -> None:
    asking.broker.is_full = True

    response = asking.sent(array(sale(1), sale(2)))

    assert (response.status_code, response.json()["code"]) == (503, "too_busy")
    assert response.headers["retry-after"] == "2"
    assert asking.broker.values(TOPIC) == []


def test_events_of_stores_of_others_are_rejected_whether_or_not_there_is_such_a_store(asking: Asking) -> None:
    taking = IngestService(asking.broker, asking.answers.stores.all, lambda: asking.clock_us, tokens=asking.tokens)
    posted = EventsBody(array(sale(1), sale(2, store="2"), sale(3, store="77")))

    taken = asyncio.run(taking.ingest(POS_TRANSACTIONS, posted, tenant="ours"))

    foreign = ("rejected", "foreign_store", "/operation_id")
    assert outcomes(orjson.loads(encode(taken.response()))) == [("accepted", None, None), foreign, foreign]
    assert {item.sentence for item in taken.items[1:]} == {
        "`/operation_id` names a store that does not belong to the sender."
    }
    assert asking.broker.values(TOPIC) == [sale(1)]


@pytest.mark.parametrize("number", [1, 100], ids=["singly", "by columns"])
def test_an_event_that_happened_too_long_ago_is_rejected(asking: Asking, number: int) -> None:
    oldest = datetime.fromtimestamp(asking.clock_us / 1e6, UTC).replace(microsecond=0) - timedelta(days=3_660)
    times = [oldest + timedelta(seconds=1), oldest - timedelta(seconds=1)]
    events = [receipt(at.isoformat(), minor=100, number=each, store="1") for each in range(number) for at in times]

    response = asking.response(f"/v1/events/{TOPIC}", method="POST", key=OPERATOR_KEY, said=array(*events))

    assert outcomes(response.json()) == [("accepted", None, None), ("rejected", "too_old", "/happened_at")] * number
    sentence = "`/happened_at` lies more than 3,660 days before the record was received."
    assert response.json()["items"][1]["sentence"] == sentence
    assert asking.broker.values(TOPIC) == events[::2]


@pytest.mark.parametrize("code", ["EUR", "JPY", "KWD"])
def test_what_is_wrong_with_an_event_of_a_store_of_others_does_not_depend_on_their_currency(code: str) -> None:
    """A line of two billion is more than 10^12 minor units in dinars alone; a half is no amount in yen alone."""
    theirs = Store(id="2", timezone="UTC", tenant="theirs", currency=currency(code))
    asking = Asking(World(Store(id="1", timezone="UTC", tenant="ours"), theirs))
    key = asking.keys.make("ours", "ingest")

    for line in ({"title": "gold", "price": 2e9, "amount": 1}, {"title": "gum", "price": 1, "amount": 1, "total": 0.5}):
        found = [
            asking.response(
                f"/v1/events/{TOPIC}", method="POST", key=key, said=receipt("2026-11-21T09:00:00Z", [line], store=store)
            ).json()
            for store in ("2", "77")
        ]
        assert outcomes(found[0]) == outcomes(found[1]) == [("rejected", "foreign_store", "/operation_id")]


def test_a_sender_without_a_tenant_may_speak_for_any_store(asking: Asking) -> None:
    response = asking.sent(array(sale(1), sale(2, store="2"), sale(3, store="77")))

    assert response.status_code == 202
    assert [sent.key for sent in asking.broker.topics[TOPIC]] == [b"1", b"2", b"77"]


def test_every_source_can_be_sent_and_is_keyed_as_the_command_does_it(asking: Asking) -> None:
    for source in registered_sources().values():
        response = asking.sent(record(source), source.topic)

        assert response.status_code == 202, response.text
        [sent] = asking.broker.topics[source.topic]
        assert sent == ProducerRecord(key_of(source)(record(source)) or b"", record(source))


def test_a_hardware_address_is_neither_sent_nor_shown(asking: Asking) -> None:
    address = "3c:22:fb:9a:1d:e7"
    unknown, known = record(WIFI_SIGHTINGS, note=address), record(WIFI_SIGHTINGS, device=address)

    response = asking.sent(array(unknown, known), WIFI_SIGHTINGS.topic)

    assert [each[:2] for each in outcomes(response.json())] == [("accepted", None), ("rejected", "raw_mac_address")]
    [stored] = asking.broker.values(WIFI_SIGHTINGS.topic)
    assert address not in response.text + stored.decode()
    assert json.loads(stored).keys() == json.loads(unknown).keys()


def test_an_event_more_than_an_hour_ahead_of_this_clock_is_from_the_future(asking: Asking) -> None:
    asking.clock_us = 1_795_248_000_000_000  # 2026-11-21T08:00:00Z
    ahead = receipt("2026-11-21T09:00:00.001Z", minor=100)

    response = asking.sent(array(sale(), ahead))

    assert outcomes(response.json()) == [("accepted", None, None), ("rejected", "from_the_future", "/happened_at")]


def test_a_source_that_is_not_there_is_named_with_the_nearest_one(asking: Asking) -> None:
    response = asking.sent(sale(), "pos_transaction")

    assert (response.status_code, response.json()["code"]) == (404, "unknown_name")
    assert response.json()["detail"] == "Did you mean `pos_transactions`?"


def test_a_process_that_takes_no_events_says_so(asking: Asking) -> None:
    asking.app.state.ingest = None

    response = asking.sent(sale())

    assert (response.status_code, response.json()["code"]) == (404, "not_offered")


def test_while_the_registry_is_away_it_is_as_it_was_read_last(asking: Asking) -> None:
    async def registry() -> tuple[str, dict[str, Store]]:
        if calls:
            raise CassandraUnavailableError("Cassandra is away.", do="Wait.")
        calls.append(1)
        return "1", {"1": Store(id="1", timezone="UTC", tenant="ours")}

    async def twice() -> list[str]:
        found = [await taking.ingest(POS_TRANSACTIONS, EventsBody(sale(number)), "ours") for number in (1, 2)]
        return [item.outcome for each in found for item in each.items]

    calls: list[int] = []
    taking = IngestService(asking.broker, registry, lambda: asking.clock_us, tokens=asking.tokens)

    assert asyncio.run(twice()) == ["accepted", "accepted"]


class PausedBody(EventsBody):
    """It is noted when a body of this kind is read, which then waits until it may go on."""

    began: ClassVar[list[bytes]]
    may_go_on: ClassVar[threading.Event]

    def records(self, limits: Limits = LIMITS) -> Sequence[bytes]:
        self.began.append(self.body)
        assert self.may_go_on.wait(10)
        return super().records(limits)


def test_bodies_that_take_long_keep_no_other_tenant_waiting_for_all_of_them(asking: Asking) -> None:
    """One thread validates them: the other tenant's is next after those that were handed to it already."""
    PausedBody.began, PausedBody.may_go_on = [], threading.Event()
    taking = IngestService(asking.broker, asking.answers.stores.all, lambda: asking.clock_us, tokens=asking.tokens)
    ours = [gzip.compress(sale(number)) for number in range(8)]
    theirs = gzip.compress(sale(store="2"))

    async def work() -> None:
        bodies = [*((body, "ours") for body in ours), (theirs, "theirs")]
        posted = []
        for body, tenant in bodies:
            posting = taking.ingest(POS_TRANSACTIONS, PausedBody(body, is_gzip=True), tenant)
            posted.append(asyncio.ensure_future(posting))
            await asyncio.sleep(0.01)
        PausedBody.may_go_on.set()
        assert [each.items[0].outcome for each in await asyncio.gather(*posted)] == ["accepted"] * len(bodies)

    asyncio.run(work())
    assert PausedBody.began == [*ours[:2], theirs, *ours[2:]]


def test_many_small_events_are_not_validated_on_the_event_loop(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand of them fit into two kilobytes, and each that is no event takes a while."""
    threads: list[tuple[int, str]] = []
    validate = EventValidator.validate

    def noted(validator: EventValidator, records: Sequence[bytes]) -> Sequence[ingest.ValidEvent | ingest.EventResult]:
        threads.append((len(records), threading.current_thread().name.split("_")[0]))
        return validate(validator, records)

    monkeypatch.setattr(EventValidator, "validate", noted)
    for number in (ingest.INLINE_EVENTS, ingest.INLINE_EVENTS + 1):
        asking.sent(array(*[b"0"] * number))

    assert [name == "validation" for _, name in threads] == [False, True]
    assert [number for number, _ in threads] == [ingest.INLINE_EVENTS, ingest.INLINE_EVENTS + 1]


def test_events_are_counted_by_source_and_outcome(asking: Asking) -> None:
    def counted(outcome: str) -> float:
        labels = {"source": TOPIC, "outcome": outcome}
        return REGISTRY.get_sample_value("galatea_ingested_events_total", labels) or 0

    before = [counted(each) for each in ("accepted", "rejected", "unknown")]
    asking.broker.says = lambda sent: (
        DeliveryStatus.UNCONFIRMED if sent.value == sale(3) else DeliveryStatus.ACKNOWLEDGED
    )

    asking.sent(array(sale(1), sale(2), sale(3), WRONG))

    after = [counted(each) for each in ("accepted", "rejected", "unknown")]
    assert [now - was for now, was in zip(after, before, strict=True)] == [2, 1, 1]
