"""The speed layer is killed while receipts arrive: each counts once, however often it was sent."""

import os
import signal
import time
from datetime import UTC, datetime
from random import Random
from typing import Any

from deploy.local.records import Records
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now
from tests.integration.test_ledger import Sent, send

STORES = ("killed-1", "killed-2")
BATCHES, TOGETHER, KILLED_AFTER = 12, 20, 4


def kill_speed(stack: Stack) -> None:
    """As `kill -9`, while it reads; returns when the supervisor has started it again."""
    records = Records(stack.settings.home)
    old = records.pid("speed")
    assert old is not None
    os.kill(old, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while records.pid("speed") in (old, None):
        assert time.monotonic() < deadline, "speed is not started again"
        time.sleep(0.1)


def shown(stack: Stack, metric: str) -> dict[str, Any]:
    body = stack.get(f"/v1/metrics/{metric}", store=list(STORES), grain="total", **around_now())
    return {series["store"]: series["points"][0]["value"] or 0 for series in body["series"]}


def test_each_receipt_counts_once_although_speed_is_killed_while_they_arrive(stack: Stack) -> None:
    chance, receipts = Random(7), list[Sent]()
    for batch in range(BATCHES):
        now = datetime.now(UTC)
        new = [
            Sent(chance.choice(STORES), batch * TOGETHER + number, now, float(chance.randint(1, 99)))
            for number in range(TOGETHER)
        ]
        receipts += new
        send(stack, [*new, *chance.sample(receipts, 5)])()
        if batch == KILLED_AFTER:
            kill_speed(stack)
        time.sleep(0.2)
    due = {store: sum(each.store == store for each in receipts) for store in STORES}

    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := shown(stack, "total_transactions_count")) != due:
        assert all(found[store] <= due[store] for store in STORES), found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)

    assert shown(stack, "net_sales") == {
        store: sum(each.total for each in receipts if each.store == store) for store in STORES
    }
