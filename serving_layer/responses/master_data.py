"""Data that tenants load from files: products and targets of stores."""

from collections.abc import Sequence
from datetime import date

from msgspec import Struct

from serving_layer.responses.encoding import Instant


class ListedProduct(Struct):
    """A product as it is called from business day `valid_from` on; null: always. Null elsewhere: not said."""

    sku: str
    title: str
    brand: str | None
    category: str | None
    gtin: str | None
    valid_from: date | None


class LoadedProducts(Struct):
    """The product master of a tenant after a load. `count`: of all its products, each version counted."""

    tenant: str
    version: str
    count: int
    loaded_at: Instant


class ProductList(Struct):
    """Products of a tenant. `count`: of all that there are. `version`, `loaded_at`: null if none was ever loaded.

    `next`: the `after` of the next page, null on the last. A page may be empty although more follow.
    """

    tenant: str
    version: str | None
    loaded_at: Instant | None
    count: int
    products: Sequence[ListedProduct]
    next: str | None


class LoadedTargets(Struct):
    """The targets of a tenant after a load. `count`: of all its targets."""

    tenant: str
    version: str
    count: int
    loaded_at: Instant
