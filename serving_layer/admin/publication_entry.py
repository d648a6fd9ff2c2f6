"""One line of the history of publications: what readers saw, since when, and what it took to make it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from serving_layer.query.timestamps import stamp
from serving_layer.responses.publications import ListedPublication
from views.control.publication import Pointer

GREATEST = 2**63 - 1
"""No publication has a greater number than the table can hold."""


@dataclass(frozen=True)
class PublicationEntry:
    """`manifest` names its cells and `definitions` what they were made by: view name to hash.

    `collected_at`: since when its cells are gone, None while they are kept. `stats`: what its recompute counted.
    """

    publication: int
    cut: datetime
    published_at: datetime | None
    by: str
    why: str
    manifest: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)
    collected_at: datetime | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pointer(self) -> Pointer:
        """As if it were pointed at, without speed rows: those of its time may have expired."""
        return Pointer(self.publication, self.cut, self.manifest, 0, self.definitions)

    def response(self) -> ListedPublication:
        """As the API and the command line show it. What its recompute did not count is null."""
        return ListedPublication(
            publication=self.publication,
            cut=stamp(self.cut),
            published_at=stamp(self.published_at),
            by=self.by,
            why=self.why,
            collected=self.collected_at is not None,
            restores=self.stats.get("restores"),
            rows=self._rows,
            partitions=self.stats.get("partitions"),
            days=self.stats.get("days"),
            blocks=self.stats.get("blocks"),
            seconds=self.stats.get("seconds"),
            views=self.stats.get("views"),
        )

    @property
    def _rows(self) -> int | None:
        """Events read, once for each view that they were read for."""
        views: Mapping[str, Mapping[str, int]] | None = self.stats.get("views")
        return sum(each.get("events", 0) for each in views.values()) if views else self.stats.get("rows")
