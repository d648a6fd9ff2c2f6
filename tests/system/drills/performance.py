"""Runs drills one after another on one stack: a ledger line for each, and one for the comparison at the end."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from deploy.local.records import Records
from tests.system.drills.check_history import broken
from tests.system.drills.drill_stack import DrillStack
from tests.system.drills.faults import wait_until
from tests.system.drills.history import History
from tests.system.drills.ledger_line import LedgerLine, machine
from tests.system.drills.load import Mix

END = "all"
"""The line of what is counted in the end, of all drills of a stack together."""


@dataclass(frozen=True)
class Drill:
    """`do` hurts the stack of that ground, and returns when it has recovered."""

    id: str
    do: Callable[[DrillStack, Random, LedgerLine], None]
    sets: str = "Q L"


class DrillRun(NamedTuple):
    """What every line of a run says."""

    seed: int
    set: str
    mix: Mix

    def line(self, drill: str, history: History | None = None) -> LedgerLine:
        """A new one. `history`: gets its faults too."""
        load = {"rate": self.mix.rate, "duplicates": self.mix.twice, "bad": self.mix.broken, "late_hours": 30.0}
        return LedgerLine(drill, self.seed, self.set, load, versions=machine(), _history=history)


def run_drills(drills: Sequence[Drill], on: DrillStack, run: DrillRun, seconds: float) -> Iterator[LedgerLine]:
    """A line for each drill as it ends, and one for what is counted in the end. After `seconds` none is begun."""
    began = time.monotonic()
    for drill in drills:
        line = run.line(drill.id, on.history)
        if time.monotonic() - began > seconds:
            line.fail(f"not run: {seconds:.0f} s were over")
            yield line
            continue
        with line.timed(on.roll):
            on.load.go_on()
            drill.do(on, Random(f"{drill.id} {run.seed}"), line)
            on.look()
        yield _judged(on, line)
    line = run.line(END)
    with line.timed(on.roll):
        for name, value in on.counted().items():
            setattr(line, name, value)
    _judged(on, line)
    on.leave()
    for why in broken(on.history.path):
        line.fail(why)
    yield line


def await_recovery(on: DrillStack, name: str, line: LedgerLine) -> None:
    """Return when that component and all others run again, and say how long it took."""
    records = Records(on.settings.home)
    # A state may be a moment old: who has just ended has no pid.
    wait_until(lambda: records.pid(name) is not None and on.faults.all_run(), "every component to be back")
    line.recovered(name)


def _judged(on: DrillStack, line: LedgerLine) -> LedgerLine:
    for why in [*on.said, *on.sampler.wrong()[:3]]:
        line.fail(why)
    on.said.clear()
    return line
