"""Benchmarks on a running local stack: three stacks on one home, so that nothing unnecessary runs beside them."""

from typing import TYPE_CHECKING

from benchmarks import ingest, local
from benchmarks.answers import answered
from benchmarks.api_processes import several
from benchmarks.at_least import contained
from benchmarks.delay import delays
from benchmarks.during_rebuild import during_rebuild, rebuild
from benchmarks.listeners import listened
from benchmarks.login_flood import flooded
from benchmarks.memory import Sampler
from benchmarks.page_weight import weighed
from benchmarks.sql import sql_beside_rest
from benchmarks.traffic import ReceiptStream, in_background
from master_dataset.kafka.ingest import ingest as send
from master_dataset.kafka.topics import Topics
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.control.generation import Generations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from benchmarks.report import Measured
    from deploy.settings import Settings

FULL = 150_000
PROBES_PER_RECEIPT = 1 / 1500
FEWEST_PROBES = 10
WHOLE = ("delay", "answers", "memory")
"""Measured together: memory is looked at while the stack catches up, rebuilds and ingests, and the rest after that."""
SERVED = ("at_least", "login_flood", "listeners", "page_weight", "sql", "api_processes")


def on_stack(size: int, wanted: "Collection[str]") -> "Iterator[Measured]":
    """`size` receipts of history; the delay is taken of one receipt in 1,500 of that number."""
    lines = ingest.history(size)
    with local.own_home() as settings:
        with local.running(settings, "kafka"):
            yield ingest.ingested(settings, lines)
        with local.running(settings, "kafka", "cassandra", "archive"):
            yield ingest.archived(settings, lines)
            yield ingest.stored(settings, lines)
        if {*WHOLE, *SERVED, "during_rebuild"} & set(wanted):
            probes = max(FEWEST_PROBES, int(size * PROBES_PER_RECEIPT))
            with local.running(settings):
                if set(WHOLE) & set(wanted):
                    yield from _whole(settings, lines, probes)
                yield from _served(settings, wanted)
                if "during_rebuild" in wanted:
                    _until_speed_has_read(settings)
                    yield from during_rebuild(settings, probes)


def _whole(settings: "Settings", lines: list[bytes], probes: int) -> "Iterator[Measured]":
    memory = Sampler(settings)
    with in_background(memory):
        memory.phase = "catching up"
        _until_speed_has_read(settings)
        memory.phase = "rebuild while receipts come in"
        with in_background(ReceiptStream(settings, POS_TRANSACTIONS.topic)):
            _rebuild(memory)
        memory.phase = "ingest"
        again = lines[: len(lines) // 3]  # resends the same receipts as duplicates
        send(POS_TRANSACTIONS, again, settings.kafka.connection, lambda _result: None)
        _until_speed_has_read(settings)
    # To look at the memory of all processes takes a fifth of a core: it is no part of what is timed now.
    yield from delays(settings, probes)
    yield from answered(settings)
    yield memory.measured()


def _served(settings: "Settings", wanted: "Collection[str]") -> "Iterator[Measured]":
    if {*SERVED} & set(wanted):
        _until_speed_has_read(settings)
    if "listeners" in wanted:
        yield from listened(settings)
    if "at_least" in wanted:
        yield contained(settings)
    if "login_flood" in wanted:
        yield flooded(settings)
    if "page_weight" in wanted:
        yield from weighed(settings)
    if "sql" in wanted:
        yield from sql_beside_rest(settings)
    if "api_processes" in wanted:
        yield from several(settings)


def _rebuild(memory: Sampler) -> None:
    rebuild("--wait", began=lambda pid: memory.others.update(rebuild=pid))
    del memory.others["rebuild"]


def _until_speed_has_read(settings: "Settings") -> None:
    generations, topic = Generations(local.cassandra(settings)), POS_TRANSACTIONS.topic
    ends = Topics(settings.kafka.connection).end_offsets(topic)

    def has_read() -> bool:
        found = generations.positions(generations.pointer().generation).get(topic, {})
        return all(found.get(partition, 0) >= end for partition, end in ends.items())

    local.until(has_read, "the speed layer")
