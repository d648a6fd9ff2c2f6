"""Recomputes: what is requested, and the record of each one in Cassandra."""

import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, Self

import msgspec

from master_dataset.errors import GalateaError, RequestError, UnknownNameError
from views.control.publication import Pointer, Session, ViewCounts
from views.control.stored_json import read_stored
from views.core.cut import utc

RecomputeMode = Literal["publish", "preview"]
_WAIT = "wait"


class RecomputeRequest(msgspec.Struct, frozen=True):
    """Empty means everything. A `partial` request keeps the published cut.

    `first`, `last` (`from`, `to` in JSON): UTC days of `happened_at`, both included. `stores`: only days on which one
    of them has events. `full`: every day, whether it was touched since the last publication or not. `wait`: at a cut
    that covers everything received before the call. `mode`: a preview publishes nothing.
    """

    views: tuple[str, ...] = ()
    first: date | None = msgspec.field(name="from", default=None)
    last: date | None = msgspec.field(name="to", default=None)
    stores: tuple[str, ...] = ()
    full: bool = False
    wait: bool = False
    mode: RecomputeMode = "publish"

    def __post_init__(self) -> None:
        """RequestError if the last day is before the first."""
        if self.first and self.last and self.first > self.last:
            raise RequestError(f"`from` `{self.first}` is after `to` `{self.last}`", do="swap them")

    @property
    def is_partial(self) -> bool:
        """Whether only chosen views, days or stores are recomputed."""
        return bool(self.views or self.first or self.last or self.stores)

    def to_json(self) -> str:
        """As the record keeps it and REST shows it; `from_json` gives an equal request."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return msgspec.json.decode(text, type=cls)

    def to_form(self) -> dict[str, Any]:
        """The form parameters of the Airflow DAG, which has no `wait`."""
        form: dict[str, Any] = msgspec.to_builtins(self)
        del form[_WAIT]
        return form

    @classmethod
    def from_form(cls, form: Mapping[str, Any]) -> Self:
        """The request of a DAG run: of its form as far as it was filled in; of a DAG without one, everything."""
        known = {name: form[name] for name in cls.__struct_encode_fields__ if form.get(name)}
        return msgspec.convert(known, cls)

    def options(self) -> Iterator[str]:
        """The same for `galatea rebuild` and `galatea recompute plan`, whose arguments are the views.

        Values follow a `=`, so none is mistaken for an option.
        """
        if self.first:
            yield f"--from={self.first.isoformat()}"
        if self.last:
            yield f"--to={self.last.isoformat()}"
        yield from (f"--store={store}" for store in self.stores)
        if self.full:
            yield "--full"
        if self.wait:
            yield "--wait"
        if self.mode == "preview":
            yield "--dry-run"


State = Literal[
    "asked", "planning", "planned", "computing", "computed", "published", "previewed", "unchanged", "failed"
]
"""`published`, `previewed` and `unchanged` are ends. A `failed` recompute may be resumed under the same id."""
ENDS = frozenset({"published", "previewed", "unchanged", "failed"})
"""States in which no process works on the recompute."""
DONE = ENDS - {"failed"}
"""States in which nothing is left to do."""
RESUMABLE = timedelta(days=1)
"""A recompute that has not been touched for this long is planned again, under another run name, when it is resumed.

Garbage collection keeps its cells for twice as long, so no resumption races with a collection.
"""
Why = Literal["new events", "changed definition", "asked for"]
"""Why the days of a view are recomputed. A view that was never published has a changed definition."""

LATE_EVENTS_REASON = "late events"
"""The reason of a recompute that late events have started by themselves."""
BY_ITSELF = "galatea"
"""Who requested it."""

_NUMBER = "#"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,199}")


class Problem(msgspec.Struct, frozen=True):
    """Why a recompute failed, and what to do about it."""

    code: str
    message: str
    do: str = ""

    @classmethod
    def of(cls, error: GalateaError) -> Self:
        """The problem that an error of ours describes."""
        return cls(error.code, error.message, error.do)


class Done(msgspec.Struct, frozen=True):
    """`done` of `total`."""

    done: int
    total: int


class Progress(msgspec.Struct, frozen=True):
    """The progress of a computation.

    `partitions`: (view, day) pairs; rate and estimate are None before the first events.
    """

    partitions: Done
    events: Done
    rows_per_second: float | None
    seconds_left: float | None
    working_on: str


class PortionCounts(msgspec.Struct, frozen=True):
    """What was counted in one portion of the work, or in several; `run` is the run that wrote the cells."""

    repeats: int = 0
    conflicts: int = 0
    miskeyed: int = 0
    blocks: int = 0
    views: dict[str, ViewCounts] = {}
    run: str = ""

    def __add__(self, other: "PortionCounts") -> "PortionCounts":
        """Both together, of no run in particular."""
        views = dict(self.views)
        for name, counts in other.views.items():
            views[name] = views.get(name, ViewCounts()) + counts
        return PortionCounts(
            self.repeats + other.repeats,
            self.conflicts + other.conflicts,
            self.miskeyed + other.miskeyed,
            self.blocks + other.blocks,
            views,
        )


Cause = Literal["waited", "definition changed", "miskeyed", "unexplained", "rolled back"]
"""Why a published cell was corrected."""


class CauseTotals(msgspec.Struct):
    """Corrections for one cause. `rows`: lines of the ledger; `difference`: `view.state` to the sum of differences."""

    cells: int = 0
    rows: int = 0
    difference: dict[str, int] = {}


class LedgerTotals(msgspec.Struct, frozen=True):
    """The totals of a correction ledger."""

    cells: int
    rows: int
    causes: dict[str, CauseTotals]


class PlannedPartition(msgspec.Struct, frozen=True):
    """A (view, day, store) that a preview would recompute. `day`: ISO."""

    view: str
    day: str
    store: str
    why: str


class Report(msgspec.Struct, frozen=True):
    """What a recompute planned and counted so far. What is not known yet is UNSET, and absent from the JSON.

    `base`: the publication that readers saw. `why`: view to the reason. `corrections`: None
    until the ledger is written.
    `partitions`: of a preview, the first 10,000 of `partitions_total`.
    """

    base: int | msgspec.UnsetType = msgspec.UNSET
    cut: datetime | msgspec.UnsetType = msgspec.UNSET
    days: int | msgspec.UnsetType = msgspec.UNSET
    alarms: list[str] | msgspec.UnsetType = msgspec.UNSET
    why: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    corrections: LedgerTotals | msgspec.UnsetType | None = msgspec.UNSET
    partitions: list[PlannedPartition] | msgspec.UnsetType = msgspec.UNSET
    partitions_total: int | msgspec.UnsetType = msgspec.UNSET
    blocks: int | msgspec.UnsetType = msgspec.UNSET
    repeats: int | msgspec.UnsetType = msgspec.UNSET
    conflicts: int | msgspec.UnsetType = msgspec.UNSET
    miskeyed: int | msgspec.UnsetType = msgspec.UNSET
    views: dict[str, ViewCounts] | msgspec.UnsetType = msgspec.UNSET
    run: str | msgspec.UnsetType = msgspec.UNSET
    publication: int | msgspec.UnsetType = msgspec.UNSET


class PlanNumber(msgspec.Struct, frozen=True):
    """A discarded plan: only its number is kept, so that the next one gets another run name."""

    number: int


class StoredPlan(PlanNumber, frozen=True):
    """A plan in its stored form, so that an interrupted recompute continues with the same plan.

    `run`: the name under which its cells are written. `work`: view to UTC days. `masters`: topic to (path, version).
    """

    run: str
    base: Pointer
    cut: datetime
    generation: int
    work: dict[str, list[date]]
    whys: dict[str, Why]
    masters: dict[str, tuple[str, int]]
    master_versions: dict[str, int]
    definitions: dict[str, str]
    alarms: list[str]
    read_at: datetime | None


@dataclass(frozen=True)
class Recompute:
    """A recompute as it is now. `portions`: what was counted in each finished portion of the work, by its number.

    `plan`: None before the first plan. `plan_json`: the column that `plan` was read from, which `Recomputes.plan`
    compares; nothing else reads it.
    """

    id: str
    request: RecomputeRequest
    requested_by: str
    why: str
    requested_at: datetime
    state: State
    updated_at: datetime | None = None
    plan: PlanNumber | None = None
    plan_json: str | None = None
    progress: Progress | None = None
    portions: Mapping[int, PortionCounts] = field(default_factory=dict)
    publication: int | None = None
    problem: Problem | None = None
    report: Report | None = None

    @property
    def is_prompt_correction(self) -> bool:
        """Whether late events have started it by themselves."""
        return (self.requested_by, self.why) == (BY_ITSELF, LATE_EVENTS_REASON)


class Recomputes:
    """The recomputes, in Cassandra.

    Every write is a lightweight transaction. Their order does not depend on the clocks of clients, as that of ordinary
    writes does, and the two must not be mixed: an ordinary write by a clock that is behind is lost.
    """

    def __init__(self, session: Session) -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def create(self, recompute: Recompute) -> None:
        """Write the record, before anything else is done. An existing record of that id is not changed."""
        insert = self._session.prepare(
            "INSERT INTO recomputes (id, asked, asked_by, why, asked_at, state, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS"
        )
        asked, at = recompute.request.to_json(), recompute.requested_at
        values = (recompute.id, asked, recompute.requested_by, recompute.why, at, recompute.state, at)
        self._session.execute(insert, values)

    def find(self, id_: str) -> Recompute:
        """The record of that id. UnknownNameError if there is none."""
        if not id_:  # Cassandra refuses an empty key
            raise UnknownNameError("recompute", id_, ())
        row = self._session.execute(self._session.prepare("SELECT * FROM recomputes WHERE id = ?"), (id_,)).one()
        if row is None or row.asked is None:
            raise UnknownNameError("recompute", id_, ())
        return Recompute(
            id_,
            RecomputeRequest.from_json(row.asked),
            row.asked_by,
            row.why,
            utc(row.asked_at),
            row.state,
            utc(row.updated_at),
            plan=read_stored_plan(row.plan),
            plan_json=row.plan or None,
            progress=read_stored(row.progress, Progress),
            portions=_read_portions(row.portions),
            publication=row.publication,
            problem=read_stored(row.problem, Problem),
            report=read_stored(row.report, Report),
        )

    def update(self, id_: str, state: State, **values: Progress | Problem | Report | int | None) -> None:
        """Write the state, and `values` by column: progress, publication, problem, report. None clears a column."""
        columns: dict[str, object] = {
            name: _write(each) if isinstance(each, msgspec.Struct) else each for name, each in values.items()
        }
        now = datetime.now(UTC)
        columns |= {"updated_at": now} | ({"ended_at": now} if state in ENDS else {})
        names = "".join(f", {name} = ?" for name in columns)
        update = self._session.prepare(f"UPDATE recomputes SET state = ?{names} WHERE id = ? IF EXISTS")  # noqa: S608 - our own names
        self._session.execute(update, (state, *columns.values(), id_))

    def plan(self, seen: Recompute, plan: PlanNumber) -> bool:
        """Replace the plan of the record `seen`. False if another process has replaced it."""
        update = self._session.prepare("UPDATE recomputes SET plan = ? WHERE id = ? IF plan = ?")
        new = _write(plan)
        row = self._session.execute(update, (new, seen.id, seen.plan_json)).one()
        # A retry by the driver finds what its first attempt has done.
        return row.applied or getattr(row, "plan", None) == new

    def keep_portion(self, id_: str, number: int, counts: PortionCounts) -> None:
        """Write down that a portion of the planned work is done, so that it need not be done again."""
        statement = "UPDATE recomputes SET portions[?] = ?, updated_at = ? WHERE id = ? IF EXISTS"
        update = self._session.prepare(statement)
        self._session.execute(update, (number, _write(counts), datetime.now(UTC), id_))

    def forget_portions(self, id_: str) -> None:
        """Delete the finished portions: another plan is to be done."""
        self._session.execute(self._session.prepare("DELETE portions FROM recomputes WHERE id = ? IF EXISTS"), (id_,))


def run_named(id_: str, number: int) -> str:
    """The run of a recompute's plan of that number. No id contains the sign, so no other recompute has that name."""
    return id_ if number == 1 else f"{id_}{_NUMBER}{number}"


def owner(run: str) -> str:
    """The id of the recompute that a run belongs to."""
    return run.partition(_NUMBER)[0]


def new_id() -> str:
    """A unique id."""
    return f"recompute-{uuid.uuid4()}"


def checked_id(id_: str) -> str:
    """An id chosen by the caller, such as that of a scheduler's run. RequestError if it is malformed."""
    if not _ID.fullmatch(id_) or id_.isdecimal():  # a number names a publication
        raise RequestError(
            f"`{id_[:50]}` is not the id of a recompute", do="use up to 200 letters, digits and . _ : + -"
        )
    return id_


def read_stored_plan(text: str | None) -> PlanNumber | None:
    """The plan column: a StoredPlan, or the PlanNumber of one that was discarded or has another release's form.

    A plan that lacks anything cannot be continued. With its number known, the next one gets another run name.
    """
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=StoredPlan)
    except msgspec.ValidationError:
        found = read_stored(text, _Numbered) or _Numbered()
        return PlanNumber(found.number or _number_of(found.run))


class _Numbered(msgspec.Struct):
    number: int = 0
    run: str = ""


def _number_of(run: str) -> int:
    """The number of the plan whose run has this name; the inverse of `run_named`."""
    number = run.partition(_NUMBER)[2]
    return int(number) if number.isdecimal() else 1


def _read_portions(portions: Mapping[int, str] | None) -> dict[int, PortionCounts]:
    """Finished portions by number. Those in another form are left out, so they are computed again."""
    found = {}
    for number, text in (portions or {}).items():
        with suppress(msgspec.ValidationError):
            found[number] = msgspec.json.decode(text, type=PortionCounts)
    return found


def _write(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()
