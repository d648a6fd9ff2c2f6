"""`publications` and `manifests`."""

from collections.abc import Mapping, Sequence
from datetime import date

import orjson

from master_dataset.errors import StoreUnavailable
from serving_layer.admin.publication_entry import PublicationEntry
from serving_layer.tables.bridge import Bridge, Row, day_of, instant_of
from views.control.publication import SELECT_POINTER, SERIES, Pointer

_ENTRY = (
    "SELECT publication, cut, published_at, published_by, why, manifest, definitions, collected_at, stats "
    "FROM publications WHERE series = ?"
)


class PublishedTables:
    """PublishedReader. The session reads at QUORUM, so a switch that was acknowledged is seen."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._pointer = bridge.prepare(SELECT_POINTER)
        self._manifest = bridge.prepare("SELECT view_name, day, run FROM manifests WHERE manifest = ?")
        self._one = bridge.prepare(f"{_ENTRY} AND publication = ?")
        self._history = bridge.prepare(f"{_ENTRY} AND publication < ? LIMIT ?")

    async def pointer(self) -> Pointer:
        """Raise StoreUnavailable while the stack is not set up yet."""
        rows = await self._bridge.rows(self._pointer)
        if not rows or rows[0][0] is None:
            raise StoreUnavailable("Nothing is published, not even publication 0.", do="galatea up")
        publication, cut, manifest, generation, definitions = rows[0]
        return Pointer(publication, instant_of(cut), manifest or "", generation or 0, dict(definitions or {}))

    async def manifest(self, name: str) -> Mapping[tuple[str, date], str]:
        """(view, day) to run."""
        rows = await self._bridge.rows(self._manifest, name) if name else []
        return {(view, day_of(day)): run for view, day, run in rows}

    async def entry(self, number: int) -> PublicationEntry | None:
        """None if there is no row of that number."""
        rows = await self._bridge.rows(self._one, SERIES, number)
        return _entry(rows[0]) if rows and rows[0][1] is not None else None

    async def history(self, before: int, limit: int) -> Sequence[PublicationEntry]:
        """Newest first, as the table is sorted."""
        rows = await self._bridge.rows(self._history, SERIES, before, limit)
        return [_entry(row) for row in rows if row[1] is not None]


def _entry(row: Row) -> PublicationEntry:
    number, cut, at, by, why, manifest, definitions, collected_at, stats = row
    return PublicationEntry(
        number,
        instant_of(cut),
        at and instant_of(at),
        by or "",
        why or "",
        manifest or "",
        dict(definitions or {}),
        collected_at and instant_of(collected_at),
        orjson.loads(stats or "{}"),
    )
