"""Drills that need root: packets, disks, clocks, CPU and memory of one running stack.

A component can have a clock of its own that is moved while it runs.
"""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import httpx
import psutil

from deploy.cassandra import connect
from deploy.local.records import Records
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.delta.commit_intents import INTENTS
from serving_layer.errors import DiskLowError
from tests.system.drills.clocks import COMPILER, Clock
from tests.system.drills.drill_stack import DrillStack, Topology, drill_stack
from tests.system.drills.faults import COMPONENTS, wait_until
from tests.system.drills.host_faults import (
    ERROR,
    IPTABLES,
    LATE,
    PACKET_FAULTS,
    ROOT,
    STRACE,
    harmed,
    killed_for_memory,
    little_memory,
    little_processor,
    syncing,
)
from tests.system.drills.ledger_line import SKIPPED, LedgerLine
from tests.system.drills.load import Mix
from tests.system.drills.performance import Drill, DrillRun, await_recovery, run_drills


@contextmanager
def clock_of(on: DrillStack, name: str) -> Iterator[Clock]:
    """The component is ended, and has its own clock from its next start on; the machine's again after another one."""
    clock = Clock(on.settings.home / f"{name}.clock")
    start_with(on, name, clock.environment())
    try:
        yield clock
    finally:
        clock.put(0)
        on.faults.kill(name)


def start_with(on: DrillStack, name: str, environment: Mapping[str, str]) -> None:
    """The component is ended, and its next start has this environment besides. Only that one."""
    before = {variable: os.environ.get(variable) for variable in environment}
    os.environ.update(environment)  # it is started by this process
    try:
        on.faults.kill(name)
        wait_until(lambda: Records(on.settings.home).pid(name) is not None, f"{name} to be started")
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable)
            else:
                os.environ[variable] = value


DISKS = {"kafka": "kafka", "cassandra": "cassandra", "master": "archive", "checkpoints": "speed"}
"""Folders of the home that get a file system of their own beside the home itself, and who writes to them."""
WRITERS = {**DISKS, "home": "api"}
POWER = (("kafka",), ("cassandra",), tuple(DISKS))
"""Disks that lose power at the same time."""
SYNCING = ("kafka", "cassandra", "archive")
"""Components that sync what they write."""
OTHERS = ("kafka-2", "kafka-3")
PERCENT = 10
JUMP_SECONDS = 300
MEMORY_MB = 100
"""Less than each component needs to start."""
ROWS, ROW_BYTES = 64, 1 << 20
"""Four segments of Cassandra's commit log."""
FULL = ("No space left", "disk failure policy", " is not started, because only")
"""What the broker, Cassandra, Spark and the supervisor write down of a disk that is full."""


def packets(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D02: between the broker or Cassandra and everybody else packets are lost, or connections are reset."""
    for name in ("kafka", "cassandra"):
        for way in PACKET_FAULTS:
            seconds = chance.uniform(5, 20)
            line.fault("packets", name, f"{way} for {seconds:.0f} s")
            with harmed(port_of(on, name), way):
                time.sleep(seconds)
            await_recovery(on, name, line)


def port_of(on: DrillStack, name: str) -> int:
    """Where everybody else connects to this component."""
    settings = on.settings
    return {"kafka": settings.kafka.port, "cassandra": settings.cassandra.port, "api": settings.api.port}[name]


def full(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D22: there is no room on a disk, until somebody makes some. It has to be said."""
    for disk in WRITERS:
        full_disk(disk, on, chance, line)


def full_disk(disk: str, on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """One of `WRITERS` has no room for a while."""
    line.fault("full", disk)
    _filled(on, disk, chance.uniform(5, 20))
    await_recovery(on, WRITERS[disk], line)


def _filled(on: DrillStack, name: str, seconds: float) -> None:
    before = _complaints(on)
    write = _prepared_rows(on) if name == "cassandra" else None
    on.disks[name].fill()
    if write is not None:
        write()
    wait_until(lambda: _complaints(on) > before or _is_refused(on), f"anybody to say that {name} is full")
    time.sleep(seconds)
    on.disks[name].empty()


def _prepared_rows(on: DrillStack) -> Callable[[], None]:
    """Return a function that writes more into Cassandra than fits into the files that it has allocated ahead.

    It ends when a write fails.

    With the load alone, it took minutes until it needed another file.
    """
    session = connect(replace(on.settings.cassandra.address, keyspace=None))
    session.execute(
        "CREATE KEYSPACE IF NOT EXISTS drill WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    session.execute("CREATE TABLE IF NOT EXISTS drill.rows (number int PRIMARY KEY, body blob)")
    insert = session.prepare("INSERT INTO drill.rows (number, body) VALUES (?, ?)")

    def write() -> None:
        try:
            with suppress(*CASSANDRA_UNAVAILABLE):
                for number in range(ROWS):
                    session.execute(insert, (number, os.urandom(ROW_BYTES)))
        finally:
            session.cluster.shutdown()

    return write


def _is_refused(on: DrillStack) -> bool:
    """Whether REST takes no events for want of room."""
    with suppress(httpx.TransportError):
        answer = on.stack.request("POST", "/v1/events/pos_transactions", content=b"[]")
        return bool(answer.json().get("code") == DiskLowError.code)
    return False


def syncs(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D22: the disk cannot write down what it is asked to, and who asked says so and ends; or it takes its time."""
    records = Records(on.settings.home)
    for name in SYNCING:
        line.fault("sync", name, LATE)
        with syncing([each.pid for each in records.session(name)], LATE):
            time.sleep(chance.uniform(5, 15))
        await_recovery(on, name, line)
        failed_sync(name, on, chance, line)
        on.look()
        on.load.go_on()


def failed_sync(name: str, on: DrillStack, _: Random, line: LedgerLine) -> None:
    """`fsync` of one of `SYNCING` fails until it ends."""
    records, pid = Records(on.settings.home), on.faults.pid(name)
    line.fault("sync", name, ERROR)
    with syncing([each.pid for each in records.session(name)], ERROR):
        wait_until(partial(_has_ended, records, name, pid), f"{name} to end")
    await_recovery(on, name, line)


def _has_ended(records: Records, name: str, pid: int | None) -> bool:
    return records.pid(name) != pid


def processor(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D27: a tenth of one processor has to do for a component."""
    for name in COMPONENTS:
        seconds = chance.uniform(10, 20)
        line.fault("cgroup", name, f"{PERCENT} % of a processor for {seconds:.0f} s")
        with little_processor([each.pid for each in Records(on.settings.home).session(name)], PERCENT):
            time.sleep(seconds)
        await_recovery(on, name, line)


def memory(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D27: a component is started with too little memory, and the kernel ends it; then it has enough again."""
    for name in COMPONENTS:
        short_of_memory(name, on, chance, line)


def short_of_memory(name: str, on: DrillStack, _: Random, line: LedgerLine) -> None:
    """A component is started with too little memory once."""
    on.faults.kill(name)
    line.fault("cgroup", name, f"{MEMORY_MB} MiB")
    with little_memory([_started(on, name)], MEMORY_MB) as group:
        wait_until(partial(killed_for_memory, group), f"the kernel to end {name}")
    await_recovery(on, name, line)


def _started(on: DrillStack, name: str) -> int:
    """The process, as soon as there is one."""
    found: list[int] = []

    def is_there() -> bool:
        found[:] = [pid for pid in [Records(on.settings.home).pid(name)] if pid is not None]
        return bool(found)

    wait_until(is_there, f"{name} to be started")
    return found[0]


def power(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D03, D09: the disk of the broker loses what was not written to it yet, that of Cassandra; then all at once."""
    for names in POWER:
        time.sleep(chance.uniform(5, 15))
        power_cut(names, on, chance, line)
        on.look()
        on.load.go_on()


def power_cut(names: Sequence[str], on: DrillStack, _: Random, line: LedgerLine) -> None:
    """These disks lose what was not written to them yet."""
    line.fault("power cut", " ".join(names))
    cut(on, names)
    for name in COMPONENTS:
        await_recovery(on, name, line)


def power_of_one(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D03: one of three brokers loses what was not written to its disk yet; the others have it."""
    for name in OTHERS:
        time.sleep(chance.uniform(5, 15))
        line.fault("power cut", name)
        cut(on, (name,))
        await_recovery(on, name, line)
        on.look()
        on.load.go_on()


def clocks(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D10: the time of day of one component jumps, back and forward, by as much as five minutes."""
    for name in ("cassandra", "speed", "archive", "api"):
        with clock_of(on, name) as clock:
            await_recovery(on, name, line)
            for seconds in (JUMP_SECONDS, -JUMP_SECONDS, chance.randint(-JUMP_SECONDS, JUMP_SECONDS)):
                line.fault("clock", name, f"{seconds:+d} s")
                clock.put(seconds)
                time.sleep(chance.uniform(5, 10))
            on.look()
            on.load.go_on()
        await_recovery(on, name, line)


def cut(on: DrillStack, names: Sequence[str]) -> None:
    """Who writes to these disks ends at once, and what they had not written down is gone."""
    records = Records(on.settings.home)
    before = {name: records.pid(name) for name in (COMPONENTS if len(names) > 1 else names)}
    processes = [each for name in before for each in records.session(name)]
    _signal(processes, signal.SIGSTOP)
    for name in names:
        on.disks[name].photograph()
    for name in names:
        on.disks[name].lose_power()
    for note in on.settings.home.glob(f"master/*/{INTENTS}/*"):
        note.write_text("before")  # a machine without power begins another life
    _signal(processes, signal.SIGKILL)
    wait_until(lambda: all(records.pid(name) != pid for name, pid in before.items()), "all of them to be missed")


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


DRILLS = (
    Drill("D10", clocks, "L"),
    Drill("D02", packets, "L"),
    Drill("D27", processor, "L"),
    Drill("D27", memory, "L"),
    Drill("D22", full, "L"),
    Drill("D22", syncs, "L"),
    Drill("D03", power, "L"),
)
OF_THREE = (Drill("D03", power_of_one, "L"),)
"""With three brokers."""
PLACES = ((Topology(disks=("", *DISKS)), DRILLS), (Topology(brokers=3, disks=OTHERS), OF_THREE))


def _complaints(on: DrillStack) -> int:
    logs = (path.read_text(errors="replace") for path in (on.settings.home / "logs").glob("*.log"))
    return sum(log.count(words) for log in logs for words in FULL)


def missing() -> str:
    """What this machine lacks for these drills; empty if they can be done."""
    needs: dict[str, Callable[[], bool]] = {
        "root": lambda: os.geteuid() == 0,
        "iptables": lambda: bool(IPTABLES),
        "strace": lambda: bool(STRACE),
        "a C compiler": lambda: bool(COMPILER),
        "loop devices": lambda: Path("/dev/loop-control").exists(),
        "control groups of version 1": lambda: all((ROOT / each).exists() for each in ("cpu", "memory")),
    }
    return ", ".join(what for what, is_there in needs.items() if not is_there())


def lines(seed: int, mix: Mix | None = None, *, set_: str, seconds: float) -> Iterator[LedgerLine]:
    """A line for each drill as it ends, and one for what is counted in the end; or that they are skipped, and why."""
    mix = mix or Mix()
    run = DrillRun(seed, set_, mix)
    began, lacking = time.monotonic(), missing()
    for place, drills in PLACES:
        if lacking:
            yield from _skipped(drills, run, f"this machine lacks {lacking}")
            continue
        with (
            tempfile.TemporaryDirectory(prefix="galatea-drills-") as folder,
            drill_stack(Path(folder), seed, mix, place=place) as on,
        ):
            yield from run_drills(drills, on, run, seconds - (time.monotonic() - began))


def _skipped(drills: Iterable[Drill], run: DrillRun, why: str) -> Iterator[LedgerLine]:
    for drill in drills:
        line = run.line(drill.id)
        line.verdict, line.why = SKIPPED, why
        yield line
