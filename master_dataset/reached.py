"""What the workers saw while they parsed a micro-batch: how far it reaches in each partition, and what is in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import AccumulatorParam


@dataclass(frozen=True)
class Reached:
    """One partition of a micro-batch. `offset`, `received_at`: the greatest. Repeated work of a task counts twice."""

    offset: int
    received_at: datetime
    events: int
    dead_letters: int

    def __add__(self, other: "Reached") -> "Reached":
        """Both seen."""
        return Reached(
            max(self.offset, other.offset),
            max(self.received_at, other.received_at),
            self.events + other.events,
            self.dead_letters + other.dead_letters,
        )


Seen = Mapping[int, Reached]
"""By partition."""


def seen(parsed: pa.RecordBatch) -> Seen:
    """What is in one batch of parsed records."""
    columns = pa.table(
        {
            "partition": parsed["partition"],
            "offset": parsed["offset"],
            "received_at": parsed["received_at"],
            "event": pc.equal(parsed["kind"], "event").cast(pa.int64()),
            "dead_letter": pc.equal(parsed["kind"], "dead_letter").cast(pa.int64()),
        }
    )
    wanted = [("offset", "max"), ("received_at", "max"), ("event", "sum"), ("dead_letter", "sum")]
    rows: list[dict[str, Any]] = columns.group_by("partition").aggregate(wanted).to_pylist()
    return {
        row["partition"]: Reached(row["offset_max"], row["received_at_max"], row["event_sum"], row["dead_letter_sum"])
        for row in rows
    }


class SeenParam(AccumulatorParam[Seen]):
    """Adds up what the tasks of a micro-batch saw."""

    def zero(self, value: Seen) -> Seen:  # noqa: ARG002 - Spark's signature
        """Nothing seen."""
        return {}

    def addInPlace(self, value1: Seen, value2: Seen) -> Seen:  # noqa: N802 - Spark's name
        """Both."""
        both = {partition: value1[partition] + value2[partition] for partition in value1.keys() & value2.keys()}
        return {**value1, **value2, **both}
