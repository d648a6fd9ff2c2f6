"""A recompute as an operation: asked, planned, computed, published. Known by its id before anything is done."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import orjson

from master_dataset.errors import RequestError, UnknownName
from views.control.recompute_request import RecomputeRequest
from views.core.cut import utc

if TYPE_CHECKING:
    from cassandra.cluster import Session

State = Literal[
    "asked", "planning", "planned", "computing", "computed", "published", "previewed", "unchanged", "failed"
]
"""`published`, `previewed` and `unchanged` are ends. What `failed` may be taken up again under the same id."""
ENDS = frozenset({"published", "previewed", "unchanged", "failed"})
"""States in which nobody works on it."""

_NUMBER = "#"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,199}")


@dataclass(frozen=True)
class Recompute:
    """One of them as it is now. `plan`, `progress`, `problem`, `report`: JSON, or None as long as there is none.

    `portions`: what was counted in each portion of the work that is done, by its number.
    """

    id: str
    asked: RecomputeRequest
    asked_by: str
    why: str
    asked_at: datetime
    state: State
    updated_at: datetime | None = None
    plan: Mapping[str, Any] | None = None
    progress: Mapping[str, Any] | None = None
    portions: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    publication: int | None = None
    problem: Mapping[str, str] | None = None
    report: Mapping[str, Any] | None = None


class Recomputes:
    """The recomputes as Cassandra keeps them."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def create(self, recompute: Recompute) -> None:
        """Write it down before anything is done. One that is there already stays as it is."""
        insert = self._session.prepare(
            "INSERT INTO recomputes (id, asked, asked_by, why, asked_at, state, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS"
        )
        asked = recompute.asked.to_json()
        at = recompute.asked_at
        self._session.execute(insert, (recompute.id, asked, recompute.asked_by, recompute.why, at, recompute.state, at))

    def find(self, id_: str) -> Recompute:
        """UnknownName if there is none of that id."""
        row = self._session.execute(self._session.prepare("SELECT * FROM recomputes WHERE id = ?"), (id_,)).one()
        if row is None or row.asked is None:
            raise UnknownName("recompute", id_, ())
        json = {name: _read(getattr(row, name)) for name in ("plan", "progress", "problem", "report")}
        portions = {number: orjson.loads(counted) for number, counted in (row.portions or {}).items()}
        return Recompute(
            id_,
            RecomputeRequest.from_json(row.asked),
            row.asked_by,
            row.why,
            utc(row.asked_at),
            row.state,
            utc(row.updated_at),
            portions=portions,
            publication=row.publication,
            **json,
        )

    def update(self, id_: str, state: State, **values: Any) -> None:  # noqa: ANN401 - JSON, by column
        """Say how it is now. `values`: progress, publication, problem, report; None takes one back."""
        columns = {name: each if name == "publication" else _write(each) for name, each in values.items()}
        now = datetime.now(UTC)
        columns |= {"updated_at": now} | ({"ended_at": now} if state in ENDS else {})
        names = "".join(f", {name} = ?" for name in columns)
        update = self._session.prepare(f"UPDATE recomputes SET state = ?{names} WHERE id = ?")  # noqa: S608 - our own names
        self._session.execute(update, (state, *columns.values(), id_))

    def plan(self, seen: Recompute, plan: Mapping[str, Any]) -> bool:
        """Keep another plan, or only its number, than the one seen. False if somebody else has done so meanwhile.

        Written by nothing but this, as a transaction and an ordinary write of a column may not be mixed.
        """
        update = self._session.prepare("UPDATE recomputes SET plan = ? WHERE id = ? IF plan = ?")
        new = _write(plan)
        row = self._session.execute(update, (new, seen.id, _write(seen.plan))).one()
        # A second try of the driver's finds what its first one has done.
        return row.applied or getattr(row, "plan", None) == new

    def keep_portion(self, id_: str, number: int, counted: Mapping[str, Any]) -> None:
        """A portion of the planned work is done: it need not be done again."""
        update = self._session.prepare("UPDATE recomputes SET portions[?] = ?, updated_at = ? WHERE id = ?")
        self._session.execute(update, (number, orjson.dumps(counted).decode(), datetime.now(UTC), id_))

    def forget_portions(self, id_: str) -> None:
        """Another plan is to be done."""
        self._session.execute(self._session.prepare("DELETE portions FROM recomputes WHERE id = ?"), (id_,))


def run_named(id_: str, number: int) -> str:
    """The run of a recompute's plan of that number. No id has the sign in it, so no other recompute's is called so."""
    return id_ if number == 1 else f"{id_}{_NUMBER}{number}"


def owner(run: str) -> str:
    """The id of the recompute that a run belongs to."""
    return run.partition(_NUMBER)[0]


def new_id() -> str:
    """An id that nobody else has."""
    return f"recompute-{uuid.uuid4()}"


def checked_id(id_: str) -> str:
    """The id of a caller's own choice, such as a scheduler's run. RequestError if it is none."""
    if not _ID.fullmatch(id_) or id_.isdecimal():  # a number is that of a publication
        raise RequestError(f"`{id_[:50]}` is no id of a recompute", do="use up to 200 letters, digits and . _ : + -")
    return id_


def _read(text: str | None) -> Any:  # noqa: ANN401 - JSON
    return orjson.loads(text) if text else None


def _write(value: object) -> str | None:
    return None if value is None else orjson.dumps(value, option=orjson.OPT_UTC_Z).decode()
