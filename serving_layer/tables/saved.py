"""The tables of what people keep.

AnnotationTables   annotations
SavedViewTables    saved_views
ShareTables        share_links, share_digests
"""

from collections.abc import Sequence
from typing import Any

from serving_layer.saved.annotations import Annotation
from serving_layer.saved.shares import ShareLink
from serving_layer.saved.views import SavedView
from serving_layer.tables.async_session import AsyncSession, day_of, instant_of, optional_instant

_ANNOTATION = "id, first_day, last_day, kind, body, stores, made_by, made_at"
_SHARE = "tenant, id, address, stores, origin, made_by, made_at, expires_at, revoked_at"


class AnnotationTables:
    """AnnotationStore. The notes of a tenant are one partition, by first day."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._slice = session.prepare(
            f"SELECT {_ANNOTATION} FROM annotations WHERE tenant = ? AND id >= ? AND id < ?"  # noqa: S608 - names of columns
        )
        self._ids = session.prepare("SELECT id FROM annotations WHERE tenant = ?")
        self._insert = session.prepare(
            f"INSERT INTO annotations (tenant, {_ANNOTATION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - likewise
        )
        self._delete = session.prepare("DELETE FROM annotations WHERE tenant = ? AND id = ?")

    async def slice(self, tenant: str, first_id: str, before_id: str) -> Sequence[Annotation]:
        """By id, as the table is sorted."""
        rows = await self._session.rows(self._slice, tenant, first_id, before_id)
        return [
            Annotation(
                tenant, day_of(first), day_of(last), kind, body, tuple(sorted(stores or ())), by, instant_of(at), id_
            )
            for id_, first, last, kind, body, stores, by, at in rows
        ]

    async def ids(self, tenant: str) -> Sequence[str]:
        """The ids of a tenant, from one partition."""
        return [id_ for (id_,) in await self._session.rows(self._ids, tenant)]

    async def put(self, annotations: Sequence[Annotation]) -> None:
        """Write their rows as one change, since they are in one partition. Raises what `together` raises."""
        await self._session.together(
            self._insert,
            [
                (
                    *(each.tenant, each.id, each.first_day, each.last_day, each.kind, each.text),
                    *(set(each.stores) or None, each.made_by, each.made_at),
                )
                for each in annotations
            ],
        )

    async def remove(self, tenant: str, id_: str) -> None:
        """Delete its row."""
        await self._session.rows(self._delete, tenant, id_)


class SavedViewTables:
    """Implements `SavedViewStore` with Cassandra."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        self._select = session.prepare("SELECT id, name, address, made_by, made_at FROM saved_views WHERE tenant = ?")
        self._insert = session.prepare(
            "INSERT INTO saved_views (tenant, id, name, address, made_by, made_at) VALUES (?, ?, ?, ?, ?, ?)"
        )
        self._delete = session.prepare("DELETE FROM saved_views WHERE tenant = ? AND id = ?")

    async def all(self, tenant: str) -> Sequence[SavedView]:
        """The saved views of a tenant, from one partition."""
        rows = await self._session.rows(self._select, tenant)
        return [
            SavedView(tenant, id_, name, address, by, instant_of(made_at)) for id_, name, address, by, made_at in rows
        ]

    async def put(self, view: SavedView) -> None:
        """Write its row."""
        said = (view.name, view.address, view.made_by, view.made_at)
        await self._session.rows(self._insert, view.tenant, view.id, *said)

    async def remove(self, tenant: str, id_: str) -> None:
        """Delete its row."""
        await self._session.rows(self._delete, tenant, id_)


class ShareTables:
    """ShareStore. A digest is found in a table of its own, and leads to the row of the link."""

    def __init__(self, session: AsyncSession) -> None:
        """Prepares its statements."""
        self._session = session
        select = f"SELECT {_SHARE} FROM share_links"  # noqa: S608 - names of columns
        self._all = session.prepare(select)
        self._of_tenant = session.prepare(f"{select} WHERE tenant = ?")
        self._one = session.prepare(f"{select} WHERE tenant = ? AND id = ?")
        self._place = session.prepare("SELECT tenant, id FROM share_digests WHERE digest = ?")
        self._insert = session.prepare(
            f"INSERT INTO share_links ({_SHARE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?"  # noqa: S608 - likewise
        )
        self._insert_place = session.prepare(
            "INSERT INTO share_digests (digest, tenant, id) VALUES (?, ?, ?) USING TTL ?"
        )

    async def all(self, tenant: str | None) -> Sequence[ShareLink]:
        """One partition, or for keys of all tenants the table, which has at most some hundred links of each."""
        if tenant is None:
            return [_link(row) for row in await self._session.rows(self._all)]
        return [_link(row) for row in await self._session.rows(self._of_tenant, tenant)]

    async def find(self, digest: bytes) -> ShareLink | None:
        """The link with this digest, in two reads by key; None if there is none."""
        for tenant, id_ in await self._session.rows(self._place, digest):
            for row in await self._session.rows(self._one, tenant, id_):
                return _link(row)
        return None

    async def add(self, digest: bytes, link: ShareLink, seconds: int) -> None:
        """Write the digest first: a link that is listed can be opened."""
        await self._session.rows(self._insert_place, digest, link.tenant, link.id, seconds)
        await self.change(link, seconds)

    async def change(self, link: ShareLink, seconds: int) -> None:
        """Write all of its row, so that all of it ends at the same time."""
        stores = None if link.stores is None else set(link.stores)
        times = (link.made_at, link.expires_at, link.revoked_at)
        said = (link.tenant, link.id, link.address, stores, link.origin, link.made_by)
        await self._session.rows(self._insert, *said, *times, seconds)


def _link(row: tuple[Any, ...]) -> ShareLink:
    tenant, id_, address, stores, origin, by, made, expires, revoked = row
    return ShareLink(
        tenant,
        id_,
        address,
        None if stores is None else frozenset(stores),
        origin,
        by,
        instant_of(made),
        instant_of(expires),
        optional_instant(revoked),
    )
