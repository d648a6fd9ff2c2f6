"""Questions that anybody who reads may ask: metrics, stores, cells, receipts, freshness, publications.

What an operator asks for: recomputes, the way back, and what was corrected. All need a key that may operate.
"""

from collections.abc import Mapping
from datetime import date, datetime
from http import HTTPStatus
from typing import Any, Literal, TypedDict, Unpack

import msgspec

from galatea.client.answers import Answer, Answers, Cells, Freshness, Metric, Publication, Receipt, Store
from galatea.client.connection import Call, Names, Page, Pages, Pause, Steps, When, listed, once, path, query, reader
from galatea.client.errors import NotYet


class Question(TypedDict, total=False):
    """What may be asked of a metric beside its range; left out is the API's default.

    `store`: ids, all that the key opens if none is named. `grain`: `15m`, `hour`, `day`, `week`, `month`, `year`,
    `hour_of_week` or `total`. `by`: dimensions to split by. `compare`: such as `previous_week`. `hours`: `all` or
    `open`. `timezone`: each store's own if it is left out. `as_of`: the number of a publication. `partial`: answer from
    batch alone, labelled, when speed is missing. `comp`: comparable stores only. `only_covered`: only windows in which
    sensors were alive. `context`: `holidays`, `weather`. `limit`, `after`: so many stores, and the `next` of an answer.
    """

    store: Names
    grain: str
    by: Names
    compare: str
    hours: str
    timezone: str
    as_of: int
    partial: bool
    comp: bool
    only_covered: bool
    context: Names
    limit: int
    after: str


def metrics() -> Call[tuple[Metric, ...]]:
    """Every metric: what it is called, how it is made, and from which views."""
    read = reader(_Metrics)
    return Call(path("metrics"), lambda body: read(body).metrics)


def metric(metric: str, *, start: When, end: When, **asked: Unpack[Question]) -> Call[Answer]:
    """One metric over time. `start` is inclusive, `end` exclusive: a local date, or an instant with its offset.

    The other arguments are those of `Question`.
    """
    return Call(path("metrics", metric), reader(Answer), _asked(start, end, asked))


def several(metrics: Names, *, start: When, end: When, **asked: Unpack[Question]) -> Call[Answers]:
    """Several metrics, all of one moment: none is newer than another. Arguments as of `metric`."""
    names, question = listed(metrics), _asked(start, end, asked)
    if len(names) > 1:
        return Call(path("metrics", ",".join(names)), reader(Answers), question)
    read = reader(Answer)  # of one metric the API answers as if it were asked for alone
    return Call(path("metrics", *names), lambda body: _alone(read(body)), question)


def stores() -> Call[tuple[Store, ...]]:
    """Every registered store that the key opens."""
    read = reader(_Stores)
    return Call(path("stores"), lambda body: read(body).stores)


def cells(  # noqa: PLR0913 - what the API asks
    view: str, *, start: When, end: When, store: Names = (), partial: bool = False, as_of: int | None = None
) -> Call[Cells]:
    """The states of each cell from batch, from speed, and merged. Money is in minor units here."""
    question = query(from_=start, to=end, store=listed(store), partial=partial, as_of=as_of)
    return Call(path("views", view, "cells"), reader(Cells), question)


def raw_receipts(store: str, day: date | str, *, limit: int = 1000) -> Pages[Receipt]:
    """Receipts as they were received, newest first, of one store and UTC day of `happened_at`; `limit` in a page."""
    read = reader(_Receipts)

    def ask(after: str | None) -> Call[Page[Receipt]]:
        question = query(store=store, day=day, limit=limit, after=after)
        return Call(path("raw", "pos_transactions"), lambda body: _page(read(body)), question)

    return Pages(ask)


def freshness() -> Call[Freshness]:
    """How far each layer has read, what is left to read, and which alarms stand."""
    return Call(path("freshness"), reader(Freshness))


def publications(*, limit: int = 100) -> Pages[Publication]:
    """Publications, newest first; `limit` in a page."""
    read = reader(_Publications)

    def understood(body: bytes) -> Page[Publication]:
        told = read(body)
        return Page(told.publications, None if told.next is None else str(told.next))

    def ask(before: str | None) -> Call[Page[Publication]]:
        return Call(path("publications"), understood, query(limit=limit, before=before))

    return Pages(ask)


def _asked(start: When, end: When, asked: Question) -> tuple[tuple[str, str], ...]:
    lists = {"store": listed(asked.get("store", ())), "by": listed(asked.get("by", ()))}
    context = ",".join(listed(asked.get("context", ())))
    return query(from_=start, to=end, **{**asked, **lists, "context": context or None})


def _alone(answer: Answer) -> Answers:
    return Answers(answers=(answer,), as_of=answer.as_of, next=answer.next)


class _Metrics(msgspec.Struct):
    metrics: tuple[Metric, ...]


class _Stores(msgspec.Struct):
    stores: tuple[Store, ...]


class _Receipts(msgspec.Struct):
    receipts: tuple[Receipt, ...]
    next: str | None


class _Publications(msgspec.Struct):
    publications: tuple[Publication, ...]
    next: int | None


def _page(told: _Receipts) -> Page[Receipt]:
    return Page(told.receipts, told.next)


ENDS = frozenset({"published", "previewed", "unchanged", "failed"})
"""States of which nothing follows by itself."""
Day = date | str


class Recompute(msgspec.Struct, frozen=True, kw_only=True):
    """A recompute as it is now.

    `state`: asked, planning, planned, computing, computed, then published, previewed, unchanged or failed. `problem`:
    why it failed, and what to do. `report`: what it did.
    """

    id: str
    state: str
    asked: dict[str, Any]
    asked_by: str
    why: str
    asked_at: datetime | None = None
    updated_at: datetime | None = None
    ended_at: datetime | None = None
    progress: dict[str, Any] | None = None
    publication: int | None = None
    problem: dict[str, Any] | None = None
    report: dict[str, Any] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more follows by itself."""
        return self.state in ENDS


class RolledBack(msgspec.Struct, frozen=True, kw_only=True):
    """`publication`: the new one, which `restores` an old one at its `cut`. `dry_run`: nothing was changed."""

    publication: int
    restores: int
    cut: datetime
    generation: int
    partitions: int
    dry_run: bool


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """One state of one cell that readers see differently now; money is in minor units.

    `shown`: None where nobody was shown a value; `corrected`: None where there is none any more. `events` names at most
    20 of those responsible, `events_total` counts them.
    """

    view: str
    store: str
    window: datetime
    dimensions: dict[str, str | None]
    state: str
    cause: str
    shown: Any = None
    corrected: Any = None
    difference: Any = None
    events: tuple[str, ...] = ()
    events_total: int = 0


def recompute(  # noqa: PLR0913 - what the API asks
    *,
    reason: str,
    views: Names = (),
    first: Day | None = None,
    last: Day | None = None,
    stores: Names = (),
    full: bool = False,
    mode: Literal["publish", "preview"] = "publish",
) -> Call[str]:
    """Recompute from the master dataset; the id comes before anything is done, and `wait` waits for the end.

    `first`, `last`: UTC days of `happened_at`, both included. What is left out means everything, or what was touched
    since the last publication; `full`: whether touched or not. `mode="preview"` writes corrections and no more.
    """
    said = {
        "views": listed(views),
        "from": first,
        "to": last,
        "stores": listed(stores),
        "full": full,
        "mode": mode,
        "reason": reason,
    }
    read = reader(_Started)
    answered = frozenset({HTTPStatus.ACCEPTED})
    return Call(path("recomputes"), lambda body: read(body).id, answered=answered, **_saying(said))


def recompute_state(id: str) -> Call[Recompute]:  # noqa: A002 - the name in the API
    """One recompute as it is now."""
    return Call(path("recomputes", id), reader(Recompute))


def wait(id: str, *, every: float = 1.0, at_most: float = 3600.0) -> Steps[Recompute]:  # noqa: A002 - as above
    """The recompute when it has ended, however it ended: look at `state`. NotYet after `at_most` seconds of waiting."""
    waited = 0.0
    while not (found := (yield from once(recompute_state(id)))).has_ended:
        if waited >= at_most:
            raise NotYet(f"The recompute `{id}` is {found.state} after {waited:g} seconds. Wait for it again.")
        yield Pause(every)
        waited += every
    return found


def rollback(publication: int, *, reason: str, dry_run: bool = False) -> Call[RolledBack]:
    """Publish again what an older publication said; answered when readers are switched."""
    said = {"reason": reason, "dry_run": dry_run}
    return Call(path("publications", publication, "rollback"), reader(RolledBack), **_saying(said))


def corrections(  # noqa: PLR0913 - what the API asks
    publication: int | None = None,
    *,
    recompute: str | None = None,
    view: str | None = None,
    store: str | None = None,
    cause: str | None = None,
    limit: int = 1000,
) -> Pages[Correction]:
    """What a publication, the newest if none is named, or a previewed recompute changed in what readers are shown.

    By view, store and day; `limit` in a page. NotYet while the ledger is not written: it would look like no correction.
    """
    read = reader(_Corrections)

    def understood(body: bytes) -> Page[Correction]:
        told = read(body)
        if told.pending:
            raise NotYet("The corrections are not written yet. Ask again in a moment.")
        return Page(told.corrections, told.next)

    def ask(after: str | None) -> Call[Page[Correction]]:
        question = query(
            publication=publication, recompute=recompute, view=view, store=store, cause=cause, limit=limit, after=after
        )
        return Call(path("corrections"), understood, question)

    return Pages(ask)


class _Said(TypedDict):
    method: str
    body: bytes
    headers: Mapping[str, str]
    is_repeatable: bool


def _saying(said: Mapping[str, object]) -> _Said:
    """Never sent twice: the second would start another one."""
    body = msgspec.json.encode({name: value for name, value in said.items() if value is not None})
    return {"method": "POST", "body": body, "headers": {"Content-Type": "application/json"}, "is_repeatable": False}


class _Started(msgspec.Struct):
    id: str


class _Corrections(msgspec.Struct):
    corrections: tuple[Correction, ...]
    pending: bool
    next: str | None
