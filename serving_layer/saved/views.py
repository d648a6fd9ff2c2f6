"""Saved views: addresses of pages under a name, which all keys of a tenant see."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from master_dataset.errors import UnknownNameError
from serving_layer.errors import ApiKeyMissingError, ScopeMissingError, TooManySavedError
from serving_layer.fair_semaphore import OneAtATime
from serving_layer.keys.key import Caller
from serving_layer.responses.encoding import iso_instant
from serving_layer.responses.saved import SavedViewEntry
from serving_layer.saved.addresses import PageAddress, readable

MAX_NAME = 100
"""Characters of the name of a view."""
MAX_VIEWS = 200
"""Saved views of one tenant."""
_ID_BYTES = 6


@dataclass(frozen=True)
class SavedView:
    """A page under a name. `tenant`: `*` for keys of all tenants. `made_by`: the id of the key that saved it."""

    tenant: str
    id: str
    name: str
    address: str
    made_by: str
    made_at: datetime

    def response(self) -> SavedViewEntry:
        """The view as the API shows it."""
        return SavedViewEntry(self.id, self.name, self.address, self.made_by, iso_instant(self.made_at))


class SavedViewStore(Protocol):
    """Where saved views are stored. Every method raises CassandraUnavailableError."""

    async def all(self, tenant: str) -> Sequence[SavedView]:
        """All saved views of the tenant, in no fixed order."""

    async def put(self, view: SavedView) -> None:
        """Store one, or replace the one of the same id."""

    async def remove(self, tenant: str, id_: str) -> None:
        """Remove one; nothing happens if there is none."""


def new_id() -> str:
    """A random id. It is no secret."""
    return secrets.token_hex(_ID_BYTES)


def require_key(caller: Caller) -> None:
    """Raise ApiKeyMissingError for callers without a key: nobody could tell later whose it is."""
    if caller.is_anonymous:
        raise ApiKeyMissingError("This needs a key, and the request has none.", do="Sign in, or send a key.")


def require_own(caller: Caller, made_by: str, what: str) -> None:
    """Require that a key may change what another one made. ScopeMissingError without the scope `configure`."""
    if caller.name != made_by and not caller.may_configure:
        message = f"The {what} was made with another key."
        raise ScopeMissingError(message, do="Use that key, or one with the scope `configure`.")


class SavedViews:
    """Lists and changes saved views. One per process and event loop."""

    def __init__(self, store: SavedViewStore, most: int = MAX_VIEWS) -> None:
        """`most`: saved views of one tenant."""
        self._store, self.most = store, most
        self._adding = OneAtATime()

    async def listed(self, caller: Caller) -> list[SavedView]:
        """Those that the keys of the caller's tenant saved, by name."""
        found = await self._store.all(caller.visibility_scope)
        return sorted(found, key=lambda view: (view.name.casefold(), view.id))

    async def save(self, caller: Caller, name: str, address: PageAddress, now: datetime) -> SavedView:
        """Save an address of `parse_address`. ApiKeyMissingError, BadQuestionError, TooManySavedError."""
        require_key(caller)
        tenant = caller.visibility_scope
        view = SavedView(tenant, new_id(), readable(name, "name", MAX_NAME), address.text, caller.name, now)
        async with self._adding.hold(tenant):
            if len(await self._store.all(tenant)) >= self.most:
                message = f"The tenant already has {self.most} saved views, the maximum."
                raise TooManySavedError(message, do="Remove some that are no longer needed.")
            await self._store.put(view)
        return view

    async def rename(self, caller: Caller, id_: str, name: str) -> SavedView:
        """Give one another name. Raises BadQuestionError, and what `remove` raises."""
        view = replace(await self._own(caller, id_), name=readable(name, "name", MAX_NAME))
        await self._store.put(view)
        return view

    async def remove(self, caller: Caller, id_: str) -> None:
        """Remove one.

        Raises:
            ApiKeyMissingError: the caller has no key.
            UnknownNameError: the tenant has none of this id.
            ScopeMissingError: another key saved it, and this one may not configure.
        """
        view = await self._own(caller, id_)
        await self._store.remove(view.tenant, view.id)

    async def _own(self, caller: Caller, id_: str) -> SavedView:
        require_key(caller)
        view = next((each for each in await self._store.all(caller.visibility_scope) if each.id == id_), None)
        if view is None:
            raise UnknownNameError("saved view", id_, (), do="`GET /v1/saved-views` lists those that there are.")
        require_own(caller, view.made_by, "saved view")
        return view
