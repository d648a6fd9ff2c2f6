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


class Freshness(Struct, kw_only=True):
    """How far each layer has read, what is left to read, and which alarms are active.

    `speed_as_of`: speed has read an event that was received then, of a store that the caller sees; null if it has read
    none. `speed_lag_ms`: for how long the oldest record that speed has not read has been waiting; 0 if there is none,
    null if it was never measured. `archive_lag_ms`: how much older the archive's newest record is than that of speed.
    `late_events`: null if no event waits for the next publication.

    Partitions have records of all tenants, so `speed_lag_ms`, `archive_as_of`, `archive_lag_ms`, `speed`, `archive`,
    `late_events`, `lag` and `alarms` are for operators, and null for everybody else.
    """

    publication: int
    cut: Instant
    published_at: Instant | None
    generation: int
    layers: Sequence[str]
    speed_as_of: Instant | None
    speed_lag_ms: int | None = None
    archive_as_of: Instant | None = None
    archive_lag_ms: int | None = None
    alerts_as_of: Instant | None
    late_events: LateEventsWaiting | None = None
    speed: Sequence[ReadPosition] | None = None
    archive: Sequence[ReadPosition] | None = None
    lag: Sequence[ReaderLag] | None = None
    alarms: Sequence[ActiveAlarm] | None = None


class Health(Struct):
    """The process is alive."""

    status: Literal["ok"]


class Readiness(Struct):
    """The process can answer, and from what data. `speed_as_of` is null: whoever asks needs no key."""

    status: Literal["ready"]
    as_of: Provenance
