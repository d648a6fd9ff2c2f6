"""Stores in pages, by id: many more may be registered than one answer holds.

The shops that may be asked about. A store that is not registered is shown to operators only.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import orjson

from master_dataset.errors import UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.errors import BadQuestionError, TooManyStoresError
from serving_layer.keys.key import Caller
from serving_layer.store.readers import StoreReader


class PageRequest(NamedTuple):
    """Which part of the stores was asked for. `after`: the id that the page before ended with."""

    limit: int | None = None
    after: str | None = None

    @property
    def is_asked(self) -> bool:
        """Whether pages were asked for at all."""
        return self != PageRequest()


class StorePage(NamedTuple):
    """`following`: the id that the page ends with if more stores follow; None on the last page."""

    stores: tuple[Store, ...]
    following: str | None


def write_token(store: str) -> str:
    """Where the next page begins, for the caller to hand back unread. Not a number: stores may come and go."""
    return base64.urlsafe_b64encode(orjson.dumps([store])).decode()


def read_token(token: str) -> str:
    """The inverse. BadQuestionError for anything that `write_token` did not write."""
    try:
        [store] = orjson.loads(base64.urlsafe_b64decode(token.encode()))
    except (binascii.Error, ValueError, TypeError) as error:
        raise _no_token() from error
    if not isinstance(store, str):
        raise _no_token()
    return store


def _no_token() -> BadQuestionError:
    message = "`after` is no token of this interface."
    return BadQuestionError(message, do="Use `next` of the page before, or leave it out.")


REFRESH_SECONDS = 1.0
MOST_STORES = 100
"""How many one answer may hold."""


class KnownStores:
    """The registry, read again when its version moved; the version is asked for at most once a second."""

    def __init__(self, reader: StoreReader, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._reader = reader
        self._clock = clock
        self._asked_at = float("-inf")
        self._version: int | None = None
        self._stores: Mapping[str, Store] = {}

    async def all(self) -> tuple[int, Mapping[str, Store]]:
        """The version and every registered store by id."""
        if self._clock() - self._asked_at >= REFRESH_SECONDS or self._version is None:
            version = await self._reader.version()
            if version != self._version:
                self._stores = {store.id: store for store in await self._reader.stores()}
                self._version = version
            self._asked_at = self._clock()
        return self._version, self._stores

    async def asked(self, ids: Sequence[str], caller: Caller) -> tuple[Store, ...]:
        """The stores of these ids, all that the caller sees if none is named. UnknownNameError, TooManyStoresError.

        What belongs to another tenant is unknown, and no part of any answer, not even of a hint.
        """
        known = await self._seen_by(caller)
        wanted = list(dict.fromkeys(ids)) or sorted(known)
        _refuse_many(wanted)
        return tuple(self._one(store, known, caller) for store in wanted)

    async def page(self, ids: Sequence[str], page: PageRequest, caller: Caller) -> StorePage:
        """A page of them, by id unless they are named and no page is asked for. UnknownNameError, TooManyStoresError."""
        known = await self._seen_by(caller)
        named = list(dict.fromkeys(ids))
        _refuse_many(named)
        wanted = named if named and not page.is_asked else sorted(named or known)
        rest = [store for store in wanted if page.after is None or store > page.after]
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
            return Store(id=store, timezone="UTC")
        raise UnknownNameError("store", store, known)


def _refuse_many(stores: Sequence[str]) -> None:
    if len(stores) > MOST_STORES:
        message = f"{len(stores)} stores in one answer are more than {MOST_STORES}."
        raise TooManyStoresError(message, do="Name the stores with `store=`, in several questions.")
