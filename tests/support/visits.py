"""Visits in plain Python, straight from the rules of the catalogue: a second opinion on `master_dataset.visits`."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.support.rows import STAYS, WINDOW_SECONDS, histogram
from tests.support.xxh64 import xxh64
from views.core import States
from views.core.cells import CellKey
from views.core.sketch import sketch_of

if TYPE_CHECKING:
    from tests.support.layers import Delivery

G = timedelta(minutes=30)
AHEAD = timedelta(minutes=5)
LONGEST = timedelta(hours=6)
MINUTE = 60_000


def is_fresh(each: "Delivery") -> bool:
    return -AHEAD <= each.received_at - each.event.happened_at <= G - AHEAD


def of_bundles(deliveries: "Sequence[Delivery]") -> Iterator[tuple[datetime, CellKey, States]]:
    """When each visit of a bundle is known, its cell and what it adds."""
    for own in _by_device([each for each in deliveries if is_fresh(each)]):
        for bundle in _apart(own, lambda each: each.received_at):
            known = max(each.received_at for each in bundle) + G
            yield from ((known, *cell) for cell in _visits(bundle))


def of_late(deliveries: "Sequence[Delivery]") -> Iterator[tuple[CellKey, States]]:
    """Of first deliveries, what those that came too late for a bundle make."""
    for own in _by_device([each for each in deliveries if not is_fresh(each)]):
        for visit in _apart(own, lambda each: each.event.happened_at):
            yield _counted(visit)


def _visits(bundle: "Sequence[Delivery]") -> Iterator[tuple[CellKey, States]]:
    received = [each.received_at for each in bundle]
    if max(received) - min(received) > LONGEST:
        yield _stationary(bundle)
        return
    for visit in _apart(bundle, lambda each: each.event.happened_at):
        yield _counted(visit)


def _counted(visit: "Sequence[Delivery]") -> tuple[CellKey, States]:
    happened = [each.event.happened_ms for each in visit]
    if max(happened) - min(happened) > LONGEST // timedelta(milliseconds=1):
        return _stationary(visit)
    inside = [each.event.happened_ms for each in visit if each.event.payload.is_inside]
    stay = max(inside) - min(inside) if inside else 0
    if stay < 2 * MINUTE:
        return _window(min(happened)), (1, 0, 0, 0, 0, *histogram(STAYS, None), None)
    device = sketch_of([xxh64(visit[0].event.payload.device)])
    return _window(min(happened)), (1, 1, int(stay < 5 * MINUTE), 0, stay, *histogram(STAYS, stay), device)


def _stationary(visit: "Sequence[Delivery]") -> tuple[CellKey, States]:
    newest = max(enumerate(visit), key=lambda pair: (pair[1].received_at, pair[0]))[1]
    return _window(newest.event.happened_ms), (0, 0, 0, 1, 0, *histogram(STAYS, None), None)


def _window(happened_ms: int) -> CellKey:
    at = happened_ms // 1000
    return CellKey(at - at % WINDOW_SECONDS, ())


def _by_device(deliveries: "Sequence[Delivery]") -> "Iterator[list[Delivery]]":
    found: dict[tuple[str, int], list[Delivery]] = {}
    for each in deliveries:
        said = each.event.payload
        found.setdefault((said.device, said.business_day), []).append(each)
    yield from found.values()


def _apart(deliveries: "Sequence[Delivery]", when: Any) -> "Iterator[list[Delivery]]":
    """Parts between which there is more than G."""
    part: list[Delivery] = []
    for each in sorted(deliveries, key=when):
        if part and when(each) - when(part[-1]) > G:
            yield part
            part = []
        part.append(each)
    if part:
        yield part
