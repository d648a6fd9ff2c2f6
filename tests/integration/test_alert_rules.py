"""A new rule is evaluated by the component `alerts`, emitted to its topic, and listed."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from deploy.cassandra import session_of
from deploy.jars import ensure_jars
from deploy.local.stack import Stack
from deploy.settings import Settings
from master_dataset.registry.registry import Registry
from master_dataset.registry.rule_versions import RuleVersions
from master_dataset.registry.store_tables import Edit
from master_dataset.registry.stores import Store
from serving_layer.alerts.history import AlertListing, AlertListPage, AlertsRequest
from serving_layer.alerts.rules import AlertRules, RuleAuthor
from serving_layer.tables import AlertTables, AsyncSession, RuleTables
from tests.integration.conftest import PATIENCE_SECONDS
from tests.support.free_settings import settings_on_free_ports
from tests.support.terms import ONE_CLOCK
from tests.system.drills.alert_readers import read_alerts

RULE = {"kind": "threshold", "id": "any", "metric": "total_transactions_count", "window": "hour", "above": 0}


@pytest.mark.nightly
def test_a_rule_that_is_written_is_followed_by_the_process_of_the_stack(tmp_path: Path) -> None:
    settings = quick_settings(tmp_path)
    ensure_jars(settings)
    with Stack(settings, only=["kafka", "cassandra", "alerts"]):
        session = session_of(settings.cassandra.address)
        store = Store(id="1", timezone="UTC")
        Registry(session).save(Edit([store]), ONE_CLOCK)
        rules = AlertRules(RuleTables(RuleVersions(session, timedelta(seconds=2))))
        author = RuleAuthor("default", {"1": store})
        first = rules.create(author, RULE)
        again = rules.replace(author, "any", RULE, first.version)
        records = records_of_receipts(settings)
        page = listed(AlertListing(AlertTables(AsyncSession(session))))

    assert first == again
    assert [each.alert_id for each in page.alerts] == [each["alert_id"] for each in records if each["kind"] == "raised"]
    assert page.kept.as_of
    assert page.kept.as_of >= page.alerts[0].raised_at
    assert page.kept.complete_from is None
    assert [(each["kind"], each["rule"], each["version"], each["provisional"]) for each in records] == [
        ("raised", "any", 1, True)
    ]


def listed(alerts: AlertListing) -> AlertListPage:
    """As soon as something is, and it is said as of when that is all."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        page = asyncio.run(alerts.page(AlertsRequest("default")))
        if page.alerts and page.kept.as_of and page.kept.as_of >= page.alerts[0].raised_at:
            return page
        time.sleep(0.5)
    raise AssertionError


def quick_settings(folder: Path) -> Settings:
    """Rules hold two seconds after they were written."""
    return settings_on_free_ports(folder, skew_seconds=0.5, alert_rules_seconds=2, alerts_tick_seconds=1)


def records_of_receipts(settings: Settings) -> list[Any]:
    """A receipt every half second, until an alert comes of them: first the store and the rule have to hold."""
    producer = Producer({**settings.kafka.connection.client(), "partitioner": "murmur2_random"})
    deadline = time.monotonic() + PATIENCE_SECONDS
    now = datetime.now(UTC)
    for number in count():
        assert time.monotonic() < deadline
        body = {
            "happened_at": now.isoformat(),
            "operation_id": 1,
            "transaction_id": number,
            "vendor_fiscal_module": 1,
            "transactions": [],
        }
        producer.produce("pos_transactions", key="1", value=json.dumps(body).encode())
        producer.flush(10)
        if records := read_alerts(settings.kafka.connection):
            return records
        time.sleep(0.5)
    raise AssertionError
