"""Both layers over a list of deliveries, naively: every answer from scratch, by the rules R4 to R7 and nothing else."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from master_dataset.parsing.event import Event
from master_dataset.sources.pos_transactions import Receipt
from tests.world.rows import WINDOW_SECONDS, contributions
from views.core import States, View
from views.core.cells import CellKey
from views.core.cut import epoch_of

OLDEST = timedelta(hours=23)


@dataclass(frozen=True)
class Delivery:
    """An event as the broker stamped it. An identity may be delivered many times; the first delivery is the event."""

    event: Event[Receipt]
    received_at: datetime

    @property
    def is_old(self) -> bool:
        """Too old for speed, which may have forgotten it (R5)."""
        return self.received_at - self.event.happened_at > OLDEST


def firsts(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """What batch counts: over everything archived, the first delivery of each identity (R4)."""
    seen: set[str] = set()
    for delivery in deliveries:
        if delivery.event.identity not in seen:
            seen.add(delivery.event.identity)
            yield delivery


def speed_firsts(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """What speed takes for new: what is too old to be looked up, and what it never met."""
    seen: set[str] = set()
    for delivery in deliveries:
        if delivery.is_old:
            yield delivery
        elif delivery.event.identity not in seen:
            seen.add(delivery.event.identity)
            yield delivery


def batch_cells(view: View, deliveries: Sequence[Delivery], cut: datetime, epoch: timedelta) -> dict[CellKey, States]:
    """Everything of one store received before the cut."""
    kept = (each for each in firsts(deliveries) if epoch_of(each.received_at, epoch) < cut)
    return _summed(view, kept)


def speed_rows(view: View, deliveries: Sequence[Delivery], epoch: timedelta) -> dict[datetime, dict[CellKey, States]]:
    """What is added per receipt epoch, by what is young enough."""
    rows: dict[datetime, list[Delivery]] = {}
    for each in speed_firsts(deliveries):
        if not each.is_old:
            rows.setdefault(epoch_of(each.received_at, epoch), []).append(each)
    return {at: _summed(view, of_epoch) for at, of_epoch in rows.items()}


def waiting_rows(deliveries: Sequence[Delivery], epoch: timedelta) -> dict[datetime, dict[CellKey, States]]:
    """How many old events are left to batch, per receipt epoch; an old duplicate counts too (R6)."""
    rows: dict[datetime, dict[CellKey, States]] = {}
    for each in speed_firsts(deliveries):
        if each.is_old:
            at = each.event.happened_ms // 1000
            cells = rows.setdefault(epoch_of(each.received_at, epoch), {})
            key = CellKey(at - at % WINDOW_SECONDS, (each.event.topic,))
            [before] = cells.get(key, (0,))
            cells[key] = ((before or 0) + 1,)
    return rows


def _summed(view: View, deliveries: Iterable[Delivery]) -> dict[CellKey, States]:
    cells: dict[CellKey, States] = {}
    for each in deliveries:
        for key, states in contributions(view, each.event):
            cells[key] = view.merge(cells[key], states) if key in cells else states
    return cells
