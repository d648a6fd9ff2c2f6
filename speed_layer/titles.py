"""What receipts call each SKU: the table `seen_titles`, for SKUs that the product master lacks.

The title of a SKU is that of its lines in the latest window of 15 minutes; if they differ, it is the greatest text.
The write timestamp of a row is the start of that window, and of equal timestamps Cassandra keeps the greater value. So
a row is the maximum of what was written: the same in whatever order deliveries come, and however often (ADR 0046).

Rows are written while the stream is parsed, without state, before the positions of the micro-batch. Every delivery
counts, also one that is late, repeated or in conflict with another: it was on a receipt, and no number depends on it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from master_dataset.parsing.rows import EVENT
from master_dataset.registry.products import bucket_of_seen
from speed_layer.cassandra_batches import Insert, Wait, begin_writes, nothing_begun
from views.core.view import WINDOW

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from master_dataset.registry.registry import TenantOf

REMEMBERED = 200_000
"""SKUs of which a worker remembers what it wrote last, and does not write it again in the same window."""
_WINDOW_US = int(WINDOW.total_seconds()) * 1_000_000
_INSERT = "INSERT INTO seen_titles (tenant, bucket, sku, title) VALUES (?, ?, ?, ?) USING TIMESTAMP ?"
_BY_PARTITION = itemgetter(0, 1)
_Sku = tuple[str, str]
"""Tenant and SKU."""


class SeenTitle(NamedTuple):
    """A title that was seen. The greater one counts. `window_us`: start of its window, microseconds since 1970."""

    window_us: int
    title: str


_written: dict["Session", LRUCache[_Sku, SeenTitle]] = {}
"""By session, of which a process has one: what this process has written, and Cassandra acknowledged."""


@dataclass(frozen=True)
class TitleWriter:
    """Runs in Spark's workers. `tenants`: creates the look-up of the tenants of stores."""

    connect: "Callable[[], Session]"
    tenants: "Callable[[], TenantOf]"
    columns: ClassVar[tuple[str, ...]] = ("store", "happened_at", "lines")

    def __call__(self, parsed: pa.RecordBatch) -> Wait:
        """Begin to write the titles of events among parsed records: those of registered stores, which have a tenant."""
        tenant_of, session = self.tenants(), self.connect()
        known = _written.setdefault(session, LRUCache(REMEMBERED))
        new = unwritten(seen_titles(parsed, tenant_of), known)
        if not new:
            return nothing_begun
        rows = sorted(
            (tenant, bucket_of_seen(sku), sku, seen.title, seen.window_us) for (tenant, sku), seen in new.items()
        )
        are_written = begin_writes(session, Insert(session.prepare(_INSERT), _BY_PARTITION, _size), rows)

        def wait() -> None:
            are_written()
            known.update({sku: seen for sku, seen in new.items() if sku not in known or seen > known[sku]})

        return wait


def _size(row: tuple[str, int, str, str, int]) -> int:
    return len(row[0]) + len(row[2].encode()) + len(row[3].encode())


def unwritten(found: Iterable[tuple[str, str, SeenTitle]], known: Mapping[_Sku, SeenTitle]) -> Mapping[_Sku, SeenTitle]:
    """The greatest title of each SKU of a tenant, where it is greater than what is written already.

    Args:
        found: tenant, SKU and title.
        known: what is written, of some SKUs or all.
    """
    new: dict[_Sku, SeenTitle] = {}
    for tenant, sku, seen in found:
        before = new.get((tenant, sku)) or known.get((tenant, sku))
        if before is None or seen > before:
            new[tenant, sku] = seen
    return new


def seen_titles(parsed: pa.RecordBatch, tenant_of: "TenantOf") -> Iterator[tuple[str, str, SeenTitle]]:
    """Each tenant, SKU and title of the events among parsed records, with the latest window; some more than once.

    Lines without a SKU or a title say nothing, and neither do those of stores without a tenant.
    """
    events = parsed.filter(pc.equal(parsed["kind"], EVENT)).select(TitleWriter.columns)
    stores = events["store"].dictionary_encode()
    tenants = pa.array([tenant_of(store) for store in stores.dictionary.to_pylist()], pa.string())
    event, lines = pc.list_parent_indices(events["lines"]), pc.list_flatten(events["lines"])
    happened_us = events["happened_at"].cast(pa.int64()).take(event)
    table = pa.table(
        {
            "tenant": tenants.take(stores.indices).take(event),
            "sku": pc.struct_field(lines, "sku"),
            "title": pc.struct_field(lines, "title"),
            "window": pc.multiply(pc.divide(happened_us, _WINDOW_US), _WINDOW_US),
        }
    )
    has_title = pc.and_(pc.is_valid(table["sku"]), pc.not_equal(table["title"], ""))
    table = table.filter(pc.and_(pc.is_valid(table["tenant"]), has_title))
    latest = table.group_by(["tenant", "sku", "title"], use_threads=False).aggregate([("window", "max")])
    columns = (latest[name].to_pylist() for name in ("tenant", "sku", "title", "window_max"))
    for tenant, sku, title, window_us in zip(*columns, strict=True):
        yield tenant, sku, SeenTitle(window_us, title)
