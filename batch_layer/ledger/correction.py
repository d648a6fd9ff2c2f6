"""One line of the ledger: a state of a cell whose shown value a publication changed. How lines are kept."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Literal, NamedTuple

import orjson

from views.core.aggregates.column import Value

Cause = Literal["waited", "definition changed", "miskeyed", "unexplained", "rolled back"]
EVENTS_NAMED = 20
"""So many events responsible are named in a line; `events_total` counts all."""


class Correction(NamedTuple):
    """`window`: seconds since 1970. `shown`, `corrected`: None where there was no such cell, or no value in it.

    `events`: identities of the events responsible, the first of them.
    """

    window: int
    dimensions: Mapping[str, str | None]
    state: str
    shown: Value
    corrected: Value
    cause: Cause
    events: Sequence[str]
    events_total: int

    @property
    def difference(self) -> int:
        """What was added; a cell that was not there counted nothing. Of sketches it is not told: 0."""
        shown, corrected = (each if isinstance(each, int) else 0 for each in (self.shown, self.corrected))
        return corrected - shown

    def kept(self) -> dict[str, Any]:
        """As it is kept, and as REST shows it."""
        return self._asdict() | {"difference": self.difference}


class Whole(NamedTuple):
    """Nothing was shown of a view, store and day before, and all that the run wrote of it is new, for one cause.

    Not copied line by line: the run's block says it already.
    """

    run: str
    cause: Cause
    events_total: int

    def kept(self) -> dict[str, Any]:
        """As it is kept. Where events waited, every event of that store and day is responsible."""
        return {"whole": self.cause, "run": self.run, "events_total": self.events_total}


def written(lines: Sequence[Correction] | Whole) -> str:
    """The text of a block: of one subject, view, store and day."""
    told: Any = lines.kept() if isinstance(lines, Whole) else [line.kept() for line in lines]
    return orjson.dumps(told).decode()


Summed = Mapping[str, tuple[int, Mapping[str, tuple[int, int]]]]
"""By cause: cells, and by state how many lines and the sum of their differences."""


def summed(lines: Iterable[Correction]) -> Summed:
    """What lines of one view and store add up to."""
    cells: dict[str, set[object]] = {}
    states: dict[str, dict[str, tuple[int, int]]] = {}
    for line in lines:
        cells.setdefault(line.cause, set()).add((line.window, *line.dimensions.items()))
        own = states.setdefault(line.cause, {})
        number, difference = own.get(line.state, (0, 0))
        own[line.state] = number + 1, difference + line.difference
    return {cause: (len(found), states[cause]) for cause, found in cells.items()}


class Totals:
    """What a ledger adds up to, by cause: cells, lines (`rows`), and the difference of each state of each view."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._causes: dict[str, dict[str, Any]] = {}

    def add(self, view: str, some: Summed) -> None:
        """Some more of a view."""
        for cause, (cells, states) in some.items():
            own = self._causes.setdefault(cause, {"cells": 0, "rows": 0, "difference": {}})
            own["cells"] += cells
            for state, (lines, difference) in states.items():
                own["rows"] += lines
                name = f"{view}.{state}"
                own["difference"][name] = own["difference"].get(name, 0) + difference

    def shown(self) -> dict[str, Any]:
        """As it is kept."""
        numbers = {name: sum(own[name] for own in self._causes.values()) for name in ("cells", "rows")}
        return {**numbers, "causes": self._causes}


Place = tuple[str, date]
"""(store, UTC day of the window)."""
