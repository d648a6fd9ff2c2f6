"""The quick drills: one running stack, one fault after another, and the exact answer at rest.

A drill fails if an answer was ever too large, shrank or went back, if it differs at rest from what was acknowledged, or
if its fault did not occur. Only the time of all drills together is limited.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

import httpx

from deploy.local.records import Records
from master_dataset.sources import registered_sources
from tests.system.drills.drill_stack import REST_SECONDS, DrillStack, drill_stack
from tests.system.drills.faults import wait_until
from tests.system.drills.killed import CRASHES
from tests.system.drills.ledger_line import LedgerLine
from tests.system.drills.load import Mix
from tests.system.drills.performance import Drill, DrillRun, await_recovery, run_drills
from tests.system.drills.posting import Posting, Rest, Till

PATIENCE_SECONDS = 300.0
"""So long it may take to begin: after that it hangs."""
TOOK_PART = {
    # A query that finds no records reports a micro-batch too, but has added nothing.
    "wrote a micro-batch": re.compile(r"addBatch=\d+ .*event=speed\.batch"),
    "its claim was refused": re.compile(r"code=checkpoint_out_of_step"),
}
STANDS_BY = "event=speed.stands_by"
"""What its log says of it."""


def lived(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    patience: float = PATIENCE_SECONDS,
    when_it_stands_by: Callable[[], object] = lambda: None,
) -> str:
    """Run it until it has taken part, and end it as by `kill -9`. Says how it took part; "" if it never did."""
    own = {**environment, "PYTHONUNBUFFERED": "1"}
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=own, stdout=output, stderr=output, start_new_session=True) as second,
    ):
        try:
            deadline = time.monotonic() + patience
            has_stood_by = False
            while not _took_part(log) and second.poll() is None and time.monotonic() < deadline:
                if not has_stood_by and STANDS_BY in log.read_text(errors="replace"):
                    has_stood_by = True
                    when_it_stands_by()
                time.sleep(0.1)
        finally:
            if second.poll() is None:
                os.killpg(second.pid, signal.SIGKILL)
    return _took_part(log)


def last(log: Path) -> str:
    """What it said last."""
    return " ".join(log.read_text(errors="replace").strip().splitlines()[-1:])[:300]


def _took_part(log: Path) -> str:
    said = log.read_text(errors="replace")
    return next((what for what, sign in TOOK_PART.items() if sign.search(said)), "")


QUICK = "quick"
SECONDS = 300.0
"""Of all drills together, from when the stack serves. Then the rest is named as not run, which is a failure."""
SPEED_POINTS = ("speed.claimed", "speed.remembered", "speed.rows", "speed.counted", "speed.recorded", "speed.took_over")
ARCHIVE_POINTS = ("archive.begun", "archive.events", "archive.letters", "archive.recorded")
ONCE = {"speed.remembered", "speed.took_over"}
"""Points that are passed once in the life of a generation, or of a worker."""


def broker(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D01: it ends at once, or as it is asked to."""
    if chance.random() < 0.5:
        killed("kafka", on, chance, line)
        return
    old = on.faults.pid("kafka")
    line.fault("TERM", "kafka")
    os.kill(old, signal.SIGTERM)
    wait_until(lambda: Records(on.settings.home).pid("kafka") != old, "kafka to be missed")
    await_recovery(on, "kafka", line)


def broker_pauses(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D02: it answers nobody for a while."""
    seconds = chance.uniform(5, 30)
    line.fault("STOP", "kafka", f"{seconds:.0f} s")
    on.faults.pause("kafka", seconds)
    await_recovery(on, "kafka", line)


def api(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D04: tills post, and send again until each event is settled, while the process that takes them is killed."""
    posting, stop = Posting(2, chance.randrange(10**6)), threading.Event()
    key = on.stack.galatea("keys", "create", "--tenant", "*", "--scope", "ingest")["key"]
    rest = Rest(on.settings.api_url, on.settings.api_trust)
    stores = [f"till-{posting.seed}-{number}" for number in range(2)]
    threads = [
        threading.Thread(target=Till(store, posting, rest, key).run, args=(stop,), daemon=True) for store in stores
    ]
    for thread in threads:
        thread.start()
    for _ in range(posting.kills):
        time.sleep(chance.uniform(0.3, 1.5))
        killed("api", on, chance, line)
    time.sleep(1)
    stop.set()
    for thread in threads:
        thread.join()
    line.rejected = posting.rejected
    deadline = time.monotonic() + REST_SECONDS
    while (shown := on.receipts(stores)) != posting.events and time.monotonic() < deadline:
        time.sleep(0.2)
    if (shown, posting.sent) != (posting.events, posting.events + posting.rejected) or not posting.again:
        line.fail(f"tills sent {posting.sent}: {posting.events} accepted, {shown} shown, {posting.again} sent again")


def speed_crashes(on: DrillStack, _: Random, line: LedgerLine) -> None:
    """D05: speed ends at a point of a micro-batch that was planned when the stack began."""
    _crashed(on, "speed", line)


def archive_crashes(on: DrillStack, _: Random, line: LedgerLine) -> None:
    """D06: likewise the archive."""
    _crashed(on, "archive", line)


def rebuild_crashes(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D07: a rebuild ends at a step, the first of its stack. The next one publishes: that of what is counted last."""
    point = chance.choice(CRASHES[:-1])
    line.fault("crash", "rebuild", point)
    ended = on.rebuild(crash_at=point)
    if point not in on.faults.crashed():
        line.fail(f"{point} was not reached: {ended}")


def cassandra(on: DrillStack, chance: Random, line: LedgerLine) -> None:
    """D08: it ends at once."""
    killed("cassandra", on, chance, line)


def checkpoint(on: DrillStack, _: Random, line: LedgerLine) -> None:
    """D14: speed loses its checkpoint while it writes to it, and begins another generation."""
    line.fault("damage", "speed", "checkpoint removed")
    wait_until(lambda: _generation(on) > 0, "an answer that names a generation")
    before = _generation(on)
    on.faults.lose_speed_checkpoint()
    on.faults.kill("speed")
    await_recovery(on, "speed", line)
    wait_until(lambda: _generation(on) > before, "another generation to be read")


def second_speed(on: DrillStack, _: Random, line: LedgerLine) -> None:
    """D17: another speed process takes over from the one that is killed, and is killed too: all counts once."""
    own, log = {**on.stack.environment, "GALATEA_SPEED_METRICS_PORT": "0"}, on.settings.home / "logs" / "second.log"
    command = [sys.executable, "-m", "deploy.services.speed", "second"]
    took_part = lived(command, own, log, when_it_stands_by=lambda: on.faults.kill("speed"))
    if not took_part:
        line.fail(f"the second process never took part: {last(log)}")
    line.fault("second", "speed", took_part)
    await_recovery(on, "speed", line)


DRILLS = (
    Drill("D05", speed_crashes),
    Drill("D06", archive_crashes),
    Drill("D01", broker),
    Drill("D08", cassandra),
    Drill("D14", checkpoint),
    Drill("D04", api),
    Drill("D17", second_speed),
    Drill("D07", rebuild_crashes, "L"),
    Drill("D02", broker_pauses, "L"),
)


def crash_points(seed: int, ids: Sequence[str], *, every: bool = False) -> str:
    """One point of speed and one of the archive, if these are to crash; or `every` one of them."""
    points = {"D05": SPEED_POINTS, "D06": ARCHIVE_POINTS}
    # Of each source the archive has a first micro-batch.
    earliest = {"D05": 2, "D06": len(registered_sources()) + 5}
    planned: list[str] = []
    for id_ in (each for each in points if each in ids):
        chance = Random(f"points {id_} {seed}")
        chosen = points[id_] if every else (chance.choice(points[id_]),)
        planned += [f"{each}:{1 if each in ONCE else earliest[id_] + chance.randint(0, 3)}" for each in chosen]
    return ",".join(planned)


def lines(
    seed: int, ids: Sequence[str] = (), mix: Mix | None = None, *, set_: str = QUICK, seconds: float = SECONDS
) -> Iterator[LedgerLine]:
    """A line for each drill as it ends, and one for what is counted in the end. After `seconds` none is begun."""
    chosen = [drill for drill in DRILLS if (drill.id in ids if ids else "Q" in drill.sets)]
    mix = mix or Mix()
    points = crash_points(seed, [drill.id for drill in chosen], every=set_ != QUICK)
    with (
        tempfile.TemporaryDirectory(prefix="galatea-drills-") as folder,
        drill_stack(Path(folder), seed, mix, points) as on,
    ):
        yield from run_drills(chosen, on, DrillRun(seed, set_, mix), seconds)


def killed(name: str, on: DrillStack, _: Random, line: LedgerLine) -> None:
    """A component ends at once, with everything that it has started."""
    line.fault("KILL", name)
    on.faults.kill(name)
    await_recovery(on, name, line)


def _crashed(on: DrillStack, name: str, line: LedgerLine) -> None:
    planned = {point for point in on.settings.failpoints.crash_at.split(",") if point.startswith(name)}
    for point in sorted(planned):
        line.fault("crash", name, point)
    wait_until(lambda: planned <= set(on.faults.crashed()), f"{planned} to be reached")
    await_recovery(on, name, line)


def _generation(on: DrillStack) -> int:
    """Which one readers are shown; 0 while nobody can say."""
    try:
        return int(on.stack.get("/v1/freshness")["generation"])
    except (httpx.TransportError, AssertionError):
        time.sleep(0.2)
        return 0
