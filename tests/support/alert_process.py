"""`alert_process BOOTSTRAP FOLDER PARTITIONS CRASH_AT`: emits requested alerts, without rules."""

import os
import sys
import threading
from pathlib import Path

from master_dataset.failpoints import arm
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from speed_layer.alerts.processor import AlertProcessor, ProcessorConfig
from speed_layer.alerts.snapshots import Snapshots
from tests.support.alert_signatures import signatures_of
from tests.support.alerting import FOR_EVER
from views.alerts.rule_history import RuleHistory


class NoRules:
    """A rule store."""

    def read(self) -> RuleHistory:
        return RuleHistory([], FOR_EVER)


def follow(kafka: KafkaConnection, folder: Path, partition: int, partitions: int) -> None:
    try:
        AlertProcessor(
            ProcessorConfig(
                kafka,
                ("pos_transactions",),
                Partitions(partitions),
                NoRules(),
                Snapshots(folder / str(partition)),
                signatures_of(),
            ),
            partition,
        ).run()
    finally:
        os._exit(75)


if __name__ == "__main__":
    at, where, partitions, plan = sys.argv[1:]
    arm(plan, Path(where) / f"crashed-{os.getpid()}")
    for number in range(int(partitions)):
        threading.Thread(target=follow, args=(KafkaConnection(at), Path(where), number, int(partitions))).start()
