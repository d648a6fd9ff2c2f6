"""Products in answers: the attributes of SKUs on the business days of each store, and their titles.

Everything is done for whole columns: a view gives the SKUs and windows of its cells, and gets the value of each. What
the product master says of a SKU is looked up once per answer and tenant; only SKUs whose value changes on some day are
looked at cell by cell.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from typing import Generic, NamedTuple, Self, TypeVar
from zoneinfo import ZoneInfo

from master_dataset.errors import UnknownNameError
from master_dataset.registry.products import Product, ProductMaster, Versions, valid_on
from serving_layer.products.dimensions import BRAND, CATEGORY, Attributes, ProductSelection, attribute
from serving_layer.products.reader import MasterNames, ProductReader
from views.core.local_time import BusinessDays

Found = TypeVar("Found", str | None, bool)
Skus = Sequence[str | None]

MOST_SUGGESTED = 20
"""Names in a problem that suggests all there are; of more only the nearest one."""


class ProductLabel(NamedTuple):
    """What a series of one SKU says of it. `category`: the whole path. `is_seen`: the title is that of receipts."""

    title: str | None = None
    category: str | None = None
    is_seen: bool = False


class _History(NamedTuple, Generic[Found]):
    """A value that changes: `values[0]` before the first of `days`, then one from each of them on."""

    days: tuple[date, ...]
    values: tuple[Found, ...]


@dataclass
class _Values(Generic[Found]):
    """What a function of products is for SKUs: the same always, or by business day."""

    read: Callable[[Product | None], Found]
    constant: dict[str | None, Found] = field(default_factory=dict)
    changing: dict[str | None, _History[Found]] = field(default_factory=dict)

    def add(self, skus: Iterable[str | None], versions: Mapping[str, Versions], attributes: Attributes) -> None:
        """Learn the values of more SKUs. `versions`: of those that the product master has."""
        for sku in skus:
            known: Versions = versions.get(sku or "", ())
            if not known or attributes == "current":
                self.constant[sku] = self.read(known[-1] if known else None)
                continue
            values = [self.read(each) for each in (None, *known)]
            if known[0].valid_from is None:
                del values[0]
            days = [each.valid_from for each in known if each.valid_from]
            if len(set(values)) == 1:
                self.constant[sku] = values[0]
            else:
                self.changing[sku] = _History(tuple(days), tuple(values))


class _TenantProducts:
    """What one answer knows of the products of a tenant."""

    def __init__(self, attributes: Attributes) -> None:
        self._attributes: Attributes = attributes
        self.versions: dict[str, Versions] = {}
        self.looked_up: set[str | None] = {None}
        self._values: dict[str, _Values[str | None]] = {}
        self._selected: dict[ProductSelection, _Values[bool]] = {}

    def values(self, name: str, skus: Skus) -> _Values[str | None]:
        """An attribute, known for these SKUs."""
        return self._known(self._values.setdefault(name, _Values(attribute(name))), skus)

    def selected(self, selection: ProductSelection, skus: Skus) -> _Values[bool]:
        """Whether a product counts, known for these SKUs."""
        return self._known(self._selected.setdefault(selection, _Values(selection.names_product)), skus)

    def _known(self, values: _Values[Found], skus: Skus) -> _Values[Found]:
        new = set(skus).difference(values.constant, values.changing)
        values.add(new, self.versions, self._attributes)
        return values


class StoreProducts:
    """The products of one store's tenant, on the business days of that store whatever the time zone of the answer."""

    def __init__(self, tenant: _TenantProducts, days: BusinessDays) -> None:
        """Made by `AnswerProducts`."""
        self._tenant, self._start_of = tenant, cache(days.start)

    @classmethod
    def without_master(cls) -> Self:
        """The products of a tenant that has not loaded any."""
        return cls(_TenantProducts("as_then"), BusinessDays(ZoneInfo("UTC")))

    def column(self, name: str, skus: Skus, windows: Sequence[int]) -> list[str | None]:
        """The values of an attribute.

        Args:
            name: as in `by`.
            skus: of the cells.
            windows: of the same cells, in seconds since 1970.
        """
        return self._column(self._tenant.values(name, skus), skus, windows)

    def selected(self, selection: ProductSelection, skus: Skus, windows: Sequence[int]) -> list[bool]:
        """Whether each cell is of a product that counts by its category and brand. Other arguments as `column`."""
        return self._column(self._tenant.selected(selection, skus), skus, windows)

    def _column(self, values: _Values[Found], skus: Skus, windows: Sequence[int]) -> list[Found]:
        absent = values.read(None)
        found = [values.constant.get(sku, absent) for sku in skus]
        starts: dict[str | None, list[int]] = {}
        for place in [place for place, sku in enumerate(skus) if sku in values.changing] if values.changing else ():
            sku = skus[place]
            history = values.changing[sku]
            if sku not in starts:
                starts[sku] = [self._start_of(day) for day in history.days]
            found[place] = history.values[bisect_right(starts[sku], windows[place])]
        return found


class AnswerProducts:
    """The products that one answer reads, all of one version of each tenant's product master."""

    def __init__(self, reader: ProductReader, masters: Iterable[ProductMaster], attributes: Attributes) -> None:
        """Reads nothing yet.

        Args:
            reader: reads the blocks.
            masters: the versions of the tenants that have any.
            attributes: of which time the attributes are.
        """
        self._reader, self._attributes = reader, attributes
        self._masters = {master.tenant: master for master in masters}
        self._tenants: dict[str, _TenantProducts] = {}

    async def of_store(self, tenant: str, days: BusinessDays, skus: Iterable[str | None]) -> StoreProducts:
        """Look up the SKUs of a store.

        Args:
            tenant: of the store.
            days: its business days, in its own time zone.
            skus: those of its cells.

        Raises:
            CassandraUnavailableError: Cassandra does not answer, or products are loaded faster than they are read.
        """
        return StoreProducts(await self._load(tenant, skus), days)

    async def labels(self, tenants: Iterable[str], skus: Iterable[str], day: date) -> Mapping[str, ProductLabel]:
        """Title and category of SKUs, as far as these tenants agree on them. Raises as `of_store`.

        A SKU that no product master of them has on that day has the title that receipts last had for it.

        Args:
            tenants: whose products they are.
            skus: which ones.
            day: the business day on which they are valid, unless attributes are the current ones.
        """
        found: dict[str, set[ProductLabel]] = {sku: set() for sku in skus}
        for tenant in set(tenants):
            versions = (await self._load(tenant, found)).versions
            for sku, labels in found.items():
                if product := self._valid(versions.get(sku, ()), day):
                    labels.add(ProductLabel(product.title, "/".join(product.category) or None))
        unnamed = [sku for sku, labels in found.items() if not labels]
        for tenant in set(tenants) if unnamed else ():
            for sku, title in (await self._reader.seen_titles(tenant, unnamed)).items():
                found[sku].add(ProductLabel(title, is_seen=True))
        return {sku: next(iter(labels)) if len(labels) == 1 else ProductLabel() for sku, labels in found.items()}

    async def refuse_unknown(self, selection: ProductSelection) -> None:
        """Refuse categories and brands that no version of any product of the answer's tenants has.

        Raises:
            UnknownNameError: there is no such category or brand.
            CassandraUnavailableError: as `of_store`.
        """
        asked = MasterNames(frozenset("/".join(path) for path in selection.categories), frozenset(selection.brands))
        known = MasterNames(frozenset(), frozenset())
        for master in self._masters.values():
            if known.includes(asked):
                return
            known = known.union(await self._reader.names(master, asked))
        for kind, names, there in ((CATEGORY, asked.categories, known.categories), (BRAND, asked.brands, known.brands)):
            for name in sorted(names - there):
                raise _unknown(kind, name, there)

    def _valid(self, versions: Versions, day: date) -> Product | None:
        if not versions or self._attributes == "current":
            return versions[-1] if versions else None
        return valid_on(versions, day)

    async def _load(self, tenant: str, skus: Iterable[str | None]) -> _TenantProducts:
        found = self._tenants.setdefault(tenant, _TenantProducts(self._attributes))
        new, master = set(skus) - found.looked_up, self._masters.get(tenant)
        if new and master is not None:
            found.versions.update(await self._reader.versions(master, (sku for sku in new if sku)))
        found.looked_up |= new
        return found


def _unknown(kind: str, name: str, known: frozenset[str]) -> UnknownNameError:
    if not known:
        return UnknownNameError(kind, name, (), do="Load products with `galatea products load`.")
    error = UnknownNameError(kind, name, known)
    if len(known) > MOST_SUGGESTED and not error.do.startswith("Did you mean"):
        return UnknownNameError(kind, name, (), do="`GET /v1/products` lists the products.")
    return error
