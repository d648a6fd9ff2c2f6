"""What a browser loads for a page of metrics: the page and everything that it links."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx

from benchmarks import local
from benchmarks.report import Measured
from master_dataset.registry.registry import Registry
from master_dataset.registry.store_tables import Edit
from master_dataset.registry.stores import Store

if TYPE_CHECKING:
    from deploy.settings import Settings

MOST_BYTES = 150_000
SHOP = "998"
"""A store without sales."""
PAGES = ("/", "/stores", f"/stores/{SHOP}", "/products", "/layers", "/views", "/publications")
_DATA = re.compile(r' data-rows="[^"]*"')
"""The rows of charts, which grow with the period."""
_LINKED = re.compile(r'(?:src|href)="(/static/[^"]+)"')


def weighed(settings: "Settings") -> Iterator[Measured]:
    """The heaviest of those that show numbers, without compression."""
    Registry(local.cassandra(settings)).save(Edit([Store(id=SHOP, timezone="UTC")]), settings.layers.skew)
    base = f"http://127.0.0.1:{settings.api.port}"
    with httpx.Client(base_url=base, trust_env=False, timeout=60) as client:
        weights = {path: weight_without_data(client, path) for path in PAGES}
    heaviest = max(weights, key=weights.__getitem__)
    yield Measured(
        "page_weight", weights[heaviest], MOST_BYTES, "bytes", "limit", better="low", limit=1.0, details=weights
    )


def weight_without_data(client: httpx.Client, path: str) -> int:
    """The bytes of a page without the rows of its charts, and of everything that it links."""
    page = client.get(path).raise_for_status()
    linked = [client.get(link).raise_for_status() for link in set(_LINKED.findall(page.text))]
    return len(_DATA.sub("", page.text).encode()) + sum(len(each.content) for each in linked)
