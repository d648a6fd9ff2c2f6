"""One drill: start a stack, send events, inject faults, and compare the final answers with what was sent."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from deltalake import DeltaTable

from deploy.local.stack import Stack
from deploy.settings import Settings
from tests.system.drills.faults import COMPONENTS, Faults, Order, Report, wait_until
from tests.system.drills.receipts import STORES, Expected, Feeding, received_in_the_past, split, stream
from tests.system.drills.sampler import METRIC, Sampler, Seen, total_of

PAST_SHARE = 0.2
"""Of the stream, as if received ten hours to one hour ago: what is sent again now repeats it hours later."""
REBUILD_CRASHES = (
    "rebuild.blocks:1",
    "rebuild.view:2",
    "rebuild.manifest:1",
    "rebuild.published:1",
    "rebuild.marked:1",
)


class Drill:
    """`run` once."""

    def __init__(self, order: Order, settings: Settings, outcome: Callable[[str], None] = lambda _: None) -> None:
        """`settings`: of a home that does not exist yet. `outcome` is called with every fault."""
        self._settings, self._report_fault = settings, outcome
        self._chance = random.Random(order.seed)
        self._faults = Faults(settings)
        self._expected = Expected()
        self._began = datetime.now(UTC)
        self._report = Report(order)

    def run(self) -> Report:
        """Start, feed, hurt, wait, compare, stop."""
        order, report = self._report.order, self._report
        past, present = split(stream(order.seed, order.receipts, self._began), PAST_SHARE)
        with Stack(self._settings):
            first, last = (self._began - timedelta(hours=hours) for hours in (10, 1))
            received_in_the_past(self._settings, past, first, last, self._expected)
            feeding = Feeding(self._settings, present, len(present) / order.seconds, self._expected)
            with self._sampled() as sampler:
                feeding.start()
                for fault in self._plan():
                    self._report_fault(fault)
                    report.faults.append(self._do(fault))
                feeding.finish()
                self._settle()
                report.wrong += sampler.wrong()[:20]
            self._compare(len(past) + feeding.acknowledged, sampler.seen)
        report.crashed = self._faults.crashed()
        report.wrong += [f"{point} was not reached" for point in self._missing(report.crashed)]
        report.seconds = round((datetime.now(UTC) - self._began).total_seconds(), 1)
        return report

    def _missing(self, crashed: list[str]) -> set[str]:
        return set(filter(None, self._settings.failpoints.crash_at.split(","))) - set(crashed)

    def _plan(self) -> Iterator[str]:
        """Every component is killed, some are paused, speed loses its checkpoint and is restarted; rebuilds between."""
        order = self._report.order
        paused = self._chance.sample(COMPONENTS, order.pauses)
        hurt = [f"kill {name}" for name in COMPONENTS] + [f"pause {name}" for name in paused]
        hurt += ["lose checkpoint", "restart"]
        self._chance.shuffle(hurt)
        rebuilds = [f"rebuild {number}" for number in range(order.rebuilds)]
        places = sorted(self._chance.sample(range(1, len(hurt) + 1), min(order.rebuilds, len(hurt))))
        for place, rebuild in reversed(list(zip(places, rebuilds, strict=False))):
            hurt.insert(place, rebuild)
        yield from hurt

    def _do(self, fault: str) -> str:
        what, _, name = fault.partition(" ")
        if what == "kill":
            time.sleep(self._chance.uniform(1, 5))
            return self._faults.kill(name)
        if what == "pause":
            return self._faults.pause(name, self._chance.uniform(2, 6))
        if what == "lose":
            return self._faults.lose_speed_checkpoint()
        if what == "restart":
            return self._restart()
        crash = "" if int(name) % 2 else REBUILD_CRASHES[int(name) // 2 % len(REBUILD_CRASHES)]
        return self._rebuild(crash)

    def _restart(self) -> str:
        """A new generation by hand, until readers have moved to it."""
        wait_until(self._faults.all_run, "every component to be back")
        done = self._galatea("speed", "restart", "--wait", "--json")
        outcome = f"speed restart: {_ended(done)}"
        if done.returncode:
            self._report.wrong.append(outcome)
            return outcome
        moved = json.loads(done.stdout)
        if moved["generation"] <= moved["replaced"]:
            self._report.wrong.append(f"{outcome}: {moved}")
        return outcome

    def _rebuild(self, crash: str) -> str:
        """A rebuild that crashes or finds a neighbour down is started again, as an operator would."""
        wait_until(self._faults.all_run, "every component to be back")
        done = self._galatea("rebuild", *(["--full"] if crash else []), crash_at=crash)
        outcome = f"rebuild{f' --full crashing at {crash}' if crash else ''}: {_ended(done)}"
        if crash and crash not in self._faults.crashed():
            self._report.wrong.append(f"{outcome}: it did not crash")
        if done.returncode:
            again = self._galatea("rebuild")
            outcome += f"; again: {_ended(again)}"
            if again.returncode:
                self._report.wrong.append(outcome)
        return outcome

    @contextmanager
    def _sampled(self) -> Iterator[Sampler]:
        sampler = Sampler(self._settings, self._expected, self._span())
        sampler.start()
        try:
            yield sampler
        finally:
            sampler.leave()

    def _settle(self) -> None:
        """Nothing is under way any more: the last rebuild covers everything that was sent."""
        wait_until(self._faults.all_run, "every component to be back")
        done = self._galatea("rebuild", "--wait")
        if done.returncode:
            self._report.wrong.append(f"the last rebuild: {_ended(done)}")
        wait_until(lambda: self._value(METRIC) == self._expected.receipts, "every receipt to be counted")

    def _compare(self, acknowledged: int, seen: Seen) -> None:
        report, expected = self._report, self._expected
        report.sent, report.acknowledged = expected.sent, acknowledged
        report.answers, report.refusals = seen.answers, dict(seen.refusals)
        verdict = json.loads(self._galatea("verify", "--json").stdout)
        report.cells, report.differing = verdict["cells"], verdict["differing"]
        report.events = self._value(METRIC)
        dead_letters = json.loads(self._galatea("dead-letters", "list", "--json").stdout)["counts"]
        report.conflicts = dead_letters.pop("conflicting_duplicate", 0)
        report.dead_letters = dead_letters
        table = DeltaTable(f"{self._settings.paths.master_uri}/pos_transactions")
        places = table.to_pyarrow_dataset().to_table(columns=["partition", "offset"])
        report.archived = len(set(zip(*(places[name].to_pylist() for name in places.column_names), strict=True)))
        found = {
            "acknowledged": (acknowledged, expected.sent),
            "events": (report.events, expected.receipts),
            "net sales in cents": (round(self._value("net_sales") * 100), expected.minor),
            "not_json": (dead_letters, {"not_json": expected.broken}),
            "conflicts": (report.conflicts, expected.conflicts),
            "conserved": (report.archived + sum(dead_letters.values()), acknowledged),
            "differing": (report.differing, 0),
        }
        report.wrong += [f"{what}: {is_} instead of {must}" for what, (is_, must) in found.items() if is_ != must]

    def _galatea(self, *words: str, crash_at: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **self._settings.environment(), "GALATEA_CRASH_AT": crash_at}
        command = [sys.executable, "-m", "galatea.cli.main", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1200)

    def _value(self, metric: str) -> Any:
        """Of all stores together; -1 while it is refused, or not known yet."""
        key = (self._settings.home / "operator.key").read_text().strip()
        url = f"{self._settings.api_url}/v1/metrics/{metric}"
        parameters = {"store": STORES, "grain": "total", **self._span()}
        answer = httpx.get(
            url,
            params=parameters,
            headers={"Authorization": f"Bearer {key}"},
            timeout=60,
            trust_env=False,
            verify=self._settings.api_trust,
        )
        if answer.status_code != httpx.codes.OK:
            time.sleep(0.5)
            return -1
        total = total_of(answer.json())
        return -1 if total is None else total

    def _span(self) -> dict[str, str]:
        first, last = (self._began + timedelta(days=days) for days in (-30, 2))
        return {"from": f"{first:%Y-%m-%d}", "to": f"{last:%Y-%m-%d}"}


def _ended(done: subprocess.CompletedProcess[str]) -> str:
    last = done.stderr.strip().splitlines()[-1:] if done.returncode else []
    return " ".join([str(done.returncode), *last])
