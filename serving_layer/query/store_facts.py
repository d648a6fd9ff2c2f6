"""What a formula may take from the store itself: what the registry says of it, and how much time counts."""

from decimal import Decimal
from fractions import Fraction

from master_dataset.registry.stores import Store
from serving_layer.query.period_data import SideRead
from views.core.formula import Worth
from views.core.local_time import STEP, Span

WINDOWS_OF_AN_HOUR = 3600 // STEP
STEP_MS = STEP * 1000


class StoreFacts:
    """Per point. `names`: those that are needed."""

    def __init__(self, store: Store, read: SideRead, names: frozenset[str]) -> None:
        """Nothing is counted that no formula asks for."""
        side, self._names = read.side, names
        self._same = {
            "store.floor_m2": _fraction(store.floor_m2),
            "store.conversion_target": _fraction(store.conversion_target),
        }
        begun = Span(side.timeline.start, min(side.timeline.end, side.begun))
        is_open = "store.open_hours" in names and side.only is not None
        self._open = side.counts() if is_open else {}
        self._selected = side.counts(begun) if "store.selected_ms" in names else {}
        self._expected = read.sensors.expected_ms(side) if "store.expected_ms" in names else {}

    def at(self, point: int) -> dict[str, Worth]:
        """The facts of one point."""
        counted = {
            "store.open_hours": Fraction(self._open.get(point, 0), WINDOWS_OF_AN_HOUR),
            "store.selected_ms": Fraction(self._selected.get(point, 0) * STEP_MS),
            "store.expected_ms": Fraction(self._expected.get(point, 0)),
        }
        return {name: worth for name, worth in (self._same | counted).items() if name in self._names}


def _fraction(number: Decimal | int | None) -> Fraction | None:
    return None if number is None else Fraction(str(number))
