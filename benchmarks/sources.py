"""CPU time of the speed layer for all sources, compared with receipts alone; and of the stack when nothing arrives."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks import local
from benchmarks.processor import Meter, Pace
from benchmarks.report import Measured
from benchmarks.traffic import source_records
from deploy.local.records import Records
from deploy.local.stack import components
from master_dataset.kafka.ingest import ingest
from master_dataset.kafka.topics import Topics
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.visits.rows import VisitKey
from master_dataset.visits.visit import RULES, Bundle, Sighting
from speed_layer.visits import OpenVisits
from views.control.generation import Generations

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 90_000
AT_MOST, IDLE_CORES, IDLE_SECONDS = 2.0, 0.25, 120
_SETTLED_SECONDS = 45
_DEVICES = 20_000


def sources(size: int) -> Iterator[Measured]:
    """`size` receipts alone, then as many records of all sources; both are waiting when the speed layer starts."""
    alone = _counted([POS_TRANSACTIONS.topic], size)
    together = _counted(list(registered_sources()), size)
    each = (1000 / together.per_core_second, 1000 / alone.per_core_second)
    details = {"events": [together.events, alone.events], "seconds": [together.seconds, alone.seconds]}
    yield Measured(
        "sources, an event of any", *each, "core-ms", "a receipt alone", better="low", limit=AT_MOST, details=details
    )
    yield _idle()
    yield _open()


def _counted(topics: list[str], size: int) -> Pace:
    with local.own_home() as settings:
        with local.running(settings, "kafka"):
            for topic in topics:
                lines = source_records(topic, size // len(topics))
                ingest(registered_sources()[topic], lines, settings.kafka.connection, lambda _result: None)
        with local.running(settings, "kafka", "cassandra", "speed"):
            total = sum(sum(Topics(settings.kafka.connection).end_offsets(topic).values()) for topic in topics)
            local.until(lambda: _read(settings) > 0, "the first micro-batch")
            first, began = _read(settings), time.monotonic()
            with Meter(Records(settings.home).pid("speed")) as meter:
                local.until(lambda: _read(settings) >= total, "the speed layer")
            return Pace(total - first, round(time.monotonic() - began, 1), meter.seconds)


def _read(settings: "Settings") -> int:
    generations = Generations(local.cassandra(settings))
    positions = generations.positions(generations.greatest())
    return sum(sum(own.values()) for own in positions.values())


def _idle() -> Measured:
    with local.own_home() as settings, local.running(settings):
        records, names = Records(settings.home), [each.name for each in components(settings)]
        time.sleep(_SETTLED_SECONDS)
        with ExitStack() as stack:
            meters = {name: stack.enter_context(Meter(pid)) for name in names if (pid := records.pid(name))}
            time.sleep(IDLE_SECONDS)
        spent = {name: round(meter.seconds / IDLE_SECONDS, 3) for name, meter in meters.items()}
    total = round(sum(spent.values()), 3)
    return Measured(
        "sources, idle stack", total, IDLE_CORES, "cores", "limit", better="low", limit=1.0, details={"cores": spent}
    )


def _open() -> Measured:
    """What the driver holds of a device that is around; beside it the text of the device."""
    held = OpenVisits(RULES, 5_000)
    for number in range(_DEVICES):
        held.add(0, VisitKey("1", f"{number:032x}", 20_000), Sighting(number, number, is_inside=True))
    one = Bundle.of(Sighting(1, 1, is_inside=True), RULES.gap)
    [stretch] = one.stretches
    whose = VisitKey("1", f"{1:032x}", 20_000)
    parts = (one, one.stretches, stretch, whose, whose.device, *(1 << 40,) * 7)
    size = sum(map(sys.getsizeof, parts)) + 100  # plus an entry in an OrderedDict
    return Measured(
        "sources, a device around",
        size,
        sys.getsizeof(whose.device),
        "bytes",
        "its text",
        better="low",
        details={"held": len(held)},
    )
