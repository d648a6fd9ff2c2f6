"""Publications and the pointer row that says which of them readers see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import orjson

from views.core.cut import UNIX_EPOCH, utc


@dataclass(frozen=True)
class Pointer:
    """`cut`: batch covers what was received before it. `manifest`: the run whose manifest names the cells, or "".

    `generation`: whose speed rows count from the cut on; 0 while there are none. `definitions`: view name to the hash
    that the published cells and the speed rows were made with.
    """

    publication: int
    cut: datetime
    manifest: str
    generation: int
    definitions: Mapping[str, str]


SERIES = "galatea"
"""The partition of the publications."""

SELECT_POINTER = (
    "SELECT current, current_cut, current_manifest, current_generation, current_definitions "
    "FROM publications WHERE series = 'galatea' LIMIT 1"
)


SERIAL = 8
"""The consistency level that settles an unknown outcome: the read finishes any transaction that is under way."""

_BEGIN = (
    "INSERT INTO publications (series, publication, current, current_cut, current_manifest, current_generation, "
    "current_definitions, cut, manifest, generation, published_at, published_by, why) "
    "VALUES ('galatea', 0, 0, ?, '', 0, {}, ?, '', 0, ?, 'galatea', 'nothing is published yet') IF NOT EXISTS"
)
_SWITCH_GENERATION = (
    "UPDATE publications SET current_generation = ?, current_definitions = ? WHERE series = 'galatea' "
    "IF current = ? AND current_generation = ?"
)
_SWITCH = (
    "UPDATE publications SET current = ?, current_cut = ?, current_manifest = ?, current_generation = ?, "
    "current_definitions = ? WHERE series = 'galatea' IF current = ? AND current_generation = ?; "
)
_KEEP = (
    "INSERT INTO publications (series, publication, cut, manifest, generation, definitions, published_at, "
    "published_by, why, master_versions, stats) VALUES ('galatea', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?); "
)
_PUBLISH = "BEGIN BATCH " + _SWITCH + _KEEP + "APPLY BATCH"
# The collector marks what it takes away in the same partition, so one of both comes first.
_IS_THERE = (
    "UPDATE publications SET rolled_back_at = ? WHERE series = 'galatea' AND publication = ? IF collected_at = null; "
)
_RESTORE = "BEGIN BATCH " + _SWITCH + _KEEP + _IS_THERE + "APPLY BATCH"


class Session(Protocol):
    """What is needed of a driver's session."""

    def prepare(self, query: str) -> Any:  # noqa: ANN401 - the driver has no types
        """A prepared statement."""

    def execute(self, query: Any, parameters: Sequence[Any] | None = None) -> Any:  # noqa: ANN401 - likewise
        """Its rows."""


@dataclass(frozen=True)
class Publication:
    """One entry of the history. `master_versions`: topic to the Delta version that was read. `stats`: JSON."""

    number: int
    cut: datetime
    manifest: str
    generation: int
    published_at: datetime
    published_by: str
    why: str
    definitions: Mapping[str, str] = field(default_factory=dict)
    master_versions: Mapping[str, int] = field(default_factory=dict)
    stats: str = "{}"
    is_collected: bool = False
    """Whether its cells were taken away."""

    @property
    def counted(self) -> Mapping[str, Any]:
        """What its rebuild counted, by name."""
        counted: Mapping[str, Any] = orjson.loads(self.stats)
        return counted

    @property
    def restores(self) -> int | None:
        """Of a rollback the publication that is shown again."""
        number: int | None = self.counted.get("restores")
        return number


class PointerRow:
    """The one pointer of a deployment."""

    def __init__(self, session: Session) -> None:
        """`session` uses Galatea's keyspace, and reads and writes at QUORUM unless said otherwise."""
        self._session = session

    def begin(self, now: datetime) -> None:
        """Write publication 0, which covers nothing, unless there is a pointer already."""
        self._session.execute(self._session.prepare(_BEGIN), (UNIX_EPOCH, UNIX_EPOCH, now))

    def read(self) -> Pointer:
        """What is published now."""
        row = self._session.execute(self._session.prepare(SELECT_POINTER)).one()
        definitions = dict(row.current_definitions or {})
        return Pointer(row.current, utc(row.current_cut), row.current_manifest, row.current_generation, definitions)

    def switch_generation(self, seen: Pointer, generation: int, definitions: Mapping[str, str]) -> bool:
        """Let readers take speed rows from another generation, unless the pointer has moved since it was `seen`."""
        values = (generation, dict(definitions), seen.publication, seen.generation)
        return bool(self._session.execute(self._session.prepare(_SWITCH_GENERATION), values).one().applied)

    def publish(self, seen: Pointer, new: Publication) -> bool:
        """Switch all views at once, unless the pointer has moved since it was `seen`. Raises what the driver raises."""
        return bool(self._session.execute(self._session.prepare(_PUBLISH), _values(seen, new)).one().applied)

    def restore(self, seen: Pointer, new: Publication, restored: int) -> bool:
        """Publish again what publication `restored` said, unless the pointer has moved or its cells were collected."""
        values = (*_values(seen, new), new.published_at, restored)
        return bool(self._session.execute(self._session.prepare(_RESTORE), values).one().applied)

    def publication(self, number: int) -> Publication | None:
        """One entry of the history, read at SERIAL: after an unknown outcome this says whose it became."""
        query = self._session.prepare("SELECT * FROM publications WHERE series = 'galatea' AND publication = ?")
        query.consistency_level = SERIAL
        row = self._session.execute(query, (number,)).one()
        if row is None or row.publication is None:
            return None
        return Publication(
            row.publication,
            utc(row.cut),
            row.manifest,
            row.generation,
            utc(row.published_at),
            row.published_by,
            row.why,
            dict(row.definitions or {}),
            dict(row.master_versions or {}),
            row.stats or "{}",
            row.collected_at is not None,
        )


def _values(seen: Pointer, new: Publication) -> tuple[Any, ...]:
    definitions = dict(new.definitions)
    pointed = (new.number, new.cut, new.manifest, new.generation, definitions, seen.publication, seen.generation)
    kept = (
        new.number,
        new.cut,
        new.manifest,
        new.generation,
        definitions,
        new.published_at,
        new.published_by,
        new.why,
        dict(new.master_versions),
        new.stats,
    )
    return (*pointed, *kept)
