"""How old everything is, and whether a process can answer."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from serving_layer.responses.encoding import Instant
from serving_layer.responses.metrics import Provenance


class ReadPosition(Struct):
    """How far a layer has read one partition. `received_at`: of the newest record it has read."""

    topic: str
    partition: int
    position: int
    received_at: Instant | None


class ReaderLag(Struct):
    """The last measurement of one partition by its reader.

    `records` are left to read before `end`; the oldest of them had waited for `seconds`.
    """

    reader: str
    topic: str
    partition: int
    position: int
    end: int
    records: int
    seconds: float
    measured_at: Instant


class ActiveAlarm(Struct):
    """Something that asks an operator to act: what it means, and what to do."""

    name: str
    since: Instant
    meaning: str
    do: str


class LateEventsWaiting(Struct):
    """Events that were too old on arrival for the speed layer, and wait for the next publication.

    `since`: the start of the receipt epoch in which the first of them was received. `left_because`: why they wait for
    the schedule (`not_small`, `changed_definitions` or `rolled_back`); null if no small rebuild was refused for them.
    """

    since: Instant
    left_because: str | None


class Freshness(Struct):
    """How far each layer has read, what is left to read, and which alarms are active.

    `speed_lag_ms`: for how long the oldest record that speed has not read has been waiting; 0 if there is none, null if
    it was never measured. `archive_lag_ms`: how much older the archive's newest record is than that of speed.
    `late_events`: null if no event waits for the next publication.
    """

    publication: int
    cut: Instant
    published_at: Instant | None
    generation: int
    layers: Sequence[str]
    speed_as_of: Instant | None
    speed_lag_ms: int | None
    archive_as_of: Instant | None
    archive_lag_ms: int | None
    alerts_as_of: Instant | None
    late_events: LateEventsWaiting | None
    speed: Sequence[ReadPosition]
    archive: Sequence[ReadPosition]
    lag: Sequence[ReaderLag]
    alarms: Sequence[ActiveAlarm]


class Health(Struct):
    """The process is alive."""

    status: Literal["ok"]


class Readiness(Struct):
    """The process can answer, and from what data."""

    status: Literal["ready"]
    as_of: Provenance
