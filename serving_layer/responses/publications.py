"""What operators read: publications, rollbacks, recomputes, and what was corrected."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal, Self

from msgspec import UNSET, Struct, UnsetType, structs

from serving_layer.responses.encoding import Instant, Number
from views.control.recompute import RecomputeRequest

RecomputeState = Literal[
    "asked", "planning", "planned", "computing", "computed", "published", "previewed", "unchanged", "failed"
]


class ViewCounts(Struct):
    """What a recompute did for one view: days and blocks written, events read, seconds."""

    days: int | UnsetType = UNSET
    blocks: int | UnsetType = UNSET
    events: int | UnsetType = UNSET
    seconds: Number | UnsetType = UNSET


class ListedPublication(Struct, kw_only=True):
    """A publication. What its recompute did not count is null.

    `collected`: its cells are gone, so `as_of` refuses it. `restores`: the publication whose cells it published again.
    `rows`: events read, once for each view. `partitions`: pairs of view and day. `seconds`: until it was published.
    It covers all tenants, so who published it, why and what was counted is for operators: see `for_readers`.
    """

    publication: int
    cut: Instant
    published_at: Instant | None
    by: str | UnsetType = UNSET
    why: str | UnsetType = UNSET
    collected: bool
    restores: int | None
    rows: int | None
    partitions: int | None
    days: int | None
    blocks: int | None
    seconds: Number | None
    views: Mapping[str, ViewCounts] | None

    def for_readers(self) -> Self:
        """The same without what is for operators: `by` and `why` are left out, and counts are null."""
        counts = dict.fromkeys(("rows", "partitions", "days", "blocks", "seconds", "views"))
        return structs.replace(self, by=UNSET, why=UNSET, **counts)


class PublicationPage(Struct):
    """Publications, newest first. `next`: the `before` of the next page, null on the last."""

    publications: Sequence[ListedPublication]
    next: int | None


class RolledBack(Struct):
    """The new publication, which `restores` the old one at its `cut`, with speed rows of `generation`.

    `partitions`: how many pairs of view and day have other cells by that. `dry_run`: nothing was changed.
    """

    publication: int
    restores: int
    cut: Instant
    generation: int
    partitions: int
    dry_run: bool


class CauseTotals(Struct):
    """Corrections of one cause: cells, rows of the ledger, and the difference of each state by `view.state`."""

    cells: int | UnsetType = UNSET
    rows: int | UnsetType = UNSET
    difference: Mapping[str, int] | UnsetType = UNSET


class CorrectionTotals(Struct):
    """All corrections of a publication or preview, by cause."""

    cells: int | UnsetType = UNSET
    rows: int | UnsetType = UNSET
    causes: Mapping[str, CauseTotals] | UnsetType = UNSET


class Correction(Struct):
    """One state of one cell that readers see differently now; money is in minor units.

    `shown`: null where nobody was shown a value. `corrected`: null where there is none any more. `events` names at most
    20 of the events responsible, `events_total` counts them.
    """

    view: str
    store: str
    window: Instant
    dimensions: Mapping[str, str | None]
    state: str
    shown: int | str | None
    corrected: int | str | None
    cause: str
    events: Sequence[str]
    events_total: int
    difference: int | str


class CorrectionPage(Struct):
    """What a publication, or a previewed recompute, changed in what readers are shown.

    `base`: the publication that was corrected. `pending`: the ledger is not written yet. `totals` are over everything.
    `next`: the `after` of the next page, null on the last.
    """

    publication: int | None
    recompute: str | None
    base: int | None
    written_at: Instant | None
    pending: bool
    totals: CorrectionTotals | None
    corrections: Sequence[Correction]
    next: str | None


class StartedRecompute(Struct):
    """The id by which a recompute is looked at."""

    id: str


class Done(Struct):
    """How many of how many."""

    done: int
    total: int


class RecomputeProgress(Struct):
    """How far a recompute is, in partitions (pairs of view and day) and events.

    `rows_per_second` and `seconds_left` are null while they are unknown.
    """

    partitions: Done | UnsetType = UNSET
    events: Done | UnsetType = UNSET
    rows_per_second: Number | UnsetType | None = UNSET
    seconds_left: Number | UnsetType | None = UNSET
    working_on: str | UnsetType = UNSET


class RecomputeProblem(Struct):
    """Why a recompute failed, and what to do."""

    code: str
    message: str
    do: str


class RecomputedPartition(Struct):
    """A view, UTC day and store that is recomputed, and why."""

    view: str
    day: date
    store: str
    why: str


class RecomputeReport(Struct):
    """What a recompute did, as far as it has come. `base`: the publication that it started from.

    `why`: the reason for each view. `corrections`: null until the ledger is written. A preview names `partitions`, at
    most 10,000 of `partitions_total`. `run`: whose cells it wrote.
    """

    base: int | UnsetType = UNSET
    cut: Instant | UnsetType = UNSET
    days: int | UnsetType = UNSET
    alarms: Sequence[str] | UnsetType = UNSET
    why: Mapping[str, str] | UnsetType = UNSET
    corrections: CorrectionTotals | UnsetType | None = UNSET
    partitions: Sequence[RecomputedPartition] | UnsetType = UNSET
    partitions_total: int | UnsetType = UNSET
    blocks: int | UnsetType = UNSET
    repeats: int | UnsetType = UNSET
    conflicts: int | UnsetType = UNSET
    miskeyed: int | UnsetType = UNSET
    views: Mapping[str, ViewCounts] | UnsetType = UNSET
    run: str | UnsetType = UNSET
    publication: int | UnsetType = UNSET


class ListedRecompute(Struct):
    """A recompute in the list. `days` that it computed and `cells` that it corrected: null until they are known."""

    id: str
    state: RecomputeState
    asked: RecomputeRequest
    asked_by: str
    why: str
    asked_at: Instant | None
    ended_at: Instant | None
    publication: int | None
    days: int | None
    cells: int | None


class RecomputeList(Struct):
    """The newest recomputes, newest first."""

    recomputes: Sequence[ListedRecompute]


class Recompute(Struct):
    """A recompute as it is now.

    `asked`: the request. `asked_by`, `asked_at`: who requested it, and when. `state`: `asked` means that it was
    requested and has not started. `problem`: why it failed. `report`: what it did, once it has done it.
    """

    id: str
    state: RecomputeState
    asked: RecomputeRequest
    asked_by: str
    why: str
    asked_at: Instant | None
    updated_at: Instant | None
    ended_at: Instant | None
    progress: RecomputeProgress | None
    publication: int | None
    problem: RecomputeProblem | None
    report: RecomputeReport | None
