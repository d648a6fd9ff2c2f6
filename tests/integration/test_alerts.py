"""The relay against a real broker: killed anywhere it tells each alert once, and of two only one may go on."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from deploy.jars import ensure_jars
from deploy.settings import Settings
from deploy.stack.stack import Stack
from speed_layer.alerts.inlet import Inlet
from speed_layer.alerts.sender import Discarded, Fenced, Sender
from tests.drills.alerts import play, read_alerts, settings_for
from tests.world.alerting import WorldLog, at_ms, book_of

RULE = {"kind": "threshold", "id": "any", "metric": "total_transactions_count", "window": "hour", "above": 0}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Settings]:
    """A broker by itself."""
    settings = settings_for(tmp_path)
    ensure_jars(settings)
    with Stack(settings, only=["kafka"]):
        yield settings


def test_a_relay_that_is_killed_twenty_times_tells_each_alert_once(broker: Settings) -> None:
    played = play(broker, kills=20, alerts=1500, seed=20261122)

    assert played.is_well, played
    assert played.crashed > 5


def test_of_two_relays_with_one_identity_the_first_can_tell_nothing_more(broker: Settings) -> None:
    alerts = WorldLog("pos_transactions", book_of(RULE)).sold(at_ms("2026-03-07 10:00"), 1)
    group = Inlet(broker.kafka_bootstrap, ["pos_transactions"], 0).group
    first, second = Sender(broker.kafka_bootstrap, 0), Sender(broker.kafka_bootstrap, 0)
    first.settle()
    second.settle()

    with pytest.raises((Fenced, Discarded)):
        first.send(alerts, {"pos_transactions": 7}, group)
    with suppress(Discarded):  # on a busy machine a connection may end meanwhile; what is committed is asked for
        second.send(alerts, {"pos_transactions": 8}, group)

    assert [each["alert_id"] for each in read_alerts(broker.kafka_bootstrap)] == [alerts[0].alert_id]
    assert Inlet(broker.kafka_bootstrap, ["pos_transactions"], 0).committed() == {"pos_transactions": 8}
