"""How many of the events that an answer is made of are odd, by what is odd about them."""

from collections import Counter
from collections.abc import Callable, Sequence

from master_dataset.registry.stores import Store
from views.core import View
from views.core.local_time import STEP, open_windows
from views.core.merge import Cell
from views.core.view import flags_counted

OUTSIDE_OPENING_HOURS = "outside_opening_hours"
_RECEIPTS = "receipts"


def event_flags(store: Store, view: View, cells: Sequence[Cell], counts_in: Callable[[int], bool]) -> Counter[str]:
    """Of the cells whose windows count; empty if the view counts no flags.

    Hours may be said later than receipts come, so that those outside are found when they are asked for.
    """
    flags, found = flags_counted(view), Counter[str]()
    counted = [cell for cell in cells if counts_in(cell.key.window)] if flags else []
    for flag, place in flags.items():
        found[flag] = sum(cell.merged[place] for cell in counted)  # type: ignore[misc]  # a count is a whole number
    if counted and _RECEIPTS in view.columns and store.opening_hours:
        windows = [cell.key.window for cell in counted]
        is_open, place = open_windows(store, min(windows), max(windows) + STEP), list(view.columns).index(_RECEIPTS)
        closed = (cell.merged[place] for cell in counted if cell.key.window not in is_open)
        found[OUTSIDE_OPENING_HOURS] = sum(closed)  # type: ignore[arg-type]  # likewise
    return +found
