"""The shops that may be asked about. A store that is not registered is shown to operators only."""

from collections.abc import Callable, Mapping, Sequence

from master_dataset.errors import UnknownName
from master_dataset.registry.stores import Store
from serving_layer.errors import TooManyStores
from serving_layer.keys.caller import Caller
from serving_layer.query.store_page import Page, StorePage
from serving_layer.store.readers import StoreReader

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
        """The stores of these ids, all that the caller sees if none is named. UnknownName, TooManyStores.

        What belongs to another tenant is unknown, and no part of any answer, not even of a hint.
        """
        known = await self._seen_by(caller)
        wanted = list(dict.fromkeys(ids)) or sorted(known)
        _refuse_many(wanted)
        return tuple(self._one(store, known, caller) for store in wanted)

    async def page(self, ids: Sequence[str], page: Page, caller: Caller) -> StorePage:
        """A page of them, by id unless they are named and no page is asked for. UnknownName, TooManyStores."""
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
        raise UnknownName("store", store, known)


def _refuse_many(stores: Sequence[str]) -> None:
    if len(stores) > MOST_STORES:
        message = f"{len(stores)} stores in one answer are more than {MOST_STORES}."
        raise TooManyStores(message, do="Name the stores with `store=`, in several questions.")
