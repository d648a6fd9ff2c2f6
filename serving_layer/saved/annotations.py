"""Annotations: what happened on a day or a range of days, at some stores or at all of a tenant."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple, Protocol, get_args

from master_dataset.errors import BadFileError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.errors import BadQuestionError, TooManySavedError
from serving_layer.fair_semaphore import OneAtATime
from serving_layer.responses.encoding import iso_instant
from serving_layer.responses.saved import AnnotationEntry
from serving_layer.saved.addresses import readable

AnnotationKind = Literal["promotion", "campaign", "holiday", "outage", "note"]
KINDS: tuple[AnnotationKind, ...] = get_args(AnnotationKind)
MAX_TEXT = 300
"""Characters of the text."""
MAX_DAYS = 366
"""Days of one annotation."""
MAX_STORES = 500
"""Stores that one annotation may name; one of all stores names none."""
MAX_ANNOTATIONS = 5_000
"""Of one tenant."""
FIRST_DAY, LAST_DAY = date(2000, 1, 1), date(2199, 12, 31)
"""Days that annotations can be about."""
_DIGEST_BYTES = 6


@dataclass(frozen=True)
class Annotation:
    """A note on the days from `first_day` to `last_day`, both included. `stores`: empty for all of the tenant.

    `id`: begins with the first day; equal notes have equal ids, so that loading a file twice makes nothing new.
    """

    tenant: str
    first_day: date
    last_day: date
    kind: AnnotationKind
    text: str
    stores: tuple[str, ...]
    made_by: str
    made_at: datetime
    id: str = ""

    def with_id(self) -> "Annotation":
        """The annotation with an id that is derived from its content."""
        said = repr((self.last_day.isoformat(), self.kind, self.text, self.stores)).encode()
        digest = hashlib.blake2b(said, digest_size=_DIGEST_BYTES).hexdigest()
        return replace(self, id=f"{self.first_day.isoformat()}-{digest}")

    def is_about(self, stores: Collection[str] | None) -> bool:
        """Whether it is about one of these stores, or `stores` is None."""
        return stores is None or not self.stores or not set(self.stores).isdisjoint(stores)

    def response(self) -> AnnotationEntry:
        """The annotation as the API shows it."""
        return AnnotationEntry(
            id=self.id,
            tenant=self.tenant,
            first_day=self.first_day.isoformat(),
            last_day=self.last_day.isoformat(),
            kind=self.kind,
            text=self.text,
            stores=list(self.stores),
            made_by=self.made_by,
            made_at=iso_instant(self.made_at),
        )


class NewAnnotation(NamedTuple):
    """An annotation as somebody typed it.

    `last_day`: None if it is of one day. `place`: the line or entry of its file; empty if it is of none.
    """

    first_day: date
    last_day: date | None
    kind: str
    text: str
    stores: Sequence[str] = ()
    place: str = ""


class AnnotationStore(Protocol):
    """Where annotations are stored. Every method raises CassandraUnavailableError."""

    async def slice(self, tenant: str, first_id: str, before_id: str) -> Sequence[Annotation]:
        """Those with ids in [first_id, before_id), by id."""

    async def ids(self, tenant: str) -> Sequence[str]:
        """The ids of all."""

    async def put(self, annotations: Sequence[Annotation]) -> None:
        """Store several of one tenant, or replace those of the same ids: all of them, or none if it fails.

        BadFileError: they are too large to be stored together.
        """

    async def remove(self, tenant: str, id_: str) -> None:
        """Remove one; nothing happens if there is none."""


class Annotations:
    """Lists and changes the annotations of tenants. One per process and event loop."""

    def __init__(self, store: AnnotationStore, most: int = MAX_ANNOTATIONS) -> None:
        """`most`: annotations of one tenant."""
        self._store, self.most = store, most
        self._adding = OneAtATime()

    async def annotations_between(
        self, tenant: str, stores: Collection[str] | None, first_day: date, last_day: date
    ) -> Sequence[Annotation]:
        """The annotations that touch a range of days, by first day.

        Args:
            tenant: whose they are.
            stores: only those about one of these stores, or about all; None: whatever they are about.
            first_day: of the range.
            last_day: of the range, which includes it.

        Raises:
            CassandraUnavailableError: they cannot be read.
        """
        first, last = max(first_day, FIRST_DAY), min(last_day, LAST_DAY)
        if first > last:
            return []
        begin, end = first - timedelta(days=MAX_DAYS), last + timedelta(days=1)
        found = await self._store.slice(tenant, begin.isoformat(), end.isoformat())
        return [each for each in found if each.last_day >= first and each.is_about(stores)]

    async def add(
        self,
        tenant: str,
        wanted: Iterable[NewAnnotation],
        stores: Mapping[str, Store],
        by: tuple[str, datetime],
    ) -> Sequence[Annotation]:
        """Add annotations, after all of them are validated.

        Args:
            tenant: whose they are.
            wanted: what is to be added.
            stores: every registered store by id.
            by: the id of the key that adds them, and when.

        Raises:
            BadQuestionError: a field of one of them is wrong.
            UnknownNameError: one of them names a store that the tenant does not have.
            BadFileError: the same for one of a file; it names the place. Or they are too large to be stored together.
            TooManySavedError: the tenant would have more than `most`.
        """
        known = {id_ for id_, store in stores.items() if store.tenant == tenant}
        made = {each.id: each for each in (_checked_at_place(tenant, new, known, by) for new in wanted)}
        async with self._adding.hold(tenant):
            count = len({*await self._store.ids(tenant), *made})
            if count > self.most:
                message = f"The tenant `{tenant}` would have {count:,} annotations, and may have {self.most:,}."
                raise TooManySavedError(message, do="Remove some that are no longer needed.")
            if made:
                await self._store.put(list(made.values()))
        return list(made.values())

    async def count(self, tenant: str) -> int:
        """How many the tenant has."""
        return len(await self._store.ids(tenant))

    async def remove(self, tenant: str, id_: str) -> None:
        """Remove one. UnknownNameError if the tenant has none of this id."""
        known = await self._store.ids(tenant)
        if id_ not in known:
            raise UnknownNameError("annotation", id_, (), do="`GET /v1/annotations` lists those that there are.")
        await self._store.remove(tenant, id_)


def _checked_at_place(tenant: str, new: NewAnnotation, stores: Collection[str], by: tuple[str, datetime]) -> Annotation:
    try:
        return checked(tenant, new, stores, by)
    except (BadQuestionError, UnknownNameError) as error:
        if not new.place:
            raise
        message = f"{new.place.capitalize()}: {error.message}"
        raise BadFileError(message, do=f"{error.do} Nothing was loaded.", code=error.code) from error


def checked(tenant: str, new: NewAnnotation, stores: Collection[str], by: tuple[str, datetime]) -> Annotation:
    """Validate one. `stores`: of the tenant. `by`: as in `Annotations.add`. BadQuestionError, UnknownNameError."""
    first, last = new.first_day, new.last_day or new.first_day
    kind = next((each for each in KINDS if each == new.kind), None)
    if kind is None:
        message = f"There is no kind `{new.kind[:MAX_TEXT]}`."
        raise BadQuestionError(message, do=f"Use one of: {', '.join(f'`{each}`' for each in KINDS)}.")
    if not (FIRST_DAY <= first <= LAST_DAY and FIRST_DAY <= last <= LAST_DAY):
        raise BadQuestionError("`first_day` or `last_day` is out of range.", do=f"Use {FIRST_DAY} to {LAST_DAY}.")
    if last < first:
        raise BadQuestionError("`last_day` is before `first_day`.", do="Swap them; `last_day` is included.")
    if (last - first).days >= MAX_DAYS:
        raise BadQuestionError(f"The range has more than {MAX_DAYS} days.", do="Add several annotations.")
    named = tuple(sorted(set(new.stores)))
    if len(named) > MAX_STORES:
        do = "Name none for all stores, or add several annotations."
        raise BadQuestionError(f"`stores` names {len(named):,} stores, more than {MAX_STORES}.", do=do)
    for store in named:
        if store not in stores:
            raise UnknownNameError("store", store, stores)
    made = Annotation(tenant, first, last, kind, readable(new.text, "text", MAX_TEXT), named, *by)
    return made.with_id()
