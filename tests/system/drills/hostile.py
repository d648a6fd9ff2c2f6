"""`python -m tests.system.drills.hostile`: honest clients next to hostile ones, on a real stack.

Calm and hostile rounds alternate, so that other load on the machine affects both. Prints the latency of honest clients
in each, how soon hostile connections were closed, and the memory of the process; appends one line to the ledger,
hostile.jsonl. `--long`: 2,000 slowloris clients. `--object-store`: tables and checkpoints are on an object store, which
loses the answer of every twentieth commit.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from deploy.local.records import Records
from tests.integration.conftest import Stack, around_now, settings_of
from tests.support.object_stores import object_store_for_stacks
from tests.system.drills.faults import exit_on_sigterm
from tests.system.drills.honest import Noted
from tests.system.drills.ledger_line import append

TENANTS = 4
MB = 10**6
CLOSED_SECONDS, MOST_MB, RATIO = 15.0, 512, 2.0
"""What is promised: hostile connections are ended by then; the process takes no more; p99 is no more times longer."""
PATIENCE_SECONDS, GATHERING_SECONDS = 300.0, 3.0


@dataclass
class Round:
    """One of both kinds. `peak_mb`, `cpu`: memory and busy cores of the process that answers."""

    noted: Noted
    peak_mb: float
    cpu: float


@dataclass
class Report:
    """What was found, over all rounds of a kind."""

    connections: int
    others: int
    rounds: int
    seconds: float
    before: Round | None = None
    calm: list[Round] = field(default_factory=list)
    hostile: list[Round] = field(default_factory=list)
    lasted: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    attackers_cpu_s: float = 0.0
    counted: int = 0

    @property
    def accepted(self) -> int:
        """Events that were accepted from honest clients."""
        before = [self.before] if self.before else []
        return sum(each.noted.accepted for each in (*before, *self.calm, *self.hostile))

    def summary(self) -> dict[str, Any]:
        """As a line of the ledger."""
        return {
            "at": f"{datetime.now(UTC):%F}",
            "connections": self.connections,
            "others": self.others,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "calm": _honest(self.calm),
            "hostile": _honest(self.hostile),
            "p99_ratio": self.ratios(),
            "ended": {
                kind: {"n": len(each), "p50_s": _at(each, 0.5), "max_s": _at(each, 1)}
                for kind, each in self.lasted.items()
            },
            "hostile_statuses": dict(self.statuses),
            "attackers_cpu_s": round(self.attackers_cpu_s, 1),
            "accepted": self.accepted,
            "counted": self.counted,
            "wrong": self.wrong(),
        }

    def ratios(self) -> dict[str, float]:
        """How many times longer honest clients waited, beside those that mean no good."""
        kinds = ("reads", "posts")
        return {what: round(p99(taken(self.hostile, what)) / p99(taken(self.calm, what)), 2) for what in kinds}

    def wrong(self) -> list[str]:
        """Whatever may not be: nobody honest is refused or waits much longer, nothing is lost, nobody hostile lasts."""
        refused = [status for each in (*self.calm, *self.hostile) for status in each.noted.statuses if status[0] != "2"]
        found = [f"honest clients got {status}" for status in sorted(set(refused))]
        longest = {kind: max(each, default=0) for kind, each in self.lasted.items()}
        found += [
            f"p99 of {what} was {each} times that of calm" for what, each in self.ratios().items() if each > RATIO
        ]
        found += [f"{kind} lasted {each:.1f} s" for kind, each in longest.items() if each > CLOSED_SECONDS]
        found += [f"{each:.0f} MB" for each in [max(each.peak_mb for each in self.hostile)] if each > MOST_MB]
        return found + ([f"{self.accepted} accepted, {self.counted} counted"] if self.accepted != self.counted else [])


def taken(rounds: Sequence[Round], what: str) -> list[float]:
    """Seconds of all requests of a kind."""
    return [seconds for each in rounds for seconds in getattr(each.noted, what)]


def p99(seconds: Sequence[float]) -> float:
    """In seconds."""
    return _at(seconds, 0.99, 4)


def _at(seconds: Sequence[float], share: float, digits: int = 2) -> float:
    ordered = sorted(seconds) or [0.0]
    return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], digits)


def _honest(rounds: Sequence[Round]) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "peak_mb": round(max(each.peak_mb for each in rounds)),
        "cpu": round(sum(each.cpu for each in rounds) / len(rounds), 2),
    }
    for what in ("reads", "posts"):
        seconds = taken(rounds, what)
        summary[what] = {
            "n": len(seconds),
            "p50_ms": round(_at(seconds, 0.5, 4) * 1000, 1),
            "p99_ms": round(p99(seconds) * 1000, 1),
        }
    return summary


class Drill:
    """`run` once, against a stack that runs."""

    def __init__(self, stack: Stack, report: Report) -> None:
        self._stack, self._report, self._port = stack, report, stack.settings.api.port
        self._api = psutil.Process(Records(stack.settings.home).pid("api"))
        self._keys = {f"shop-{number}": self._key(f"tenant-{number}") for number in range(TENANTS)}
        self._hostile_keys = [self._key("hostile") for _ in range(2)]

    def run(self) -> Report:
        """Calm, hostile, calm, hostile, and so on."""
        report = self._report
        report.before = self._round(5.0)  # whatever is done once is done before anything is measured
        for number in range(report.rounds):
            sys.stderr.write(f"  round {number + 1} of {report.rounds}\n")
            report.calm.append(self._round(report.seconds))
            attacking = self._started("attackers", *self._hostile_keys, report.connections, report.others)
            time.sleep(GATHERING_SECONDS)
            report.hostile.append(self._round(report.seconds))
            summary, _ = attacking.communicate(timeout=PATIENCE_SECONDS)
            self._add(json.loads(summary))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (counted := self._counted()) != report.accepted and time.monotonic() < deadline:
            time.sleep(0.5)
        report.counted = counted
        return report

    def _round(self, seconds: float) -> Round:
        began, before = time.monotonic(), sum(self._api.cpu_times()[:2])
        working = self._started("honest", seconds, json.dumps(self._keys))
        peak, done = 0.0, threading.Event()

        def watch() -> None:
            nonlocal peak
            while not done.wait(0.1):
                peak = max(peak, self._api.memory_info().rss / MB)

        watching = threading.Thread(target=watch)
        watching.start()
        noted, _ = working.communicate(timeout=seconds + PATIENCE_SECONDS)
        done.set()
        watching.join()
        cpu = (sum(self._api.cpu_times()[:2]) - before) / (time.monotonic() - began)
        return Round(Noted(**json.loads(noted)), peak, cpu)

    def _started(self, who: str, *words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"tests.system.drills.{who}", str(self._port), *map(str, words)]
        # In a session of its own, so that it does not wait where Linux has others of this drill wait for each other.
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def _add(self, harm: dict[str, Any]) -> None:
        for kind, lasted in harm["lasted"].items():
            self._report.lasted.setdefault(kind, []).extend(lasted)
        self._report.statuses.update(harm["statuses"])
        self._report.attackers_cpu_s += harm["cpu_s"]

    def _key(self, tenant: str) -> str:
        made = self._stack.galatea("keys", "create", "--tenant", tenant, "--scope", "ingest", "--scope", "read")
        return str(made["key"])

    def _counted(self) -> int:
        arguments = {"store": [*self._keys], "grain": "total", "timezone": "UTC", **around_now()}
        series = self._stack.get("/v1/metrics/total_transactions_count", **arguments)["series"]
        return sum(each["points"][0]["value"] or 0 for each in series)


def main() -> int:
    """Exit 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.hostile", description=__doc__)
    parser.add_argument("--connections", type=int, default=50, help="slowloris")
    parser.add_argument("--others", type=int, default=50, help="of each other kind at most")
    parser.add_argument("--long", action="store_true", help="2,000 of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30, help="of each round")
    parser.add_argument("--object-store", action="store_true", help="tables and checkpoints are on one")
    arguments = parser.parse_args()
    exit_on_sigterm()
    report = Report(
        2_000 if arguments.long else arguments.connections, arguments.others, arguments.rounds, arguments.seconds
    )
    with tempfile.TemporaryDirectory(prefix="galatea-hostile-") as folder, ExitStack() as ended:
        served = ended.enter_context(object_store_for_stacks()) if arguments.object_store else None
        settings, environment = settings_of(Path(folder) / "home", **(served.variables if served else {}))
        stack = Stack(settings, environment)
        try:
            stack.run("up", "--detach", "--without-airflow")
            shops = [
                {"id": f"shop-{number}", "timezone": "UTC", "tenant": f"tenant-{number}"} for number in range(TENANTS)
            ]
            (Path(folder) / "stores.yaml").write_text(json.dumps({"stores": shops}))
            stack.run("stores", "load", str(Path(folder) / "stores.yaml"))
            if served is not None:
                served.lose_answers()
            summary = Drill(stack, report).run().summary() | {"object_store": arguments.object_store}
        finally:
            stack.run("down")
    sys.stdout.write(json.dumps(summary, indent=1) + "\n")
    append("hostile", json.dumps(summary))
    return int(bool(summary["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
