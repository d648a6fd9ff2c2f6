"""The stores that a caller may ask about, and pages of them. Only operators may name stores that nobody registered."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import orjson

from master_dataset.errors import UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.caching import SingleFlight
from serving_layer.errors import BadQuestionError, TooManyStoresError
from serving_layer.keys.key import Caller
from serving_layer.store.readers import StoreReader

REFRESH_SECONDS = 1.0
MOST_STORES = 100
"""How many stores one answer may hold."""
MOST_STORES_MERGED = 10_000
"""How many stores one answer may add up."""


class PageRequest(NamedTuple):
    """Which part of the stores is asked for. `after`: the id that the page before ended with."""

    limit: int | None = None
    after: str | None = None

    @property
    def is_requested(self) -> bool:
        """Whether pages are asked for at all."""
        return self != PageRequest()


class StorePage(NamedTuple):
    """A page of stores. `following`: the id that it ends with if more stores follow; None on the last page."""

    stores: tuple[Store, ...]
    following: str | None


class KnownStores:
    """The registered stores, read again when the version of the registry changes. It is checked once a second."""

    def __init__(self, reader: StoreReader, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._reader = reader
        self._clock = clock
        self._read_at = float("-inf")
        self._version: str | None = None
        self._stores: Mapping[str, Store] = {}
        self._reads: SingleFlight[tuple[str, Mapping[str, Store]]] = SingleFlight()

    async def all(self, *, fresh: bool = False) -> tuple[str, Mapping[str, Store]]:
        """The version and every registered store by id. `fresh`: the version is read after this call began."""
        if fresh or self._clock() - self._read_at >= REFRESH_SECONDS or self._version is None:
            return await self._reads.read(None, self._read)
        return self._version, self._stores

    async def _read(self) -> tuple[str, Mapping[str, Store]]:
        version = await self._reader.version()
        if version != self._version:
            self._stores = {store.id: store for store in await self._reader.stores()}
            self._version = version
        self._read_at = self._clock()
        return version, self._stores

    async def visible(self, ids: Sequence[str], caller: Caller, *, most: int = MOST_STORES) -> tuple[Store, ...]:
        """The stores of these ids, or all that the caller may see if none is named.

        A store of another tenant is unknown to the caller, also in the suggestions of an error.

        Args:
            ids: of stores.
            caller: who asks.
            most: how many stores the answer may hold or add up.

        Raises:
            UnknownNameError: the caller sees no store of this id.
            TooManyStoresError: more than one answer may hold.
        """
        known = await self._seen_by(caller)
        chosen = list(dict.fromkeys(ids)) or sorted(known)
        _refuse_many(chosen, most)
        return tuple(self._one(store, known, caller) for store in chosen)

    async def registered(self, id_: str, caller: Caller) -> Store:
        """The registered store of this id. UnknownNameError if there is none, or the caller may not see it."""
        known = await self._seen_by(caller)
        if id_ not in known:
            raise UnknownNameError("store", id_, known)
        return known[id_]

    async def page(self, ids: Sequence[str], page: PageRequest, caller: Caller) -> StorePage:
        """One page of them, sorted by id unless they are named and no page is asked for. Raises as `visible`."""
        known = await self._seen_by(caller)
        named = list(dict.fromkeys(ids))
        _refuse_many(named)
        chosen = named if named and not page.is_requested else sorted(named or known)
        rest = [store for store in chosen if page.after is None or store > page.after]
        taken = rest[: page.limit or MOST_STORES]
        stores = tuple(self._one(store, known, caller) for store in taken)
        return StorePage(stores, taken[-1] if len(taken) < len(rest) else None)

    async def _seen_by(self, caller: Caller) -> Mapping[str, Store]:
        _, every = await self.all()
        return every if caller.sees_all else {id_: store for id_, store in every.items() if caller.sees(store)}

    def _one(self, store: str, known: Mapping[str, Store], caller: Caller) -> Store:
        if store in known:
            return known[store]
        if caller.sees_all:
            return unregistered(store)
        raise UnknownNameError("store", store, known)


def unregistered(id_: str) -> Store:
    """A store that nobody registered, as operators see it."""
    return Store(id=id_, timezone="UTC")


def write_token(store: str) -> str:
    """An opaque token of where the next page begins. Not a number, because stores may come and go."""
    return base64.urlsafe_b64encode(orjson.dumps([store])).decode()


def read_token(token: str) -> str:
    """The inverse. BadQuestionError for anything that `write_token` did not make."""
    try:
        [store] = orjson.loads(base64.urlsafe_b64decode(token.encode()))
    except (binascii.Error, ValueError, TypeError) as error:
        raise _bad_token() from error
    if not isinstance(store, str) or write_token(store) != token:
        raise _bad_token()
    return store


def _bad_token() -> BadQuestionError:
    message = "`after` is not a valid token."
    return BadQuestionError(message, do="Use `next` of the page before, or leave it out.")


def _refuse_many(stores: Sequence[str], most: int = MOST_STORES) -> None:
    if len(stores) > most:
        message = f"A request can have at most {most} stores; this one has {len(stores)}."
        raise TooManyStoresError(message, do="Name the stores with `store=`, and split them into several requests.")
