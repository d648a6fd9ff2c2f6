"""A rebuild after one of 365 days has changed, beside a full one of the same year: both to Cassandra and published.

Each in a process of its own, as the command makes one, so each meets a Java that has compiled nothing yet. Timed is
from the plan, which finds the changed day, to the publication; the start of Spark and the fence are the same for both.
"""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import local
from benchmarks.master import FIRST_DAY, add, make
from benchmarks.measured import Measured
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

FULL = 5_000_000
"""As many as `rebuild` has: what is measured beside it is the same full rebuild."""
DAYS = 365
ROUNDS = 3
AT_MOST = 1 / 15
CUT = datetime(2100, 1, 1, tzinfo=UTC)  # after everything in the generated table
CHANGED = 0.05  # of a day's receipts come late


def incremental(size: int) -> list[Measured]:
    """`size` receipts over the year; the full rebuild once, then the median of three days that change in turn."""
    with local.own_home() as settings:
        Path(settings.master_uri).mkdir()
        master = make(Path(settings.master_uri) / POS_TRANSACTIONS.topic, size, DAYS)
        with local.running(settings, "cassandra"):
            full = _rebuilt(CUT, "full")
            touched = []
            for number in range(1, ROUNDS + 1):
                day = FIRST_DAY + timedelta(days=90 * number)
                cut = CUT + timedelta(hours=number)
                add(master, day, max(20, int(size / DAYS * CHANGED)), cut - timedelta(minutes=30))
                touched.append(_rebuilt(cut, "touched"))
    if (found := [each["days"] for each in (full, *touched)]) != [DAYS, *(1 for _ in touched)]:
        raise RuntimeError(f"the rebuilds found {found} days to compute")
    details = {
        "receipts": master.receipts, "deliveries": master.deliveries, "lines": master.lines, "full": full,
        "touched": touched, "cpu_ratio": round(_median(touched, "cpu_seconds") / full["cpu_seconds"], 4),
        "ratio_with_start": round(_whole(touched) / _whole([full]), 4),
    }  # fmt: skip
    seconds = (_median(touched, "seconds"), full["seconds"])
    return [Measured("incremental", *seconds, "s", "full rebuild", better="low", limit=AT_MOST, details=details)]


def _rebuilt(cut: datetime, what: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.one_rebuild", cut.isoformat(), what]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _median(found: list[dict[str, Any]], key: str) -> float:
    return float(median(each[key] for each in found))


def _whole(found: list[dict[str, Any]]) -> float:
    return _median(found, "seconds") + _median(found, "start_seconds")
