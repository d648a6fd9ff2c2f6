"""Visits as rows, as their views read them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from master_dataset.parsing.rows import INSTANT
from master_dataset.visits.visit import Bundle, Visit, VisitRules

VISITS = pa.schema(
    [
        ("store", pa.string()),
        ("device", pa.string()),
        ("received_at", INSTANT),
        ("happened_at", INSTANT),
        ("is_in_store", pa.bool_()),
        ("is_bounced", pa.bool_()),
        ("is_stationary", pa.bool_()),
        ("stay_ms", pa.int64()),
    ]
)
"""`received_at`: when it was known, which decides its epoch. `happened_at` decides its window."""


class VisitKey(NamedTuple):
    """Sightings with the same key form bundles. `business_day`: days since 1970."""

    store: str
    device: str
    business_day: int


VisitRow = tuple[str, str, int, int, bool, bool, bool, int]
"""The values of a row of `VISITS`, instants in microseconds since 1970."""


def rows_of(key: VisitKey, bundle: Bundle, rules: VisitRules) -> Iterator[VisitRow]:
    """Yield the visits of a closed bundle."""
    return visit_rows(key, bundle.visits(rules), bundle.closes_at(rules.gap), rules)


def visit_rows(key: VisitKey, visits: Iterable[Visit], known_at: int, rules: VisitRules) -> Iterator[VisitRow]:
    """Yield visits with their classification. `known_at`: milliseconds since 1970."""
    for each in visits:
        is_in_store = not each.is_stationary and each.stay >= rules.min_stay
        is_bounced = is_in_store and each.stay < rules.engaged_stay
        kinds = (is_in_store, is_bounced, each.is_stationary)
        yield (key.store, key.device, known_at * 1000, each.at * 1000, *kinds, each.stay)


def visits_table(rows: Iterable[VisitRow]) -> pa.Table:
    """Return rows as a table with the schema `VISITS`."""
    columns = list(zip(*rows, strict=True)) or [()] * len(VISITS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, VISITS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=VISITS)
