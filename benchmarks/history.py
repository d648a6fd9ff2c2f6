"""Days of receipts in a home of their own: rebuilt in full once, then each time receipts of one day arrive late.

Each rebuild is a new process, as the command starts one, so each has a cold JVM.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, Schema

from benchmarks.master import FIRST_DAY, USUAL, Shape, add, make
from master_dataset.delta.tables import event_schema
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from deploy.settings import Settings

CUT = datetime(2100, 1, 1, tzinfo=UTC)  # later than every event of the generated table
CHANGED, FEWEST = 0.05, 20  # share and minimum number of a day's receipts that are late

Rebuilt = dict[str, Any]
"""What `benchmarks.one_rebuild` prints."""


class History:
    """Of two with as many receipts a day the shorter one is the beginning of the longer one, to the last receipt."""

    def __init__(  # noqa: PLR0913 - the parameters of a history
        self,
        settings: "Settings",
        receipts: int,
        days: int,
        first_day: date = FIRST_DAY,
        cut: datetime = CUT,
        *,
        shape: Shape = USUAL,
    ) -> None:
        """Make the master dataset; rebuilds then want this home's Cassandra. `cut`: of the first of them."""
        self._settings, self._days, self._first_day, self._cut = settings, days, first_day, cut
        Path(settings.paths.master_uri).mkdir()
        for topic, source in registered_sources().items():
            if topic != POS_TRANSACTIONS.topic:  # a started archive has created all tables
                path = f"{settings.paths.master_uri}/{topic}"
                DeltaTable.create(path, Schema.from_arrow(event_schema(source)), partition_by=["day"])
        self.master = make(Path(settings.paths.master_uri) / POS_TRANSACTIONS.topic, receipts, days, first_day, shape)
        self._late = max(FEWEST, int(receipts / days * CHANGED))
        self._touched = 0

    @property
    def facts(self) -> dict[str, int]:
        """How much it is."""
        made = self.master
        return {"days": self._days, "receipts": made.receipts, "deliveries": made.deliveries, "lines": made.lines}

    def rebuild(self) -> Rebuilt:
        """All of it."""
        return self._rebuilt(self._cut, "full", self._days)

    def touch(self, day: int) -> Rebuilt:
        """Let receipts of that day come late, and rebuild what they touched. Days are counted from 0."""
        self._touched += 1
        cut = self._cut + timedelta(hours=self._touched)
        add(self.master, self._first_day + timedelta(days=day), self._late, cut - timedelta(minutes=30))
        return self._rebuilt(cut, "touched", 1)

    def _rebuilt(self, cut: datetime, what: str, days: int) -> Rebuilt:
        asked_at = datetime.now(UTC).isoformat()
        command = [sys.executable, "-m", "benchmarks.one_rebuild", cut.isoformat(), what, asked_at]
        environment = os.environ | self._settings.environment()
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        found: Rebuilt = json.loads(done.stdout.splitlines()[-1])
        if found["days"] != days:
            raise RuntimeError(f"the rebuild found {found['days']} days to compute, and {days} had changed")
        return found


def median_of(rebuilds: Sequence[Rebuilt], key: str = "seconds") -> float:
    """Of their output."""
    return float(median(each[key] for each in rebuilds))
