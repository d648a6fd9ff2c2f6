"""Freshness, publications, recomputes and corrections, as immutable types with the fields of the REST responses.

Numbers, instants and missing fields are as in `galatea.client.answers`.
"""

from datetime import date, datetime

import msgspec

from galatea.client.answers import Number

FINAL_STATES = frozenset({"published", "previewed", "unchanged", "failed"})
"""States of a recompute that do not change any more."""


class ReadPosition(msgspec.Struct, frozen=True, kw_only=True):
    """How far a layer has read one partition. `received_at`: of the newest record it has read; None if none."""

    topic: str
    partition: int
    position: int
    received_at: datetime | None = None


class ReaderLag(msgspec.Struct, frozen=True, kw_only=True):
    """The last measurement of one partition by its reader.

    `records` are left to read before `end`; the oldest of them had waited for `seconds`.
    """

    reader: str
    topic: str
    partition: int
    position: int
    end: int
    records: int
    seconds: Number
    measured_at: datetime


class ActiveAlarm(msgspec.Struct, frozen=True, kw_only=True):
    """Something that asks an operator to act: what it means, and what to do."""

    name: str
    since: datetime
    meaning: str
    do: str


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """How far each layer has read. What counts records of all tenants is None without the scope `operate`.

    Attributes:
        publication: number of the newest publication; 0 if there is none.
        cut: batch covers every event received before.
        published_at: when it was published; None if nothing was.
        generation: of the speed rows that readers see.
        layers: the layers that answers read now.
        speed_as_of: speed has read an event of your stores that was received then; None if it has read none.
        speed_lag_ms: for how many milliseconds the oldest record that speed has not read has been waiting; None if it
            was never measured, or for operators alone.
        archive_as_of: as `speed_as_of`, of the archive.
        archive_lag_ms: by how many milliseconds the archive's newest record is older than that of speed; None if
            unknown.
        alerts_as_of: alerts are evaluated for every event received before; None if they never were.
        speed: how far speed has read, by partition; None: for operators alone.
        archive: how far the archive has read, by partition; None: for operators alone.
        lag: what is left to read, by reader and partition; None: for operators alone.
        alarms: the active alarms; None: for operators alone.
    """

    publication: int
    cut: datetime
    published_at: datetime | None = None
    generation: int | None = None
    layers: tuple[str, ...] = ()
    speed_as_of: datetime | None = None
    speed_lag_ms: int | None = None
    archive_as_of: datetime | None = None
    archive_lag_ms: int | None = None
    alerts_as_of: datetime | None = None
    speed: tuple[ReadPosition, ...] | None = None
    archive: tuple[ReadPosition, ...] | None = None
    lag: tuple[ReaderLag, ...] | None = None
    alarms: tuple[ActiveAlarm, ...] | None = None


class ViewCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What a recompute did for one view: days and blocks written, events read, seconds. None: not counted."""

    days: int | None = None
    blocks: int | None = None
    events: int | None = None
    seconds: Number | None = None


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """A publication, which switched all views at once. What its recompute did not count is None.

    Attributes:
        publication: its number.
        cut: it covers every event received before.
        published_at: when it was published; None for publication 0, which is empty.
        by: who asked for it.
        why: the reason that was given.
        collected: whether its cells were deleted, so that `as_of` cannot read it any more.
        restores: the publication whose cells it published again; None if it is no rollback.
        rows: events read, once for each view.
        partitions: pairs of view and day that were computed.
        days: days that were computed.
        blocks: blocks of cells that were written.
        seconds: from the request to the publication.
        views: the counts of each view.
    """

    publication: int
    cut: datetime
    published_at: datetime | None = None
    by: str = ""
    why: str = ""
    collected: bool = False
    restores: int | None = None
    rows: int | None = None
    partitions: int | None = None
    days: int | None = None
    blocks: int | None = None
    seconds: Number | None = None
    views: dict[str, ViewCounts] | None = None


class RecomputeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for. Empty means everything.

    `first`, `last`: UTC days of `happened_at`, both included. `full`: whether touched or not. `wait`: at a cut that
    covers everything received before the request.
    """

    views: tuple[str, ...] = ()
    first: date | None = msgspec.field(name="from", default=None)
    last: date | None = msgspec.field(name="to", default=None)
    stores: tuple[str, ...] = ()
    full: bool = False
    wait: bool = False
    mode: str = "publish"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """`done` of `total`."""

    done: int
    total: int


class RecomputeProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a recompute is, in partitions (pairs of view and day) and events. None: not known."""

    partitions: Progress | None = None
    events: Progress | None = None
    rows_per_second: Number | None = None
    seconds_left: Number | None = None
    working_on: str | None = None


class RecomputeProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a recompute failed, and what to do. `code` is stable."""

    code: str
    message: str
    do: str


class CauseTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Corrections of one cause: cells, rows of the ledger, and the difference of each state by `view.state`."""

    cells: int | None = None
    rows: int | None = None
    difference: dict[str, int] | None = None


class CorrectionTotals(msgspec.Struct, frozen=True, kw_only=True):
    """All corrections of a publication or preview, by cause."""

    cells: int | None = None
    rows: int | None = None
    causes: dict[str, CauseTotals] | None = None


class RecomputedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A view, UTC day and store that is recomputed, and why."""

    view: str
    day: date
    store: str
    why: str


class RecomputeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a recompute did, as far as it has come. None: not known yet.

    `base`: the publication that it started from. `why`: the reason for each view. `partitions`: of a preview, at most
    10,000 of `partitions_total`. `repeats`, `conflicts`, `miskeyed`: how many such events it met. `run`: names the
    cells that it wrote.
    """

    base: int | None = None
    cut: datetime | None = None
    days: int | None = None
    alarms: tuple[str, ...] | None = None
    why: dict[str, str] | None = None
    corrections: CorrectionTotals | None = None
    partitions: tuple[RecomputedPartition, ...] | None = None
    partitions_total: int | None = None
    blocks: int | None = None
    repeats: int | None = None
    conflicts: int | None = None
    miskeyed: int | None = None
    views: dict[str, ViewCounts] | None = None
    run: str | None = None
    publication: int | None = None


class Recompute(msgspec.Struct, frozen=True, kw_only=True):
    """A recompute as it is now.

    Attributes:
        id: by which it is looked at.
        state: `asked`, `planning`, `planned`, `computing`, `computed`; then one that stays: `published`, `previewed`,
            `unchanged` or `failed`.
        asked: what was asked for.
        asked_by: the name of the key that asked for it.
        why: the reason that was given.
        asked_at: when it was asked for.
        updated_at: when its state or progress last changed.
        ended_at: when it ended; None while it has not.
        progress: how far it is; None before it computes.
        publication: the number of what it published; None if it published nothing.
        problem: why it failed; None if it did not.
        report: what it did; None before it planned.
    """

    id: str
    state: str
    asked: RecomputeRequest
    asked_by: str
    why: str
    asked_at: datetime | None = None
    updated_at: datetime | None = None
    ended_at: datetime | None = None
    progress: RecomputeProgress | None = None
    publication: int | None = None
    problem: RecomputeProblem | None = None
    report: RecomputeReport | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the state is one that does not change any more."""
        return self.state in FINAL_STATES


class RolledBack(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollback published, or would publish.

    `publication`: the new one, which `restores` the old one at its `cut`. `generation`: of the speed rows that readers
    see with it. `partitions`: pairs of view and day whose cells differ by that. `dry_run`: nothing was changed.
    """

    publication: int
    restores: int
    cut: datetime
    generation: int
    partitions: int
    dry_run: bool


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """One state of one cell that readers see differently now. Money is in minor units.

    Attributes:
        view: the view of the cell.
        store: id of the store.
        window: when the window of the cell begins.
        dimensions: a value is None where events have none.
        state: name of the state.
        cause: why it differs: `waited`, `definition changed`, `miskeyed`, `rolled back` or `unexplained`.
        shown: what readers saw before; None if they saw no value.
        corrected: what they see now; None if there is no value any more.
        difference: `corrected` less `shown`.
        events: identities of at most 20 of the events responsible.
        events_total: how many events are responsible.
    """

    view: str
    store: str
    window: datetime
    dimensions: dict[str, str | None]
    state: str
    cause: str
    shown: int | str | None = None
    corrected: int | str | None = None
    difference: int | str | None = None
    events: tuple[str, ...] = ()
    events_total: int = 0
