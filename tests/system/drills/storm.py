"""Many short faults of all kinds at the same time, and a long one in between (D33). As root.

A thread for each component hurts it for a moment, again and again. Every minute they stop, and there is one long
fault: a component is ended, or a disk fails.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import psutil

from deploy.local.records import Records
from tests.system.drills import quick
from tests.system.drills.clocks import Clock
from tests.system.drills.drill_stack import DrillStack, Topology, drill_stack
from tests.system.drills.faults import COMPONENTS, exit_on_sigterm, stopped
from tests.system.drills.host_faults import LATE, PACKET_FAULTS, harmed, little_processor, syncing
from tests.system.drills.ledger_line import FAIL, SKIPPED, LedgerLine, keep
from tests.system.drills.load import Mix
from tests.system.drills.performance import Drill, DrillRun, await_recovery, run_drills
from tests.system.drills.rooted import (
    DISKS,
    JUMP_SECONDS,
    PERCENT,
    POWER,
    SYNCING,
    WRITERS,
    clock_of,
    failed_sync,
    full_disk,
    missing,
    port_of,
    power_cut,
    short_of_memory,
)

ID = "D33"
SECONDS = 60.0
"""Of short faults, before a long one."""
SHORTEST, LONGEST = 0.3, 1.5
"""Of a short fault, in seconds."""
CALM = 1.0
"""At most so many seconds between two faults of a component."""
LOOKED_AT = 3
"""The answer at rest is compared after so many long faults: between two looks, a backlog can grow."""
WITH_CLOCK_EVERY = 4
"""In so many rounds, a component has a clock of its own once."""
WITH_CLOCK = ("speed", "archive", "api", "cassandra")
WITH_PORT = ("kafka", "cassandra", "api")
Long = Callable[[DrillStack, Random, LedgerLine], None]


class Short(NamedTuple):
    """A fault that lasts as long as the context is open; `method`, `target` and `args` are as in a ledger line.

    NoSuchProcess if there is nobody to hurt: the component may have ended, because it lacked another one for too long.
    """

    method: str
    target: str
    args: str
    during: Callable[[], AbstractContextManager[object]]


def lines(seed: int, minutes: float, mix: Mix) -> Iterator[LedgerLine]:
    """A line for the storm, and one for what is counted in the end."""
    run = DrillRun(seed, "long", mix)
    if lacking := missing():
        line = run.line(ID)
        line.verdict, line.why = SKIPPED, f"this machine lacks {lacking}"
        yield line
        return
    with (
        tempfile.TemporaryDirectory(prefix="galatea-drills-") as folder,
        drill_stack(Path(folder), seed, mix, place=Topology(disks=("", *DISKS))) as on,
    ):
        yield from run_drills([Drill(ID, partial(_storm, minutes))], on, run, minutes * 60)


def _storm(minutes: float, on: DrillStack, chance: Random, line: LedgerLine) -> None:
    ends, rounds = time.monotonic() + minutes * 60, 0
    to_do: list[Long] = []
    while time.monotonic() < ends or not rounds:
        if rounds % WITH_CLOCK_EVERY == 0:
            _clocked(on, chance, line)
        else:
            _short_faults(on, chance, line, {})
        rounds += 1
        to_do = to_do or chance.sample(LONG_FAULTS, len(LONG_FAULTS))
        to_do.pop()(on, chance, line)
        if rounds % LOOKED_AT == 0:
            on.look()
            on.load.go_on()
        left = max(0, ends - time.monotonic()) / 60
        sys.stderr.write(f"  {len(line.faults)} faults, {left:.0f} minutes left\n")
    if unhurt := set(COMPONENTS) - {each["target"] for each in line.faults}:
        line.fail(f"nothing has hurt {', '.join(sorted(unhurt))}")


def _clocked(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """One component has a clock of its own meanwhile."""
    name = chance.choice(WITH_CLOCK)
    with clock_of(on, name) as clock:
        await_recovery(on, name, line)
        _short_faults(on, chance, line, {name: clock})
    await_recovery(on, name, line)


def _short_faults(on: DrillStack, chance: Random, line: LedgerLine, clocks: Mapping[str, Clock]) -> None:
    """All components are hurt for half a minute, in threads of their own."""
    ends = time.monotonic() + SECONDS
    with ThreadPoolExecutor(len(COMPONENTS)) as threads:
        lanes = [
            threads.submit(_hurt, short_faults(on, name, clocks.get(name)), Random(chance.random()), line, ends)
            for name in COMPONENTS
        ]
    for lane in lanes:
        lane.result()


def _hurt(faults: Sequence[Short], chance: Random, line: LedgerLine, ends: float) -> None:
    while time.monotonic() < ends:
        time.sleep(chance.uniform(0, CALM))
        fault = chance.choice(faults)
        with suppress(psutil.NoSuchProcess), fault.during():
            seconds = chance.uniform(SHORTEST, LONGEST)
            line.fault(fault.method, fault.target, f"{fault.args} for {seconds:.2f} s")
            time.sleep(seconds)


def short_faults(on: DrillStack, name: str, clock: Clock | None) -> Sequence[Short]:
    """Those that a component can have. `clock`: its own; None: it has that of the machine."""

    def pids() -> list[int]:
        return [each.pid for each in processes()]

    def processes() -> list[psutil.Process]:
        found = Records(on.settings.home).session(name)
        if not found:
            raise psutil.NoSuchProcess(0, name)
        return found

    found = [
        Short("STOP", name, "", lambda: stopped(processes())),
        Short("cgroup", name, f"{PERCENT} % of a processor", lambda: little_processor(pids(), PERCENT)),
    ]
    if name in WITH_PORT:
        port = port_of(on, name)
        found += [Short("packets", name, way, partial(_packets, processes, port, way)) for way in PACKET_FAULTS]
    if name in SYNCING:
        found.append(Short("sync", name, LATE, lambda: syncing(pids(), LATE)))
    if clock is not None:
        jumps = (JUMP_SECONDS, -JUMP_SECONDS)
        found += [
            Short("clock", name, f"{seconds:+d} s", partial(_moved, processes, clock, seconds)) for seconds in jumps
        ]
    return found


Processes = Callable[[], list[psutil.Process]]


@contextmanager
def _packets(processes: Processes, port: int, way: str) -> Iterator[None]:
    processes()
    with harmed(port, way):
        yield


@contextmanager
def _moved(processes: Processes, clock: Clock, seconds: int) -> Iterator[None]:
    """The clock is so far ahead, or behind. Whoever was started again has that of the machine."""
    mine = set(clock.environment().items())
    if not any(mine <= set(each.environ().items()) for each in processes()):
        raise psutil.NoSuchProcess(0)
    clock.put(seconds)
    try:
        yield
    finally:
        clock.put(0)


LONG_FAULTS: Sequence[Long] = (
    quick.broker,
    quick.checkpoint,
    quick.second_speed,
    *(partial(quick.killed, name) for name in COMPONENTS),
    *(partial(full_disk, disk) for disk in WRITERS),
    *(partial(failed_sync, name) for name in SYNCING),
    *(partial(short_of_memory, name) for name in COMPONENTS),
    *(partial(power_cut, disks) for disks in POWER),
)


def main() -> int:
    """Exit 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.storm", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=float, default=Mix().rate, help="records a second")
    arguments = parser.parse_args()
    exit_on_sigterm()
    failed = 0
    for line in lines(arguments.seed, arguments.minutes, Mix(rate=arguments.rate)):
        keep(line)
        failed += line.verdict == FAIL
        sys.stdout.write(f"{line.drill}  {line.verdict}  {line.seconds:.0f} s  {len(line.faults)} faults  {line.why}\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
