"""Both layers over a list of deliveries, naively: every answer from scratch, by the rules R4 to R7 and nothing else."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from master_dataset.parsing.results import Event
from tests.support import visits
from tests.support.rows import WINDOW_SECONDS, contributions
from views.core import States, View
from views.core.cells import CellKey
from views.core.cut import epoch_of
from views.registry import registered_views

OLDEST = timedelta(hours=23)
Cells = dict[CellKey, States]


@dataclass(frozen=True)
class Delivery:
    """An event as the broker stamped it. An identity may be delivered many times; the first delivery is the event."""

    event: Event[Any]
    received_at: datetime
    value: bytes = b"{}"
    micro_batch: int = 0

    @property
    def is_old(self) -> bool:
        """Too old for speed, which may have forgotten it (R5)."""
        return self.received_at - self.event.happened_at > OLDEST


def firsts(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """What batch counts: over everything archived, the first delivery of each identity (R4)."""
    seen: set[tuple[str, str]] = set()
    for delivery in deliveries:
        identity = delivery.event.topic, delivery.event.identity
        if identity not in seen:
            seen.add(identity)
            yield delivery


def speed_firsts(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """What speed takes for new: what is too old to be looked up, and what it never met."""
    seen: set[tuple[str, str]] = set()
    for delivery in deliveries:
        identity = delivery.event.topic, delivery.event.identity
        if delivery.is_old:
            yield delivery
        elif identity not in seen:
            seen.add(identity)
            yield delivery


def batch_cells(view: View, deliveries: Sequence[Delivery], cut: datetime, epoch: timedelta) -> Cells:
    """Everything of one store received before the cut."""
    own = _of(view, deliveries)
    kept = [each for each in firsts(own) if epoch_of(each.received_at, epoch) < cut]
    if view.counts_visits:
        known = [(key, states) for at, key, states in visits.of_bundles(own) if epoch_of(at, epoch) < cut]
        return _merged(view, [*known, *visits.of_late(kept)])
    return _summed(view, kept)


def speed_rows(view: View, deliveries: Sequence[Delivery], epoch: timedelta) -> dict[datetime, Cells]:
    """What is added per receipt epoch, by what is young enough."""
    own = _of(view, deliveries)
    if view.counts_visits:
        known: dict[datetime, list[tuple[CellKey, States]]] = {}
        for at, key, states in visits.of_bundles(own):
            known.setdefault(epoch_of(at, epoch), []).append((key, states))
        return {at: _merged(view, found) for at, found in known.items()}
    rows: dict[datetime, list[Delivery]] = {}
    for each in speed_firsts(own):
        if not each.is_old:
            rows.setdefault(epoch_of(each.received_at, epoch), []).append(each)
    return {at: _summed(view, of_epoch) for at, of_epoch in rows.items()}


def waiting_rows(deliveries: Sequence[Delivery], epoch: timedelta) -> dict[datetime, Cells]:
    """How many old events are left to batch, per receipt epoch; an old duplicate counts too (R6).

    For visits also what came too late for a bundle.
    """
    of_visits = {view.source.topic: view.name for view in registered_views() if view.counts_visits}
    rows: dict[datetime, Cells] = {}
    for each in speed_firsts(deliveries):
        topic = each.event.topic
        names = [topic] if each.is_old else []
        if topic in of_visits and not visits.is_fresh(each):
            names.append(of_visits[topic])
        at = each.event.happened_ms // 1000
        cells = rows.setdefault(epoch_of(each.received_at, epoch), {}) if names else {}
        for name in names:
            key = CellKey(at - at % WINDOW_SECONDS, (name,))
            [before] = cells.get(key, (0,))
            cells[key] = (int(before or 0) + 1,)
    return rows


def _of(view: View, deliveries: Iterable[Delivery]) -> list[Delivery]:
    return [each for each in deliveries if each.event.topic == view.source.topic]


def _summed(view: View, deliveries: Iterable[Delivery]) -> Cells:
    return _merged(view, (cell for each in deliveries for cell in contributions(view, each.event)))


def _merged(view: View, found: Iterable[tuple[CellKey, States]]) -> Cells:
    cells: Cells = {}
    for key, states in found:
        cells[key] = view.merge(cells[key], states) if key in cells else states
    return cells
