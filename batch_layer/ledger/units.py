"""What has to be compared of a view: where blocks differ or speed shows rows. What is wholly new need not be."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from batch_layer.ledger.correction import Place
from batch_layer.run import Digest, read_digests
from views.core.cut import month_of

if TYPE_CHECKING:
    from cassandra.cluster import Session

UNITS = pa.schema(
    [
        ("store", pa.string()),
        ("month", pa.date32()),
        ("days", pa.list_(pa.date32())),
        ("received", pa.list_(pa.date32())),
    ]
)
"""A row per store and month: its days to compare, and on which days speed received what it shows of them."""
Days = Mapping[date, Mapping[str, Digest | None]]
"""By day and store."""


@dataclass(frozen=True)
class Differing:
    """`places` differ on both sides; `new` have a block after and none before."""

    places: set[Place] = field(default_factory=set)
    new: dict[Place, Digest] = field(default_factory=dict)


def differing(before: Days, after: Days) -> Differing:
    """Of days that were written by another run: the blocks that are not the same."""
    found = Differing()
    for day in {*before, *after}:
        old, new = before.get(day, {}), after.get(day, {})
        for store in {*old, *new}:
            one, other = old.get(store), new.get(store)
            if store not in old and other is not None:
                found.new[store, day] = other
            elif one is None or other is None or one.text != other.text:
                found.places.add((store, day))
    return found


def digests(session: "Session", view: str, runs: Mapping[date, str]) -> dict[date, dict[str, Digest | None]]:
    """Of these days, each from its run."""
    found: dict[date, dict[str, Digest | None]] = {}
    for run in set(runs.values()):
        found |= read_digests(session, run, view, {day for day, own in runs.items() if own == run})
    return found


def units(places: Iterable[Place], received: Mapping[Place, Iterable[date]]) -> pa.Table:
    """The places to compare, together with those that speed shows, as `UNITS`."""
    days: dict[tuple[str, date], set[date]] = {}
    seen: dict[tuple[str, date], set[date]] = {}
    for store, day in {*places, *received}:
        key = (store, month_of(day))
        days.setdefault(key, set()).add(day)
        seen.setdefault(key, set()).update(received.get((store, day), ()))
    rows = [
        {"store": key[0], "month": key[1], "days": sorted(own), "received": sorted(seen[key])}
        for key, own in sorted(days.items())
    ]
    return pa.Table.from_pylist(rows, schema=UNITS)
