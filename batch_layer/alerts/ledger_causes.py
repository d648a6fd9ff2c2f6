"""What the correction ledgers of some publications say of the cells of a window."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import orjson

from views.alerts.alert import Cause
from views.core.business_days import Span
from views.core.cut import instant

if TYPE_CHECKING:
    from cassandra.cluster import Session

_LINES = "SELECT lines FROM ledgers WHERE subject = ?"
_BLOCK = "SELECT block FROM corrections WHERE subject = ? AND view_name = ? AND store = ? AND day = ?"
_GRAVEST: Sequence[Cause] = ("unexplained", "miskeyed", "definition changed", "rolled back", "waited")


@dataclass(frozen=True)
class LedgerCauses:
    """Of publications `first` to `last`, as far as their ledgers are written."""

    session: "Session"
    first: int
    last: int

    def cause(self, view: str, store: str, spans: Sequence[Span]) -> Cause | None:
        """The gravest there is; None if no cell of these windows was corrected."""
        found = {cause for span in spans for cause in self._causes(view, store, span)}
        return next((cause for cause in _GRAVEST if cause in found), None)

    def _causes(self, view: str, store: str, span: Span) -> Iterator[str]:
        days = {instant(at).date() for at in (span.start, span.end - 1)}  # no window is longer than two
        for number in range(self.first, self.last + 1):
            row = self.session.execute(self.session.prepare(_LINES), (str(number),)).one()
            for day in sorted(days) if row and row.lines else ():
                yield from self._of_day(row.lines, view, store, day, span)

    def _of_day(self, lines: str, view: str, store: str, day: date, span: Span) -> Iterator[str]:
        row = self.session.execute(self.session.prepare(_BLOCK), (lines, view, store, day)).one()
        told: Any = orjson.loads(row.block) if row else []
        if isinstance(told, Mapping):  # one line that stands for the whole day
            yield told["whole"]
            return
        yield from (line["cause"] for line in told if span.start <= line["window"] < span.end)
