"""An endpoint gets its tenant's alerts and nobody else's."""

import asyncio
from collections.abc import Sequence

import pytest

from master_dataset.errors import DependencyUnavailableError
from master_dataset.kafka.consumer import ConsumerRecord, Done, HandlerResult, Reject, Retry
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks.delivery import SKIPPED, Delivery
from tests.support.alert_signatures import MemoryFirstSigned, signatures_of
from tests.support.alert_topic import alert, record
from tests.support.hostile_alerts import HOSTILE
from views.alerts.signatures import AlertSignatures

ACME = Endpoint("e1", "acme", "https://acme.example/", "secret")


class Sent:
    """Stands for WebhookClient."""

    def __init__(self, verdict: HandlerResult) -> None:
        self.verdict, self.answered_at = verdict, 17.0
        self.ids: list[list[str]] = []

    async def send(self, records: Sequence[ConsumerRecord], ids: Sequence[str]) -> HandlerResult:
        assert len(records) == len(ids)
        self.ids.append(list(ids))
        return self.verdict


class Kept:
    """Stands for where the refused are kept. `room`: whether there is any."""

    def __init__(self, *, room: bool = True) -> None:
        self.kept: list[tuple[str, int, str]] = []
        self.room = room

    async def keep(self, endpoint: Endpoint, of: ConsumerRecord, why: str) -> None:
        if not self.room:
            raise DependencyUnavailableError("there is no room", do="make some")
        self.kept.append((endpoint.id, of.offset, why))


def delivery(
    verdict: HandlerResult, kept: Kept | None = None, signatures: AlertSignatures | None = None
) -> tuple[Delivery, Sent]:
    sent = Sent(verdict)
    return Delivery(ACME, sent, kept or Kept(), signatures or signatures_of()), sent  # type: ignore[arg-type]


def take(verdict: HandlerResult, *records: ConsumerRecord) -> tuple[HandlerResult, Sent, Delivery]:
    made, sent = delivery(verdict)
    return asyncio.run(made.handle(records)), sent, made


@pytest.mark.parametrize(
    ("one", "is_wanted"),
    [
        (record("acme", "1", 1), True),
        (record("globex", "1", 1), False),
        (record("acme-2", "1", 1), False),
        (ConsumerRecord("alerts", 0, 2, b"1", b"no json", 0), False),
        (ConsumerRecord("alerts", 0, 2, b"1", b"", 0), False),
    ],
)
def test_only_the_tenants_own_alerts_are_wanted(one: ConsumerRecord, is_wanted: bool) -> None:  # noqa: FBT001 - the table
    made, _ = delivery(Done())

    assert made.accepts(one) is is_wanted


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_record_that_is_no_valid_alert_is_not_sent(value: bytes) -> None:
    made, _ = delivery(Done())

    assert not made.accepts(ConsumerRecord("alerts", 0, 2, b"1", value, 0))


def test_an_alert_that_our_processor_has_not_written_is_not_sent() -> None:
    one = record("acme", "1", 1)
    first_signed = MemoryFirstSigned({("alerts", 0): 0})
    made, _ = delivery(Done(), signatures=signatures_of(first_signed))
    headers = signatures_of().headers("alerts", one.value)

    assert not made.accepts(one)
    assert made.accepts(one._replace(headers=headers))
    assert not made.accepts(one._replace(headers=headers, value=record("acme", "1", 2).value))


def test_alerts_are_sent_under_the_ids_that_the_processor_gave_them() -> None:
    said, sent, made = take(Done(), record("acme", "1", 1), record("acme", "1", 3))

    assert (said, made.delivered_at) == (Done(), 17.0)
    assert sent.ids == [[alert("acme", "1", 1).alert_id, alert("acme", "1", 3).alert_id]]


def test_a_failure_is_passed_on_and_delivers_nothing() -> None:
    said, _, made = take(Retry("down"), record("acme", "1", 1))

    assert (said, made.delivered_at) == (Retry("down"), None)


def test_what_is_refused_for_good_is_kept_with_the_reason() -> None:
    kept = Kept()
    made, _ = delivery(Done(), kept)

    said = asyncio.run(made.store_rejected(record("acme", "1", 1, offset=7), Reject("the endpoint answered 422")))

    assert (said, kept.kept) == (Done(), [("e1", 7, "the endpoint answered 422")])


def test_what_cannot_be_kept_waits_until_it_can() -> None:
    made, _ = delivery(Done(), Kept(room=False))

    assert asyncio.run(made.store_rejected(record("acme", "1", 1), Reject("bad"))) == Retry("there is no room")


def test_a_record_that_an_operator_skips_is_refused_and_nobody_is_called() -> None:
    made, sent = delivery(Done())
    made.skipped = frozenset({("alerts", 0, 7)})

    first, other = (asyncio.run(made.handle([record("acme", "1", 1, offset)])) for offset in (7, 8))

    assert (first, other) == (Reject(SKIPPED), Done())
    assert len(sent.ids) == 1


def test_since_when_an_endpoint_refuses_everything_is_known_until_it_takes_one() -> None:
    async def work() -> list[float | None]:
        made, sent = delivery(Done())
        seen = []
        for why, at in ((SKIPPED, 17.0), ("the endpoint answered 401", 18.0), ("the endpoint answered 401", 19.0)):
            sent.answered_at = at
            await made.store_rejected(record("acme", "1", 1), Reject(why))
            seen.append(made.refusing_since)
        await made.handle([record("acme", "1", 2)])
        return [*seen, made.refusing_since]

    assert asyncio.run(work()) == [None, 18.0, 18.0, None]
