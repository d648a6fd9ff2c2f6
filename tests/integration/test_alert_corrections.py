"""An alert that turns out to be wrong, and one that nobody could raise in time, from the topic to the publication."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer

from batch_layer.alerts.alert_log import AlertLog
from deploy.batch import recompute
from deploy.cassandra import session_of
from deploy.jars import ensure_jars
from deploy.local.stack import Stack
from deploy.secrets_key import alert_signatures_of
from deploy.settings import Settings
from master_dataset.registry.registry import Registry
from master_dataset.registry.rule_versions import RuleVersions
from master_dataset.registry.store_tables import Edit
from master_dataset.registry.stores import Store
from tests.integration.conftest import PATIENCE_SECONDS, settings_of
from tests.integration.test_ledger import Sent
from tests.support.terms import ONE_CLOCK
from views.alerts.alert import Alert, follow_up_id
from views.alerts.rule_validation import parse_rule
from views.control.publication import PointerRow
from views.control.recompute import RecomputeRequest

NOW = datetime.now(UTC)
OVER = NOW.replace(minute=NOW.minute // 15 * 15, second=0, microsecond=0) - timedelta(minutes=45)
"""When a business day was over."""
DAY = timedelta(days=1)
SHOP = Store(id="wrong-1", timezone="UTC", day_starts_at=f"{OVER:%H:%M}")
RULE = {"kind": "threshold", "id": "much", "metric": "net_sales", "window": "day", "above": 9}
HOURLY = {"kind": "threshold", "id": "soon", "metric": "net_sales", "window": "15m", "above": 20}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """A stack with a store and rules that have been in the history for days."""
    found, environment = settings_of(
        tmp_path / "home", GALATEA_ALERT_RULES_SECONDS="2", GALATEA_ALERTS_TICK_SECONDS="1"
    )
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ensure_jars(found)
    with Stack(found, only=["kafka", "cassandra"]):
        session = session_of(found.cassandra.address)
        Registry(session).save(Edit([SHOP]), ONE_CLOCK)
        past = RuleVersions(session, timedelta(), now=lambda: NOW - 3 * DAY)
        past.add("store", SHOP.id, SHOP.to_json())
        for rule in (RULE, HOURLY):
            past.add("rule", f"default/{rule['id']}", msgspec.json.encode(parse_rule(rule)).decode())
    with Stack(found, only=["kafka", "cassandra", "archive", "speed", "alerts"]):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not PointerRow(session_of(found.cassandra.address)).read().generation:  # without it, no ledger is written
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield found


def send(settings: Settings, number: int, happened_at: datetime, total: float) -> None:
    producer = Producer({**settings.kafka.connection.client(), "partitioner": "murmur2_random"})
    sent = Sent(SHOP.id, number, happened_at, abs(total))
    value = (
        sent.value() if total > 0 else sent.value().replace(b'"amount": 1', b'"amount": -1').replace(b'"total"', b'"x"')
    )
    producer.produce("pos_transactions", value, SHOP.id)
    assert producer.flush(60) == 0


def rebuilt(settings: Settings) -> dict[str, Any]:
    """As `galatea rebuild --wait`."""

    class Steps:
        def step(self, done: int, total: int, what: str) -> None:
            """Nobody looks."""

    done = recompute(settings, RecomputeRequest(wait=True), why="a test", by="a test", steps=Steps())
    return {"state": done.state, "publication": done.publication}


def emitted_when(settings: Settings, is_enough: Callable[[Sequence[Alert]], bool]) -> Sequence[Alert]:
    """The emitted alerts, once they are enough."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    log = AlertLog(settings.kafka.connection, alert_signatures_of(settings))
    while not is_enough(alerts_emitted := list(log.emitted(0))):
        assert time.monotonic() < deadline, alerts_emitted
        time.sleep(0.2)
    return alerts_emitted


def kinds(alerts_emitted: Sequence[Alert], rule: str) -> list[tuple[str, bool, bool, str | None]]:
    of = [each for each in alerts_emitted if each.rule == rule]
    return [(each.kind, each.provisional, each.late, each.cause) for each in of if each.kind != "resolved"]


@pytest.mark.nightly
def test_an_alert_that_a_late_event_makes_wrong_is_retracted_once_and_a_missed_one_is_raised(
    settings: Settings,
) -> None:
    send(settings, 1, OVER - timedelta(minutes=20), 10)
    [raised] = emitted_when(settings, lambda alerts_emitted: len(alerts_emitted) == 1)
    send(settings, 2, OVER - DAY + timedelta(minutes=1), -4)  # too old for the alert processor and speed
    send(settings, 3, NOW - timedelta(hours=5), 3)

    first = rebuilt(settings)
    wrong = emitted_when(settings, lambda alerts_emitted: any(each.kind == "retracted" for each in alerts_emitted))
    again = rebuilt(settings)
    send(settings, 4, NOW - timedelta(hours=5), 18)  # too late to be raised by the alert processor
    last = rebuilt(settings)
    after = emitted_when(
        settings, lambda alerts_emitted: sum(each.publication is not None for each in alerts_emitted) == 5
    )
    rebuilt(settings)

    assert raised.provisional
    assert kinds(wrong, "much") == [("raised", True, False, None), ("retracted", False, False, "waited")]
    [retracted] = [each for each in wrong if each.kind == "retracted"]
    assert retracted.alert_id == follow_up_id(raised.alert_id, "retracted")
    assert (str(retracted.shown), str(retracted.corrected)) == ("10", "9")
    assert retracted.publication == first["publication"]
    assert kinds(after, "soon") == [("raised", False, True, "late")]
    assert kinds(after, "much")[2:] == [("raised", False, True, "late")]  # true after all: 27
    assert [each.publication for each in after if each.late] == [last["publication"]] * 4
    assert again["state"] in {"published", "unchanged"}
    log = AlertLog(settings.kafka.connection, alert_signatures_of(settings))
    requested = [each.record.alert_id for each in log.requests(0, log.request_ends())]
    assert sorted(requested) == sorted(e.alert_id for e in after if e.publication)
    assert list(log.emitted(0)) == after
