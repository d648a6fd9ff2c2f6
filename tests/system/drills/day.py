"""`python -m tests.system.drills.day --seed 7 --hours 24`: a simulated day in half an hour, with a publication an hour.

Every process, this one too, takes its time of day from one simulated clock (`clocks`), and the broker from a clock of
its own that steps back and forth. Sleeps and timeouts by the monotonic clock stay real.

Time jumps: eight times an hour, the clocks of all processes stand at the same moment half a minute to half an hour
later, as when a machine was suspended. In between time is as fast as ever. A clock that runs 60 times as fast would
show less: Java's Kafka client and the Cassandra driver measure their timeouts by the time of day, so half a second
would be too long for any request, and the drill would measure that.

The broker's clock steps within a band that is as wide as the tolerated skew, also while a rebuild runs. Every answer is
exact then. A rebuild during a jump may be refused, by a typed error: its requests are cut off, or its lock expires. If
no clock jumps, it publishes. Every four hours it steps further, forward or back in turn. Then the alarm
`clock_stepped_back` has to be active; no cut is made by a clock that is behind; what is stamped before the published
cut is missing until the next publication, and nothing else is.

Needs a C compiler. Prints one line and appends it to the ledger, day.jsonl.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

from tests.integration.conftest import around_now
from tests.system.drills.clocks import COMPILER, Clock, clock_of_this_process
from tests.system.drills.day_plan import TOLERATED, Kind, Move, planned_hour
from tests.system.drills.drill_stack import DrillStack, Topology, drill_stack
from tests.system.drills.faults import exit_on_sigterm
from tests.system.drills.ledger_line import LedgerLine, append
from tests.system.drills.load import Mix
from tests.system.drills.performance import END, Drill, DrillRun, await_recovery, run_drills
from tests.system.drills.receipts import STORES
from tests.system.drills.rooted import start_with
from tests.system.drills.sampler import METRIC

ID = "D34"
SKEW_SECONDS = 5.0
"""The default of the product."""
SETTINGS = {
    "GALATEA_SKEW_SECONDS": f"{SKEW_SECONDS:g}",
    "GALATEA_EPOCH_SECONDS": "60",
    "GALATEA_VISIT_GAP_SECONDS": "1800",
    "GALATEA_SPEED_TTL_DAYS": "2",
}
ZONES = ("Pacific/Auckland", "Asia/Kathmandu", "Europe/Bratislava", "America/New_York", "Pacific/Honolulu")
"""Where business days are compared: between them, one begins every few hours."""
REACH = 10**6
"""A repeat may repeat any receipt of the day."""
SPREAD_SECONDS = 300.0
NIGHT, BUSY = range(6), range(9, 20)
"""Hours of the day, in UTC."""
BEYOND_SECONDS = 12.0
"""Real time that the broker's clock is beyond the skew."""
TRIES = 4
"""Of a rebuild while no clock jumps."""
ALARM = "clock_stepped_back"
EARLY_MARKER = "stamped a marker"
"""What a rebuild says whose marker was stamped before its cut."""


@dataclass
class Day:
    """What was done, and what was found. `refused`: rebuilds that ended without a publication, by their error.

    `unexplained`: corrections that nothing explains. `unexplained_behind`: those of publications after the clock of the
    broker was behind by more than the skew: no cause of the ledger stands for records that were stamped too early.
    """

    hours: int
    seed: int
    jumps: int = 0
    steps: int = 0
    beyond: int = 0
    publications: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    answers: int = 0
    refusals: dict[str, int] = field(default_factory=dict)
    days_compared: int = 0
    unexplained: int = 0
    unexplained_behind: int = 0
    began: str = ""
    ended: str = ""
    sent: int = 0
    archived: int = 0
    duplicates: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    cells: int = 0
    differing: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        """As it is kept."""
        return json.dumps({"at": f"{datetime.now(UTC):%F}", **asdict(self)})


class SimulatedDay:
    """The drill itself. `real_minutes`: how long an hour takes, besides what it is checked for at its end."""

    def __init__(self, day: Day, clock: Clock, real_minutes: float) -> None:
        """Nothing is done yet."""
        self._day, self._clock, self._real_seconds = day, clock, real_minutes * 60
        self._passed = 0.0
        self._behind = set[int]()

    def live(self, on: DrillStack, chance: Random, line: LedgerLine) -> None:
        """Let the hours pass, one after another."""
        start_with(on, "kafka", self._clock.environment(is_own=True))
        await_recovery(on, "kafka", line)
        broker = on.faults.pid("kafka")
        self._publish(on, line)
        self._day.began = _now()
        for number in range(self._day.hours):
            hour = planned_hour(self._day.seed, number, self._real_seconds, SKEW_SECONDS)
            on.load.pace(rate_at(datetime.now(UTC).hour, line.load["rate"]))
            on.load.go_on()
            self._pass(on, hour.moves, line)
            self._publish_meanwhile(on, chance, line)
            on.look()
            self._compare_days(on, line)
            if hour.beyond:
                on.load.go_on()
                self._step_beyond(on, hour.beyond, chance, line)
            for why in on.sampler.wrong():
                line.fail(f"hour {number}: {why}")
            seen = f"{self._day.publications} publications, {self._day.refused} refused"
            _say(f"hour {number}: {_now()}, {on.roll.sent} sent, {seen}; {line.why or 'all is well'} {on.said}")
        self._day.ended = _now()
        self._read_ledger(on, line)
        if on.faults.pid("kafka") != broker:
            line.fail("the broker was started again, so it has lost its own clock")

    def _pass(self, on: DrillStack, moves: list[Move], line: LedgerLine) -> None:
        """An hour with a rebuild, which may be refused: a jump cuts off its requests, or its lock expires."""
        with ThreadPoolExecutor(1) as pool:
            rebuilding = None
            for move in moves:
                time.sleep(move.pause)
                if move.kind == Kind.REBUILD:
                    rebuilding = pool.submit(on.galatea, "rebuild")
                else:
                    self._move(move.kind, move.seconds, line)
            assert rebuilding is not None
            self._is_published(rebuilding.result(), line)

    def _publish_meanwhile(self, on: DrillStack, chance: Random, line: LedgerLine) -> None:
        """A rebuild while the broker's clock steps within the skew, and no clock jumps: it publishes."""
        width = SKEW_SECONDS * TOLERATED
        with ThreadPoolExecutor(1) as pool:
            publishing = pool.submit(self._publish, on, line)
            while not publishing.done():
                self._move(Kind.STEP, chance.uniform(-width / 2, width / 2), line)
                time.sleep(chance.uniform(0.2, 2))
            publishing.result()

    def _move(self, kind: Kind, seconds: float, line: LedgerLine) -> None:
        if kind == Kind.JUMP:
            self._jump(seconds)
            line.fault("clock", "all", f"{seconds:+.1f} s")
        else:
            self._clock.deviate(seconds)
            self._day.steps += 1
            line.fault("clock", "kafka", f"{seconds:+.2f} s off")

    def _jump(self, seconds: float) -> None:
        self._day.jumps += 1
        self._passed += seconds
        self._clock.put(self._passed)

    def _publish(self, on: DrillStack, line: LedgerLine) -> None:
        """No clock jumps meanwhile, so it must not be refused for long."""
        for _ in range(TRIES):
            if self._is_published(on.galatea("rebuild"), line):
                return
        line.fail(f"nothing was published in {TRIES} attempts, the last at {_now()}")

    def _is_published(self, done: subprocess.CompletedProcess[str], line: LedgerLine) -> bool:
        if done.returncode == 0:
            self._day.publications += 1
            return True
        said = " ".join(done.stderr.strip().splitlines()[-2:])
        _say(f"  rebuild: {done.returncode} {said}")
        kind = _kind_of(done.stderr)
        self._day.refused[kind] = self._day.refused.get(kind, 0) + 1
        if "Traceback" in done.stderr:
            line.fail(f"a rebuild ended without a typed error: {said}")
        return False

    def _step_beyond(self, on: DrillStack, seconds: float, chance: Random, line: LedgerLine) -> None:
        """The broker's clock is further off than tolerated for a moment, just behind a publication."""
        self._day.beyond += 1
        self._clock.deviate(0.0)
        self._publish(on, line)
        on.load.rest()
        before = len(on.roll.deliveries)
        line.fault("clock", "kafka", f"{seconds:+.0f} s off, beyond the skew")
        self._clock.deviate(seconds)
        on.load.go_on()
        time.sleep(BEYOND_SECONDS + chance.uniform(0, 3))
        if seconds < 0:
            self._refuses_a_cut(on, line)
        else:
            self._publish(on, line)
            on.look()
            on.load.go_on()
            time.sleep(1)
        self._clock.deviate(0.0)
        time.sleep(2)
        on.load.rest()
        self._is_alarmed(on, line)
        self._shows_all_but(on, before, line)
        self._publish(on, line)
        if seconds < 0:
            self._behind.add(_newest(on))
        on.look()
        self._jump(abs(seconds) + 90)
        self._publish(on, line)
        on.look()
        if ALARM in _alarms(on):
            line.fail(f"{ALARM} is still active two publications later")

    def _refuses_a_cut(self, on: DrillStack, line: LedgerLine) -> None:
        done = on.galatea("rebuild")
        if done.returncode == 0 or EARLY_MARKER not in done.stderr:
            line.fail(f"a cut behind a clock that is behind: {done.returncode} {done.stderr.strip()[-300:]}")

    def _is_alarmed(self, on: DrillStack, line: LedgerLine) -> None:
        if not _becomes(lambda: ALARM in _alarms(on)):
            line.fail(f"no alarm {ALARM} at {_now()}: {_alarms(on)}")

    def _shows_all_but(self, on: DrillStack, before: int, line: LedgerLine) -> None:
        """At rest, what was stamped before the published cut since then is missing, and nothing else."""
        found: list[tuple[int, int]] = []

        def is_exact() -> bool:
            body = on.stack.get(f"/v1/metrics/{METRIC}", store=STORES, grain="total", timezone="UTC", **around_now())
            cut = datetime.fromisoformat(body["as_of"]["cut"])
            late = {each.slip.identity for each in on.roll.deliveries[before:] if each.received_at < cut}
            firsts = {(each.partition, each.offset) for each in on.roll.deliveries[before:]}
            missing = [
                each
                for each in on.roll.shown(cut)
                if each.slip.identity in late and (each.partition, each.offset) in firsts and each.received_at < cut
            ]
            shown = sum(point["value"] or 0 for series in body["series"] for point in series["points"])
            found[:] = [(shown, on.roll.due(cut).receipts - len(missing))]
            return found[0][0] == found[0][1]

        if not _becomes(is_exact):
            line.fail(f"behind a clock that stepped back, {found[0][0]} receipts are shown instead of {found[0][1]}")

    def _compare_days(self, on: DrillStack, line: LedgerLine) -> None:
        """At rest, every business day in every zone has the receipts that happened on its date there."""
        for zone in ZONES:
            found: list[Mapping[date, int]] = []

            def is_exact(zone: str = zone, found: list[Mapping[date, int]] = found) -> bool:
                found[:] = _by_day(on, zone)
                return found[0] == found[1]

            if not _becomes(is_exact):
                line.fail(f"days in {zone}: {found[0]} instead of {found[1]}")
            self._day.days_compared += len(found[1])

    def _read_ledger(self, on: DrillStack, line: LedgerLine) -> None:
        """What nothing explains, of all publications of the day."""
        for publication in range(1, _newest(on) + 1):
            found = on.stack.get("/v1/corrections", publication=publication, cause="unexplained")["corrections"]
            if publication in self._behind:
                self._day.unexplained_behind += len(found)
            elif found:
                self._day.unexplained += len(found)
                line.fail(f"publication {publication}: {len(found)} unexplained corrections, such as {found[0]}")


def _newest(on: DrillStack) -> int:
    return int(on.stack.get("/v1/publications", limit=1)["publications"][0]["publication"])


def _by_day(on: DrillStack, zone: str) -> tuple[Mapping[date, int], Mapping[date, int]]:
    """Receipts of each business day, as answered and as they have to be."""
    body = on.stack.get(f"/v1/metrics/{METRIC}", store=STORES, grain="day", timezone=zone, **around_now())
    shown = Counter[date]()
    for series in body["series"]:
        for point in series["points"]:
            shown[date.fromisoformat(point["date"])] += point["value"] or 0
    due = Counter[date]()
    for each in on.roll.shown(datetime.fromisoformat(body["as_of"]["cut"])):
        assert each.slip.happened_at is not None
        due[each.slip.happened_at.astimezone(ZoneInfo(zone)).date()] += 1
    return +shown, due


def _alarms(on: DrillStack) -> list[str]:
    return [each["name"] for each in on.stack.get("/v1/freshness")["alarms"]]


def _becomes(is_so: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Whether it is so by then."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def _kind_of(stderr: str) -> str:
    """The code of the error of a command."""
    return next(iter(re.findall(r"^([a-z][a-z0-9_]*): .+ Next: ", stderr, re.MULTILINE)), "nothing")


def rate_at(hour: int, most: float) -> float:
    """Records a second in this hour of the day."""
    return most * (0.2 if hour in NIGHT else 1.0 if hour in BUSY else 0.5)


def _now() -> str:
    return f"{datetime.now(UTC):%F %T}"


def _say(what: str) -> None:
    sys.stderr.write(f"{what}\n")
    sys.stderr.flush()


def lived(day: Day, clock: Clock, real_minutes: float, rate: float) -> Day:
    """The day, and what is counted in the end."""
    mix = Mix(rate=rate, reach=REACH, spread=SPREAD_SECONDS)
    simulated, began = SimulatedDay(day, clock, real_minutes), time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="galatea-day-") as folder,
        drill_stack(Path(folder), day.seed, mix, place=Topology(settings=SETTINGS)) as on,
    ):
        _say(f"the stack serves, {_now()}")
        for line in run_drills(
            [Drill(ID, simulated.live, "L")], on, DrillRun(day.seed, "long", mix), real_minutes * 60
        ):
            day.sent += line.sent["ok"]
            if line.why:
                day.wrong.append(f"{line.drill}: {line.why}")
            if line.drill == END:
                day.archived, day.duplicates, day.dead_letters = line.archived, line.duplicates, line.dead_letters
                day.cells, day.differing = line.cells_compared, line.cells_different
        seen = on.sampler.seen
        day.answers, day.refusals = seen.answers, dict(seen.refusals)
    day.seconds = round(time.monotonic() - began, 1)
    return day


def main() -> int:
    """Exit 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.day", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=int, default=24, help="of simulated time")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long an hour takes")
    parser.add_argument("--rate", type=float, default=60.0, help="records a second by day")
    arguments = parser.parse_args()
    if not COMPILER:
        parser.error("this machine lacks a C compiler")
    clock = clock_of_this_process()
    if clock is None:
        with tempfile.TemporaryDirectory(prefix="galatea-clock-") as folder:
            return under(Clock(Path(folder) / "clock"))
    exit_on_sigterm()
    day = lived(Day(arguments.hours, arguments.seed), clock, arguments.minutes, arguments.rate)
    sys.stdout.write(day.line() + "\n")
    append("day", day.line())
    return int(bool(day.wrong or day.differing))


def under(clock: Clock) -> int:
    """Run this program again, with that clock. Returns its exit code."""
    words = [sys.executable, "-m", "tests.system.drills.day", *sys.argv[1:]]
    with subprocess.Popen(words, env={**os.environ, **clock.environment()}) as process:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
