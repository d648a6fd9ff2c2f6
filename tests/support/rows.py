"""The registered views in plain Python: what one event adds to each. A second opinion on their Spark SQL text."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from master_dataset.parsing.results import Event
from tests.support.xxh64 import xxh64
from views.core import States, View
from views.core.aggregates import Value
from views.core.cells import CellKey
from views.core.sketch import sketch_of

WINDOW_SECONDS = 900
Contribution = tuple[CellKey, States]
Row = tuple[int, tuple[str | None, ...], States]
"""Milliseconds since 1970, dimensions, states."""
VALUES = [0] + [digit * 10**power for power in range(2, 7) for digit in (1, 2, 5)]
PIECES = [0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 21, 31, 51]
PAIRED = 5
STAYS = [minutes * 60_000 for minutes in (0, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180)]
WAITS = [seconds * 1000 for seconds in (0, 15, 30, 60, 120, 180, 240, 300, 420, 600, 900, 1800)]


def contributions(view: View, event: Event[Any]) -> Iterator[Contribution]:
    """The cells that the event reaches, each with what it adds. Of visits see `tests.support.visits`."""
    for at_ms, dimensions, states in _RULES[view.name](event.payload, event.happened_ms):
        at = at_ms // 1000
        odd = tuple(int(flag in event.payload.flags) for flag in _FLAGS.get(view.name, ()))
        yield CellKey(at - at % WINDOW_SECONDS, dimensions), (*states, *odd)


def histogram(edges: Sequence[int], value: int | None) -> tuple[Value, ...]:
    """The states of one value, or of none."""
    if value is None:
        return (*([0] * len(edges)), None, None)
    place = sum(1 for edge in edges[1:] if value >= edge)
    return (*(int(number == place) for number in range(len(edges))), value, value)


def _sales(said: Any, at: int) -> Iterator[Row]:
    kinds = (1, int(said.is_sale), int(said.is_return), int(said.is_exchange), int(said.is_zero))
    sums = (said.gross_sales, said.returns_value, said.units_sold, said.units_returned, said.line_count)
    yield at, (said.currency,), (*kinds, *sums)


def _by_sku(said: Any, at: int) -> Iterator[Row]:
    for item in said.items:
        yield at, (said.currency, item.sku), (item.net_sales, item.net_units, int(item.is_sale))


def _by_till(said: Any, at: int) -> Iterator[Row]:
    yield at, (said.currency, said.till), (1, int(said.is_sale), said.gross_sales - said.returns_value)


def _baskets(said: Any, at: int) -> Iterator[Row]:
    if said.is_sale:
        numbers = (said.gross_sales, said.units_sold, said.line_count)
        spread = zip((VALUES, PIECES, PIECES), numbers, strict=True)
        bins = [state for edges, number in spread for state in histogram(edges, number)]
        yield at, (said.currency,), (1, said.gross_sales, *bins, int(len(_sold(said)) > PAIRED))


def _pairs(said: Any, at: int) -> Iterator[Row]:
    sold = sorted(item.sku.encode() for item in _sold(said))
    for one, other in combinations(sold, 2) if len(sold) <= PAIRED else ():
        yield at, (one.decode(), other.decode()), (1,)


def _sold(said: Any) -> list[Any]:
    return [item for item in said.items if item.is_sale]


def _returns(said: Any, at: int) -> Iterator[Row]:
    for line in said.lines:
        if line.amount < 0 and line.sku is not None:
            units = 1 if line.amount % 1000 else -line.amount // 1000
            yield at, (said.currency, line.sku), (-line.total, units, 1)


def _discounts(said: Any, at: int) -> Iterator[Row]:
    if said.discount is not None:
        yield (
            at,
            (said.currency,),
            (1, int(said.discount > 0), said.discount, said.discount_returned, said.gross_sales),
        )


def _payments(said: Any, at: int) -> Iterator[Row]:
    for number, payment in enumerate(said.payments or ()):
        yield at, (said.currency, payment.type), (payment.amount, 1, int(number == 0))


def _traffic(said: Any, at: int) -> Iterator[Row]:
    groups = (said.group_in or 0, said.group_out or 0, 0 if said.group_in is None else said.people_in)
    staff = (said.staff_in or 0, said.staff_out or 0, int(said.staff_in is None and said.staff_out is None))
    yield at, (said.line,), (said.people_in, said.people_out, *groups, *staff, said.interval_ms)


def _demographics(said: Any, at: int) -> Iterator[Row]:
    yield at, (said.age_band, said.gender), (said.people,)


def _weather(said: Any, at: int) -> Iterator[Row]:
    clouds = (0, 0) if said.cloud_permille is None else (said.cloud_permille, 1)
    degrees = said.temperature_mc
    yield at, (said.provider,), (degrees, 1, degrees, degrees, said.precipitation_um, said.wind_mm_s, 1, *clouds)


def _coverage(said: Any, at: int) -> Iterator[Row]:
    yield at, (said.source, said.sensor_id), (said.interval_ms,)


def _devices(said: Any, at: int) -> Iterator[Row]:
    zone = "inside" if said.is_inside else "outside"
    yield at, (zone,), (1, int(said.is_randomized), sketch_of([xxh64(said.device)]))


def _queue(said: Any, _: int) -> Iterator[Row]:
    wait = said.wait_ms if said.change == "service_start" else None
    kinds = [int(said.change == change) for change in ("join", "service_start", "abandon")]
    sums = (int(wait is not None and wait <= 180_000), int(said.change == "leave"), wait or 0, said.service_ms or 0)
    yield said.joined_us // 1000, (said.queue,), (*kinds, *sums, *histogram(WAITS, wait))


def _queue_length(said: Any, at: int) -> Iterator[Row]:
    if said.change in ("service_start", "abandon"):
        for start, ms in overlaps(said.joined_us // 1000, at):
            yield start, (said.queue,), (ms,)


def _queue_peak(said: Any, at: int) -> Iterator[Row]:
    if said.length_after is not None:
        yield at, (said.queue,), (said.length_after,)


def _zones(said: Any, at: int) -> Iterator[Row]:
    dwell = said.dwell_ms if said.dwell_ms is not None and said.dwell_ms >= 5000 else None
    when = at if said.crossing == "enter" else said.entered_us // 1000
    counts = (int(said.crossing == "enter"), int(said.crossing == "exit"), int(dwell is not None), dwell or 0)
    yield when, (said.zone,), (*counts, *histogram(STAYS, dwell))


def _labor(said: Any, at: int) -> Iterator[Row]:
    for start, ms in overlaps(said.started_us // 1000, at):
        yield start, (said.basis, said.role), (said.sign * ms,)


def overlaps(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Each millisecond counted where it lies, a window at a time."""
    at = start
    while at < end:
        until = min(end, (at // 900_000 + 1) * 900_000)
        yield at, until - at
        at = until


_FLAGS: Mapping[str, Sequence[str]] = {
    "sales": ("empty_receipt", "negative_price", "total_mismatch", "zero_amount"),
    "traffic": ("groups_above_people", "implausible_rate", "no_staff_split", "unregistered_sensor"),
    "demographics": ("unregistered_sensor",),
    "coverage": ("unregistered_sensor",),
    "wifi_devices": ("weak_signal", "unregistered_sensor"),
    "queue": ("instant_wait", "unregistered_sensor"),
    "zone_traffic": ("unknown_zone", "unregistered_sensor"),
}
_RULES: Mapping[str, Callable[[Any, int], Iterator[Row]]] = {
    "sales": _sales,
    "sales_by_sku": _by_sku,
    "sales_by_till": _by_till,
    "basket_sizes": _baskets,
    "basket_pairs": _pairs,
    "returns_by_sku": _returns,
    "discounts": _discounts,
    "payments": _payments,
    "traffic": _traffic,
    "demographics": _demographics,
    "weather": _weather,
    "coverage": _coverage,
    "wifi_devices": _devices,
    "queue": _queue,
    "queue_length": _queue_length,
    "queue_peak": _queue_peak,
    "zone_traffic": _zones,
    "labor": _labor,
}
