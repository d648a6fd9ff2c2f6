"""Publications, and the pointer that says which of them readers see (R10).

The pointer is read once per request and changed only by a lightweight transaction. It lies in the partition of the
publications, so one conditional batch changes both or neither. An unknown outcome of a switch is settled by reading the
history at SERIAL: if it names our run, the switch was ours.

Written against the two methods of a driver's session that are needed, because views import no driver.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import msgspec

from views.control.speed_layout import layout_of
from views.control.stored_json import read_stored
from views.core.cut import UNIX_EPOCH, utc


@dataclass(frozen=True)
class Pointer:
    """What readers see now.

    Attributes:
        publication: Its number; 0 before the first one.
        cut: Batch covers what was received before it.
        manifest: The run whose manifest names the cells; empty if there are none.
        generation: The generation whose speed rows count from the cut on; 0 if there is none.
        definitions: View name to the hash that the published cells and the speed rows were made with.
    """

    publication: int
    cut: datetime
    manifest: str
    generation: int
    definitions: Mapping[str, str]


SERIES = "galatea"
"""The partition of the publications."""
SELECT_POINTER = (
    "SELECT current, current_cut, current_manifest, current_generation, served_generation, current_definitions "
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
    "UPDATE publications SET current_generation = ?, served_generation = ?, current_definitions = ? "
    "WHERE series = 'galatea' IF current = ? AND current_generation = ? AND served_generation = ?"
)
_SWITCH = (
    "UPDATE publications SET current = ?, current_cut = ?, current_manifest = ?, current_generation = ?, "
    "served_generation = ?, current_definitions = ? WHERE series = 'galatea' "
    "IF current = ? AND current_generation = ? AND served_generation = ?; "
)
_KEEP = (
    "INSERT INTO publications (series, publication, cut, manifest, generation, definitions, published_at, "
    "published_by, why, master_versions, stats) VALUES ('galatea', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?); "
)
_PUBLISH = "BEGIN BATCH " + _SWITCH + _KEEP + "APPLY BATCH"
# Garbage collection marks what it deletes in the same partition, so one of both comes first.
_IS_THERE = (
    "UPDATE publications SET rolled_back_at = ? WHERE series = 'galatea' AND publication = ? IF collected_at = null; "
)
_RESTORE = "BEGIN BATCH " + _SWITCH + _KEEP + _IS_THERE + "APPLY BATCH"


class Session(Protocol):
    """The part of a driver's session that is needed."""

    def prepare(self, query: str) -> Any:  # noqa: ANN401 - the driver has no types
        """A prepared statement."""

    def execute(self, query: Any, parameters: Sequence[Any] | None = None) -> Any:  # noqa: ANN401 - likewise
        """Its rows."""


class ViewCounts(msgspec.Struct, frozen=True):
    """What was computed of one view. `seconds`: of wall-clock time."""

    days: int = 0
    blocks: int = 0
    events: int = 0
    seconds: float = 0

    def __add__(self, other: "ViewCounts") -> "ViewCounts":
        """Both together."""
        return ViewCounts(
            self.days + other.days,
            self.blocks + other.blocks,
            self.events + other.events,
            self.seconds + other.seconds,
        )


class RunStats(msgspec.Struct, frozen=True):
    """Statistics of the work behind a publication; UNSET, and absent from the JSON, where it does not apply.

    `read_at`: before the tables were read. `read_versions`: topic to the version that was read. `partitions`: number of
    recomputed (view, day) pairs. `base_generation`: of the publication before. `restores`: of a rollback, the
    publication that is shown again; `rollback`: its unique id. `backup`: the id of the backup that was restored.
    """

    blocks: int | msgspec.UnsetType = msgspec.UNSET
    repeats: int | msgspec.UnsetType = msgspec.UNSET
    conflicts: int | msgspec.UnsetType = msgspec.UNSET
    miskeyed: int | msgspec.UnsetType = msgspec.UNSET
    views: dict[str, ViewCounts] | msgspec.UnsetType = msgspec.UNSET
    days: int | msgspec.UnsetType = msgspec.UNSET
    alarms: list[str] | msgspec.UnsetType = msgspec.UNSET
    read_at: datetime | msgspec.UnsetType | None = msgspec.UNSET
    recompute: str | msgspec.UnsetType = msgspec.UNSET
    read_versions: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    partitions: int | msgspec.UnsetType = msgspec.UNSET
    base_generation: int | msgspec.UnsetType = msgspec.UNSET
    seconds: float | msgspec.UnsetType = msgspec.UNSET
    restores: int | msgspec.UnsetType = msgspec.UNSET
    rollback: str | msgspec.UnsetType = msgspec.UNSET
    backup: str | msgspec.UnsetType = msgspec.UNSET


_NO_STATS = RunStats()


@dataclass(frozen=True)
class Publication:
    """One entry of the history. `master_versions`: topic to the Delta version that the next rebuild may rely on."""

    number: int
    cut: datetime
    manifest: str
    generation: int
    published_at: datetime
    published_by: str
    why: str
    definitions: Mapping[str, str] = field(default_factory=dict)
    master_versions: Mapping[str, int] = field(default_factory=dict)
    stats: RunStats = _NO_STATS
    is_collected: bool = False
    """Whether garbage collection has deleted its cells."""

    @property
    def restores(self) -> int | None:
        """Of a rollback, the publication that is shown again."""
        return self.stats.restores or None

    @property
    def is_restored(self) -> bool:
        """Whether it stands for a restored backup: it has no cells, and nothing was shown by it."""
        return bool(self.stats.backup)


class PointerRow:
    """The one pointer of a deployment."""

    def __init__(self, session: Session) -> None:
        """`session` uses Galatea's keyspace, and reads and writes at QUORUM unless said otherwise."""
        self._session = session

    def begin(self, now: datetime) -> None:
        """Write publication 0, which covers nothing, unless there is a pointer already."""
        self._session.execute(self._session.prepare(_BEGIN), (UNIX_EPOCH, UNIX_EPOCH, now))

    def read(self) -> Pointer:
        """The current publication."""
        row = self._session.execute(self._session.prepare(SELECT_POINTER)).one()
        definitions = dict(row.current_definitions or {})
        generation = generation_of(row.current_generation, row.served_generation)
        return Pointer(row.current, utc(row.current_cut), row.current_manifest, generation, definitions)

    def switch_generation(self, seen: Pointer, generation: int, definitions: Mapping[str, str]) -> bool:
        """Make readers use the speed rows of another generation, unless the pointer has moved since it was `seen`."""
        values = (*self._columns(generation), dict(definitions), seen.publication, *self._seen_columns(seen))
        return bool(self._session.execute(self._session.prepare(_SWITCH_GENERATION), values).one().applied)

    def publish(self, seen: Pointer, new: Publication) -> bool:
        """Switch all views at once, unless the pointer has moved since it was `seen`. Raises what the driver raises."""
        return bool(self._session.execute(self._session.prepare(_PUBLISH), self._values(seen, new)).one().applied)

    def restore(self, seen: Pointer, new: Publication, restored: int) -> bool:
        """Publish publication `restored` again, unless the pointer has moved or its cells were collected."""
        values = (*self._values(seen, new), new.published_at, restored)
        return bool(self._session.execute(self._session.prepare(_RESTORE), values).one().applied)

    def publication(self, number: int) -> Publication | None:
        """One entry of the history, read at SERIAL, so that it also settles an unknown outcome of a switch."""
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
            read_stored(row.stats, RunStats) or RunStats(),
            row.collected_at is not None,
        )

    def _values(self, seen: Pointer, new: Publication) -> tuple[Any, ...]:
        definitions = dict(new.definitions)
        pointer = (new.number, new.cut, new.manifest, *self._columns(new.generation), definitions)
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
            msgspec.json.encode(new.stats).decode(),
        )
        return (*pointer, seen.publication, *self._seen_columns(seen), *kept)

    def _columns(self, generation: int) -> "_GenerationColumns":
        """What the pointer says of a generation."""
        return (0, generation) if layout_of(self._session, generation).is_by_store else (generation, None)

    def _seen_columns(self, seen: Pointer) -> "_GenerationColumns":
        """What the pointer said of the generation that was seen, if it still names it.

        A former release changes `current_generation` alone, so the generation does not say what is in the other column.
        """
        row = self._session.execute(self._session.prepare(SELECT_POINTER)).one()
        now = row.current_generation, row.served_generation
        return now if generation_of(*now) == seen.generation else (seen.generation, None)


_GenerationColumns = tuple[int, int | None]
"""`current_generation` and `served_generation`."""


def generation_of(current: int | None, served: int | None) -> int:
    """The generation that the pointer names, from its two columns; 0 if there is none.

    `current`: one with the layout of former releases. It may be newer than `served`, if such a release has put it
    there; this release writes one of the columns, and 0 or null into the other.
    """
    return current or served or 0
