"""Filters of generated SQL statements, each with what it means, and the comparison of values with those of REST."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from hypothesis import strategies as st

from tests.support.chains import FIRST, LAST

TODAY = date(2026, 4, 2)
"""Of the worlds that are asked."""
DAYS = [FIRST + timedelta(days=number) for number in range((LAST - FIRST).days + 1)]
VALUES: Mapping[str, Sequence[str]] = {
    "currency": ("EUR", "CZK", "USD"),
    "sku": ("a", "b", "c"),
    "with_sku": ("a", "b", "c"),
    "till": ("t1", "t2"),
    "payment_type": ("cash", "card"),
    "line": ("A", "B"),
    "age_band": ("15-24", "65+", "unknown"),
    "gender": ("female", "male"),
    "kind": ("worked", "planned"),
    "role": ("checkout", "other"),
    "queue": ("Q1", "Q2"),
    "provider": ("p", "q"),
    "source": ("wifi_sightings", "queue_events"),
    "sensor_id": ("s0", "s1"),
    "zone": ("inside", "outside", "shoes"),
}
"""Of every dimension some values that are there, or might be."""


class DimensionFilter(NamedTuple):
    """A filter of a dimension. `values`: those that pass, or with `is_negated` those that do not; null never passes."""

    sql: str
    name: str
    values: frozenset[str]
    is_negated: bool

    def holds(self, value: str | None) -> bool:
        return value is not None and (value in self.values) != self.is_negated


class Filter(NamedTuple):
    """A filter of SQL and what it means. `last` is exclusive."""

    sql: str
    stores: frozenset[str] | None
    first: date | None
    last: date | None
    dimensions: Sequence[DimensionFilter] = ()

    def holds(self, store: str, at: date | datetime, dimensions: Mapping[str, str | None]) -> bool:
        """Whether a row of a store, a day or instant, and some dimensions passes."""
        if self.stores is not None and store not in self.stores:
            return False
        if not all(each.holds(dimensions[each.name]) for each in self.dimensions):
            return False
        lower = self.first is None or at >= _like(self.first, at)
        return lower and (self.last is None or at < _like(self.last, at))


def _like(day: date, at: date | datetime) -> date | datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if isinstance(at, datetime) else day


@st.composite
def filters(draw: st.DrawFn, time: str, dimensions: Sequence[str] = ()) -> Filter:
    """Stores, days and values of dimensions, as people and BI tools write them.

    Args:
        draw: of Hypothesis.
        time: the column of days or instants.
        dimensions: the columns of dimensions, of which at most one is filtered.
    """
    parts, stores, first, last = ["true"], None, None, None
    if draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(["0", "1", "2", "9"]), min_size=1, max_size=3))
        stores, listed = frozenset(chosen), ", ".join(f"'{each}'" for each in chosen)
        one = " or ".join(f"store = '{each}'" for each in chosen)
        parts.append(draw(st.sampled_from([f"store in ({listed})", f"store = any(array[{listed}])", f"({one})"])))
    if draw(st.booleans()):
        first = draw(st.sampled_from(DAYS))
        back = (TODAY - first).days
        of_now = f"current_date - interval '{back} days'" if time == "day" else f"date '{first}'::timestamptz"
        written = [
            f"{time} >= '{first}'",
            f"{time} >= date '{first}'",
            f"not {time} < '{first}'",
            f"{time} >= {of_now}",
        ]
        parts.append(draw(st.sampled_from([*written, f"'{first}' <= {time}"])))
    if draw(st.booleans()):
        last = draw(st.sampled_from(DAYS))
        written = [f"{time} < '{last}'", f"date '{last}' > {time}", f"{time} < to_date('{last}', 'YYYY-MM-DD')"]
        if time == "day":
            written.append(f"{time} <= date '{last}' - 1")
        parts.append(draw(st.sampled_from(written)))
    of_dimensions = [draw(dimension_filters(draw(st.sampled_from(dimensions))))] if dimensions else []
    of_dimensions = of_dimensions if draw(st.booleans()) else []
    parts += [each.sql for each in of_dimensions]
    return Filter(" and ".join(parts), stores, first, last, of_dimensions)


@st.composite
def dimension_filters(draw: st.DrawFn, name: str) -> DimensionFilter:
    chosen = draw(st.lists(st.sampled_from(VALUES[name]), max_size=2, unique=True))
    if not chosen:
        return DimensionFilter(f"{name} is not null", name, frozenset(), is_negated=True)
    listed, is_negated = ", ".join(f"'{each}'" for each in chosen), draw(st.booleans())
    written = (
        [f"{name} not in ({listed})"] if is_negated else [f"{name} in ({listed})", f"{name} = any(array[{listed}])"]
    )
    if len(chosen) == 1:
        written.append(f"{name} {'<>' if is_negated else '='} {listed}")
    return DimensionFilter(draw(st.sampled_from(written)), name, frozenset(chosen), is_negated)


def same(value: object, shown: object) -> bool:
    """Whether a value of SQL is what REST wrote: a float has the digits of its double."""
    if value is None or shown is None:
        return value is shown
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)  # type: ignore[arg-type]
    return exact == Decimal(shown)  # type: ignore[arg-type]
