"""Visits as rows, as views of visits read them."""

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
"""`received_at`: when it was known, which decides its epoch. `happened_at`: whose window it belongs to."""


class VisitKey(NamedTuple):
    """Of one store, device and business day (days since 1970) the sightings make bundles."""

    store: str
    device: str
    business_day: int


VisitRow = tuple[str, str, int, int, bool, bool, bool, int]
"""The values of `VISITS`, instants in microseconds."""


def rows_of(whose: VisitKey, bundle: Bundle, rules: VisitRules) -> Iterator[VisitRow]:
    """The visits of a bundle that has closed."""
    return visit_rows(whose, bundle.visits(rules), bundle.closes_at(rules.gap), rules)


def visit_rows(whose: VisitKey, visits: Iterable[Visit], known_at: int, rules: VisitRules) -> Iterator[VisitRow]:
    """Each visit with its classes. `known_at`: milliseconds since 1970."""
    for each in visits:
        is_in_store = not each.is_stationary and each.stay >= rules.min_stay
        is_bounced = is_in_store and each.stay < rules.engaged_stay
        kinds = (is_in_store, is_bounced, each.is_stationary)
        yield (whose.store, whose.device, known_at * 1000, each.at * 1000, *kinds, each.stay)


def visits_table(rows: Iterable[VisitRow]) -> pa.Table:
    """The rows as `VISITS`."""
    columns = list(zip(*rows, strict=True)) or [()] * len(VISITS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, VISITS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=VISITS)
