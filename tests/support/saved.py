"""What people keep, in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from master_dataset.errors import CassandraUnavailableError
from serving_layer.saved.annotations import Annotation
from serving_layer.saved.shares import ShareLink
from serving_layer.saved.views import SavedView


@dataclass
class WorldAnnotations:
    """AnnotationStore."""

    kept: dict[tuple[str, str], Annotation] = field(default_factory=dict)

    async def slice(self, tenant: str, first_id: str, before_id: str) -> Sequence[Annotation]:
        return [each for (of, id_), each in sorted(self.kept.items()) if of == tenant and first_id <= id_ < before_id]

    async def ids(self, tenant: str) -> Sequence[str]:
        return [id_ for of, id_ in self.kept if of == tenant]

    async def put(self, annotations: Sequence[Annotation]) -> None:
        self.kept |= {(each.tenant, each.id): each for each in annotations}

    async def remove(self, tenant: str, id_: str) -> None:
        self.kept.pop((tenant, id_), None)


@dataclass
class WorldViews:
    """SavedViewStore."""

    kept: dict[tuple[str, str], SavedView] = field(default_factory=dict)

    async def all(self, tenant: str) -> Sequence[SavedView]:
        return [each for (of, _), each in self.kept.items() if of == tenant]

    async def put(self, view: SavedView) -> None:
        self.kept[view.tenant, view.id] = view

    async def remove(self, tenant: str, id_: str) -> None:
        self.kept.pop((tenant, id_), None)


@dataclass
class WorldShares:
    """ShareStore. `seconds`: how long the row of a link stays. `reads`: by token. `is_away`: nothing can be read."""

    kept: dict[str, ShareLink] = field(default_factory=dict)
    digests: dict[bytes, str] = field(default_factory=dict)
    seconds: dict[str, int] = field(default_factory=dict)
    reads: int = 0
    is_away: bool = False

    async def all(self, tenant: str | None) -> Sequence[ShareLink]:
        return [each for each in self.kept.values() if tenant in {None, each.tenant}]

    async def find(self, digest: bytes) -> ShareLink | None:
        self.reads += 1
        if self.is_away:
            raise CassandraUnavailableError("Cassandra did not answer.", do="Ask again.")
        return self.kept.get(self.digests.get(digest, ""))

    async def add(self, digest: bytes, link: ShareLink, seconds: int) -> None:
        self.digests[digest] = link.id
        await self.change(link, seconds)

    async def change(self, link: ShareLink, seconds: int) -> None:
        self.kept[link.id], self.seconds[link.id] = link, seconds
