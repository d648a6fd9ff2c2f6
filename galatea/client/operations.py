"""What an operator asks for: recomputes, the way back, and what was corrected. All need a key that may operate."""

from collections.abc import Mapping
from datetime import date, datetime
from http import HTTPStatus
from typing import Any, Literal, TypedDict

import msgspec

from galatea.client.call import Call, Names, Page, Pages, Pause, Steps, listed, once, path, query, reader
from galatea.client.errors import NotYet

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
