"""An endpoint is told of its tenant's alerts and of nobody else's."""

import asyncio
import json
from collections.abc import Sequence

from master_dataset.consuming import Again, Done, Record, Refused, Verdict
from master_dataset.endpoint import Endpoint
from speed_layer.webhooks.delivery import Delivery

ACME = Endpoint("e1", "acme", "https://acme.example/", "secret")


def record(offset: int, tenant: str) -> Record:
    return Record(
        "alerts", 0, offset, b"1", json.dumps({"id": f"a{offset}", "tenant": tenant, "store": "1"}).encode(), 0
    )


class Sent:
    """Stands for Sender."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict, self.ids = verdict, []

    ids: list[list[str]]

    async def send(self, records: Sequence[Record], ids: Sequence[str]) -> Verdict:
        assert len(records) == len(ids)
        self.ids.append(list(ids))
        return self.verdict


class Kept:
    """Stands for where the refused are kept."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, int, str]] = []

    async def keep(self, endpoint: Endpoint, of: Record, why: str) -> None:
        self.kept.append((endpoint.id, of.offset, why))


def take(verdict: Verdict, *records: Record) -> tuple[Verdict, Sent, Delivery]:
    sent = Sent(verdict)
    delivery = Delivery(ACME, sent, Kept())  # type: ignore[arg-type]
    return asyncio.run(delivery.take(records)), sent, delivery


def test_only_the_tenants_own_alerts_are_sent() -> None:
    said, sent, delivery = take(Done(), record(1, "acme"), record(2, "globex"), record(3, "acme"))

    assert (said, sent.ids, delivery.delivered) == (Done(), [["a1", "a3"]], 2)


def test_nothing_is_sent_where_nothing_is_the_tenants() -> None:
    said, sent, delivery = take(Again("down"), record(1, "globex"), Record("alerts", 0, 2, b"1", b"no json", 0))

    assert (said, sent.ids, delivery.delivered) == (Done(), [], 0)


def test_a_failure_is_passed_on_and_counts_nothing() -> None:
    said, _, delivery = take(Again("down"), record(1, "acme"))

    assert (said, delivery.delivered) == (Again("down"), 0)


def test_what_is_refused_for_good_is_kept_with_the_reason() -> None:
    kept = Kept()
    delivery = Delivery(ACME, Sent(Done()), kept)  # type: ignore[arg-type]

    asyncio.run(delivery.put_aside(record(7, "acme"), Refused("the endpoint answered 422")))

    assert kept.kept == [("e1", 7, "the endpoint answered 422")]
    assert delivery.refused == 1
