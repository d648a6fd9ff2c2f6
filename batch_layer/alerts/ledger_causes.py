"""What the correction ledgers of some publications say of the cells of a window."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from views.alerts.alert import Cause
from views.alerts.facts import Question
from views.core.business_days import Span
from views.core.cut import instant

if TYPE_CHECKING:
    from cassandra.cluster import Session

_LEDGER = "SELECT lines, written_at FROM ledgers WHERE subject = ?"
_BLOCK = "SELECT block FROM corrections WHERE subject = ? AND view_name = ? AND store = ? AND day = ?"
_GRAVEST: Sequence[Cause] = ("unexplained", "miskeyed", "definition changed", "rolled back", "waited")
_SOONER = timedelta(days=1)
"""An event may be an hour ahead of its receipt, and no clock is off by as much as the rest."""


@dataclass(frozen=True)
class LedgerCauses:
    """Of publications `first` to `last`, as far as their ledgers are written."""

    session: "Session"
    first: int
    last: int

    def causes(self, asked: Collection[Question]) -> Mapping[Question, Cause]:
        """Of each question the gravest there is; none of one of whose windows no cell was corrected."""
        found: dict[Question, set[str]] = {each: set() for each in asked}
        places: dict[tuple[str, str, date], list[tuple[Question, Span]]] = {}
        for each in asked:
            for span in each.spans:
                for day in {instant(at).date() for at in (span.start, span.end - 1)}:  # no window is longer than two
                    places.setdefault((each.view, each.store, day), []).append((each, span))
        since_s = min((span.start for each in asked for span in each.spans), default=0)
        for lines in self._written(instant(since_s) - _SOONER) if asked else ():
            for place, own in places.items():
                block = self._block(lines, *place)
                for each, span in own:
                    found[each].update(_within(block, span))
        graver = {each: next((cause for cause in _GRAVEST if cause in causes), None) for each, causes in found.items()}
        return {each: cause for each, cause in graver.items() if cause is not None}

    def _written(self, since: datetime) -> Iterator[str]:
        """Subjects of lines, newest first. What was written before the windows began says nothing of them."""
        for number in range(self.last, self.first - 1, -1):
            row = self.session.execute(self.session.prepare(_LEDGER), (str(number),)).one()
            if row and row.written_at and row.written_at.replace(tzinfo=UTC) < since:
                return
            if row and row.lines:
                yield row.lines

    def _block(self, lines: str, view: str, store: str, day: date) -> Any:  # noqa: ANN401 - of two forms
        row = self.session.execute(self.session.prepare(_BLOCK), (lines, view, store, day)).one()
        return orjson.loads(row.block) if row else []


def _within(told: Any, span: Span) -> Iterator[str]:  # noqa: ANN401 - likewise
    if isinstance(told, Mapping):  # one line that stands for the whole day
        yield told["whole"]
        return
    yield from (line["cause"] for line in told if span.start <= line["window"] < span.end)
