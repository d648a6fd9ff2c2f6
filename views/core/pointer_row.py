"""The pointer row as it lies in Cassandra: read, and switched by compare-and-set.

Written against the two methods of a driver's session that it needs, because views import no driver.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from views.core.cut import BEGINNING, utc
from views.core.publication import SELECT_POINTER, Pointer

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
_PUBLISH = (
    "BEGIN BATCH "
    "UPDATE publications SET current = ?, current_cut = ?, current_manifest = ?, current_generation = ?, "
    "current_definitions = ? WHERE series = 'galatea' IF current = ? AND current_generation = ?; "
    "INSERT INTO publications (series, publication, cut, manifest, generation, definitions, published_at, "
    "published_by, why, master_versions, stats) VALUES ('galatea', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?); "
    "APPLY BATCH"
)


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


class PointerRow:
    """The one pointer of a deployment."""

    def __init__(self, session: Session) -> None:
        """`session` uses Galatea's keyspace, and reads and writes at QUORUM unless said otherwise."""
        self._session = session

    def begin(self, now: datetime) -> None:
        """Write publication 0, which covers nothing, unless there is a pointer already."""
        self._session.execute(self._session.prepare(_BEGIN), (BEGINNING, BEGINNING, now))

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
        definitions = dict(new.definitions)
        pointed = (new.number, new.cut, new.manifest, new.generation, definitions, seen.publication, seen.generation)
        kept = (
            new.number, new.cut, new.manifest, new.generation, definitions,
            new.published_at, new.published_by, new.why, dict(new.master_versions), new.stats,
        )  # fmt: skip
        return bool(self._session.execute(self._session.prepare(_PUBLISH), (*pointed, *kept)).one().applied)

    def publication(self, number: int) -> Publication | None:
        """One entry of the history, read at SERIAL: after an unknown outcome this says whose it became."""
        query = self._session.prepare("SELECT * FROM publications WHERE series = 'galatea' AND publication = ?")
        query.consistency_level = SERIAL
        row = self._session.execute(query, (number,)).one()
        if row is None or row.publication is None:
            return None
        return Publication(
            row.publication, utc(row.cut), row.manifest, row.generation,
            utc(row.published_at), row.published_by, row.why,
            dict(row.definitions or {}), dict(row.master_versions or {}), row.stats or "{}",
        )  # fmt: skip
