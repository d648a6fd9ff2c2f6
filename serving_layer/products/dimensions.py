"""Products in the words of a query: `by=category:2`, `category=Food/Dairy`. Pure.

A view that counts SKUs also has the attributes that the product master gives them, as dimensions: the levels of the
category, and the brand.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Self

from master_dataset.errors import UnknownNameError
from master_dataset.registry.products import Product, in_category
from master_dataset.registry.products_file import MOST_LEVELS
from serving_layer.errors import BadQuestionError
from views.core import View

Attributes = Literal["as_then", "current"]
"""Whether groups and attributes are those of each business day, or the newest ones for all days."""
SKU, CATEGORY, BRAND = "sku", "category", "brand"
MAX_ECHOED = 100
"""Characters of an argument that are repeated in a problem."""
PRODUCT_DIMENSIONS = (CATEGORY, f"{CATEGORY}:2", BRAND)
"""Examples of dimensions that a view has if it has SKUs; categories have up to `MOST_LEVELS` levels."""


class ProductSelection(NamedTuple):
    """Which products count: in any of the categories, of any of the brands, and any of the SKUs. Empty: all.

    Attributes:
        categories: from the department down; with all below them.
        brands: their names.
        skus: their ids.
    """

    categories: tuple[tuple[str, ...], ...] = ()
    brands: tuple[str, ...] = ()
    skus: tuple[str, ...] = ()

    @classmethod
    def read(cls, categories: Sequence[str], brands: Sequence[str], skus: Sequence[str]) -> Self:
        """Read what a caller wrote.

        Raises:
            BadQuestionError: a category is no path, or a name is empty.
        """
        for name, values in ((BRAND, brands), (SKU, skus)):
            if not all(values):
                raise BadQuestionError(f"`{name}=` is empty.", do=f"Name a {name}, or leave `{name}` out.")
        return cls(tuple(map(_path, categories)), tuple(brands), tuple(skus))

    @property
    def needs_master(self) -> bool:
        """Whether the product master says which products count."""
        return bool(self.categories or self.brands)

    def names_product(self, product: Product | None) -> bool:
        """Whether a product counts, whatever its SKU. `product`: None if the master does not have it."""
        if product is None:
            return not self.needs_master
        if self.categories and not any(in_category(product, category) for category in self.categories):
            return False
        return not self.brands or product.brand in self.brands


ALL_PRODUCTS = ProductSelection()


def _path(text: str) -> tuple[str, ...]:
    """The levels of a category. One that no product can have is read, too: it is unknown."""
    path = tuple(level.strip() for level in text.split("/"))
    if not all(path):
        message = f"`{CATEGORY}={text[:MAX_ECHOED]}` has an empty level."
        raise BadQuestionError(message, do="Use a path such as `Food/Dairy`.")
    return path


def is_product_dimension(name: str) -> bool:
    """Whether a name in `by` is an attribute of products: `category`, `category:2` or `brand`."""
    return name == BRAND or name.partition(":")[0] == CATEGORY


def dimension_of(view: View, name: str) -> str | None:
    """The dimension of a view that a name in `by` is found in: itself, or `sku` for attributes of products."""
    if name in view.dimensions:
        return name
    return SKU if is_product_dimension(name) and SKU in view.dimensions else None


def attribute(name: str) -> Callable[[Product | None], str | None]:
    """Return the function that reads an attribute of a product; null where the master says nothing.

    Raises:
        UnknownNameError: the level of a category is none.
    """
    if name == BRAND:
        return lambda product: (product.brand or None) if product else None
    levels = _levels(name)
    return lambda product: ("/".join(product.category[:levels]) or None) if product else None


def _levels(name: str) -> int:
    """How many levels of the category a name stands for; `category` alone is the first one."""
    known = {CATEGORY: 1} | {f"{CATEGORY}:{number}": number for number in range(1, MOST_LEVELS + 1)}
    if name not in known:
        raise UnknownNameError("dimension", name, known)
    return known[name]
