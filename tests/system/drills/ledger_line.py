"""The ledger of drills: one JSON line per run, in a folder outside of the source tree."""

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from confluent_kafka import libversion

from deploy.jars.cache import locked_jars
from deploy.local.kafka import kafka_version
from tests.system.drills.history import History, Operation
from tests.system.drills.till_roll import TillRoll

FOLDER = Path(os.environ.get("DRILL_LEDGER", ".galatea/ledger"))


def append(name: str, line: str) -> None:
    """Append one line of JSON to the ledger called `name`, which is created if there is none."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def lines_of(name: str) -> list[dict[str, Any]]:
    """All lines of the ledger called `name`, oldest first; none if there is no such ledger."""
    path = FOLDER / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


PASS, FAIL, SKIPPED = "pass", "fail", "skipped"


def _commit() -> str:
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, check=False, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.strip()


@dataclass
class LedgerLine:
    """As docs/explanation/drills.md describes it. `why`: what was wrong, or why it was skipped.

    `_history`: also gets the faults; None: nobody keeps one.
    """

    drill: str
    seed: int
    set: str
    load: dict[str, float]
    version: str = field(default_factory=lambda: version("galatea-platform"))
    commit: str = field(default_factory=_commit)
    versions: dict[str, str] = field(default_factory=dict)
    started_at: str = field(default_factory=lambda: f"{datetime.now(UTC):%FT%TZ}")
    seconds: float = 0.0
    faults: list[dict[str, Any]] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=lambda: {"ok": 0, "info": 0, "fail": 0})
    archived: int = 0
    duplicates: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    rejected: int = 0
    cells_compared: int = 0
    cells_different: int = 0
    recovery_ms: dict[str, int] = field(default_factory=dict)
    verdict: str = PASS
    why: str = ""
    _began: float = field(default_factory=time.monotonic, repr=False)
    _history: History | None = field(default=None, repr=False)

    def fault(self, method: str, target: str, args: str = "") -> None:
        """It is done now."""
        at_ms = round((time.monotonic() - self._began) * 1000)
        fault = {"method": method, "target": target, "args": args}
        self.faults.append({"at_ms": at_ms, **fault})
        if self._history is not None:
            self._history.add(Operation.FAULT, drill=self.drill, **fault)

    def recovered(self, component: str) -> None:
        """It serves again, so long after the last fault."""
        at_ms = round((time.monotonic() - self._began) * 1000)
        self.recovery_ms[component] = at_ms - (self.faults[-1]["at_ms"] if self.faults else 0)

    @contextmanager
    def timed(self, roll: TillRoll) -> Iterator[None]:
        """How long it takes, and what is sent meanwhile."""
        before = len(roll.deliveries), roll.unknown, roll.failed
        self._began = time.monotonic()
        yield
        self.seconds = round(time.monotonic() - self._began, 1)
        after = len(roll.deliveries), roll.unknown, roll.failed
        ok, info, fail = (now - then for now, then in zip(after, before, strict=True))
        self.sent = {"ok": ok, "info": info, "fail": fail}

    def fail(self, why: str) -> None:
        """Something was wrong."""
        self.verdict, self.why = FAIL, f"{self.why}; {why}" if self.why else why

    def summary(self) -> dict[str, Any]:
        """As it is kept."""
        return {each.name: getattr(self, each.name) for each in fields(self) if not each.name.startswith("_")}


def keep(line: LedgerLine) -> None:
    """Append it to the ledger of drills."""
    append("drills", json.dumps(line.summary()))


def machine() -> dict[str, str]:
    """What it ran on."""
    jars = {jar.artifact: jar.version for jar in locked_jars("cassandra")}
    return {
        "kafka": kafka_version(),
        "cassandra": jars["cassandra-all"],
        "spark": version("pyspark"),
        "librdkafka": str(libversion()[0]),
        "python": platform.python_version(),
    }
