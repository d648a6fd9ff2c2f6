"""`publications` and `manifests`."""

from collections.abc import Mapping, Sequence
from datetime import date

from master_dataset.errors import StoreUnavailable
from serving_layer.readers import PublicationEntry
from serving_layer.tables.bridge import Bridge, day_of, instant_of
from views.core.publication import SELECT_POINTER, SERIES, Pointer


class PublishedTables:
    """PublishedReader. The session reads at QUORUM, so a switch that was acknowledged is seen."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._pointer = bridge.prepare(SELECT_POINTER)
        self._manifest = bridge.prepare("SELECT view_name, day, run FROM manifests WHERE manifest = ?")
        self._history = bridge.prepare(
            "SELECT publication, cut, published_at, published_by, why FROM publications WHERE series = ?"
        )

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

    async def history(self) -> Sequence[PublicationEntry]:
        """Newest first, as the table is sorted."""
        return [
            PublicationEntry(number, instant_of(cut), at and instant_of(at), by or "", why or "")
            for number, cut, at, by, why in await self._bridge.rows(self._history, SERIES)
            if cut is not None
        ]
