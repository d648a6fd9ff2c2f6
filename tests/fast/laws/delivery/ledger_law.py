"""The ledger compares what speed shows with what is corrected: only when speed has read all that is compared."""

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from batch_layer.fence import Fence
from batch_layer.ledger.writer import LedgerWriter
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from tests.fast.laws.delivery.fence_law import EPOCH, PARTITIONS, SKEW, TOPIC, Clock, brokers_of, clock_of
from views.control.recompute import LedgerTotals


class Writer(LedgerWriter):
    """Says how far speed had read when a ledger was written."""

    _session: Any = None

    def _manifest(self, _: str) -> Mapping[Any, str]:
        return {}

    def _write(self, *_: object) -> LedgerTotals:
        return LedgerTotals(0, 0, {})


def a_ledger_is_written_when_speed_has_read_up_to_the_cut(seeds: int = 40) -> None:
    """R13: everything stamped before the cut was read by speed when the ledger was written, or none was written."""
    written = 0
    for seed in range(seeds):
        clock = clock_of(seed)
        fence = Fence(KafkaConnection("memory"), lambda: Partitions(PARTITIONS), (TOPIC,), EPOCH, SKEW, now=clock.now)
        generations = SimpleNamespace(positions=lambda _, clock=clock: clock.read())
        with (
            brokers_of(clock),
            patch("batch_layer.ledger.writer.Generations", lambda _, own=generations: own),
        ):
            for _ in range(60):
                clock.sleep(0.5)
            base, cut = fence.newest_cut() - EPOCH, fence.newest_cut()
            side: dict[str, Any] = {
                "cut": base,
                "manifest": "run-1",
                "generation": 1,
                "definitions": {},
                "publication": 1,
            }
            plan: Any = SimpleNamespace(
                base=SimpleNamespace(**side), cut=cut, generation=1, definitions={}, masters={}, publication=2
            )
            progress: Any = SimpleNamespace(step=lambda *_: None)
            writer = Writer(SimpleNamespace(fence=fence), lambda: None)  # type: ignore[arg-type, return-value]
            if writer.of_run(plan, "run-2", progress) is not None:
                written += 1
                _look(clock, int(cut.timestamp() * 1000), seed)
    assert written, "no ledger was written"


def _look(clock: Clock, before_ms: int, seed: int) -> None:
    read = dict(clock.positions)
    for id_ in list(clock.broker.open):
        clock.broker.finish(id_, "committed")
    clock.sleep(timedelta(seconds=1).total_seconds())
    for _, partition in clock.broker.logs:
        unread = [
            each.offset
            for each in clock.broker.visible((TOPIC, partition))
            if each.stamp_ms < before_ms and each.offset >= read.get(partition, 0)
        ]
        assert unread == [], f"seed {seed}: {partition}/{unread} was not read when the ledger was written"
