"""Events in portions of whole stores: what is computed of one portion bounds the memory of a process."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

EVENTS_AT_ONCE = 10_000
"""Each has about forty contributions, of some hundred bytes each."""


def whole_stores(events: pa.Table) -> Iterator[pa.Table]:
    """The events sorted by `store`, in portions of at least `EVENTS_AT_ONCE`; the last one may be smaller.

    No store is in two portions, so one that has more events is a portion of that size.
    """
    order = pc.sort_indices(events["store"])
    start = end = 0
    for store in pc.value_counts(events["store"].take(order)).to_pylist():
        end += store["counts"]
        if end - start >= EVENTS_AT_ONCE:
            yield events.take(order.slice(start, end - start))
            start = end
    if end > start:
        yield events.take(order.slice(start))
