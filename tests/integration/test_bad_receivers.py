"""Alerts from a real topic to a receiver that fails in every way: each once by its id, in order for each store."""

from uuid import uuid4

import pytest

from master_dataset.kafka.consumer import ConsumerLimits
from master_dataset.kafka.topics import Topics, TopicSettings
from speed_layer.webhooks import client
from tests.integration.conftest import Stack
from tests.support.alert_topic import ACME, tell, until
from tests.support.webhook_receivers import EACH, REDIRECTS, BadReceiver
from tests.support.webhooks import RunningEndpoint

NUMBERS, REDIRECTED = range(24), (5, 6, 15)
KEPT = [number for number in NUMBERS if number not in REDIRECTED]


def test_a_receiver_that_hangs_redirects_and_drops_what_it_took_has_each_alert_once_and_in_order(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DEADLINE_SECONDS", 0.3)
    kafka, topic = stack.settings.kafka.connection, f"alerts_{uuid4().hex[:8]}"
    Topics(kafka).create([topic], TopicSettings(3, 1, 3_600_000))
    tell(kafka, topic, NUMBERS)

    with (
        BadReceiver(REDIRECTED) as receiver,
        RunningEndpoint(kafka, topic, receiver.url, limits=ConsumerLimits(batch=4, longest_wait=0.1)) as running,
    ):
        until(lambda: len(receiver.kept) + len(running.undelivered) == len(ACME) * len(NUMBERS))
        until(lambda: running.state().records == 0)
        undelivered = sorted(running.undelivered)

    assert {store: receiver.numbers(store) for store in ACME} == dict.fromkeys(ACME, KEPT)
    assert undelivered == [(store, "the endpoint answered 307") for store in sorted(ACME) for _ in REDIRECTED]
    assert set(receiver.did) == {*EACH, REDIRECTS}, "each happened, and nobody went elsewhere"
    assert receiver.again > 0
