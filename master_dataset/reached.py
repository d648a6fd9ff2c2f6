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
    """One partition of a micro-batch. `offset`, `received_at`: the greatest. `dead_letters`: whether there are any.

    Nothing is counted: what a task says twice, because it was repeated or ran beside its copy, changes nothing.
    """

    offset: int
    received_at: datetime
    dead_letters: bool

    def __or__(self, other: "Reached") -> "Reached":
        """Both seen."""
        return Reached(
            max(self.offset, other.offset),
            max(self.received_at, other.received_at),
            self.dead_letters or other.dead_letters,
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
            "dead_letters": pc.equal(parsed["kind"], "dead_letter"),
        }
    )
    wanted = [("offset", "max"), ("received_at", "max"), ("dead_letters", "any")]
    rows: list[dict[str, Any]] = columns.group_by("partition").aggregate(wanted).to_pylist()
    return {
        row["partition"]: Reached(row["offset_max"], row["received_at_max"], row["dead_letters_any"]) for row in rows
    }


class SeenParam(AccumulatorParam[Seen]):
    """What the tasks of a micro-batch saw, together. Spark merges a task's part before the job that ran it ends.

    A job may merge one part twice: of a task that ran again because its shuffle files were lost, or speculatively.
    """

    def zero(self, value: Seen) -> Seen:  # noqa: ARG002 - Spark's signature
        """Nothing seen."""
        return {}

    def addInPlace(self, value1: Seen, value2: Seen) -> Seen:  # noqa: N802 - Spark's name
        """Both."""
        both = {partition: value1[partition] | value2[partition] for partition in value1.keys() & value2.keys()}
        return {**value1, **value2, **both}
