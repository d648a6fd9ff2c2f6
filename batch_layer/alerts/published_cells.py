"""The cells of two publications as an audit of alerts needs them: sums of the later one, and what has changed."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import orjson

from batch_layer.ledger.change import differing, digests
from batch_layer.run import Manifest, read_one_block
from master_dataset.errors import PublicationMovedError
from views.alerts.rule_metrics import AlertableView, alertable_views
from views.core.cells import read_block
from views.core.cut import instant, month_of, seconds
from views.core.local_time import ONE_DAY, Span
from views.registry import view_named

if TYPE_CHECKING:
    from cassandra.cluster import Session

_STORES = "SELECT stores FROM run_days WHERE run = ? AND view_name = ? AND day = ?"
_LONGEST = timedelta(hours=27)
"""The longest window (a business day on which clocks are set back), plus the grace period until it is evaluated."""
_KEPT = 4096
"""Stores and days whose sums are kept in memory, about 10 kB each."""
Quarters = Mapping[int, Sequence[int]]
"""A quarter of an hour, in seconds since 1970, to its sums."""


@dataclass(frozen=True)
class PublishedCells:
    """Cells from `oldest` on.

    Attributes:
        before: The manifest that was audited last. If it was garbage collected, everything counts as new.
        after: The manifest that is audited now.
        since: The cut of `before`.
        oldest: The first day.
    """

    session: "Session"
    before: Manifest
    after: Manifest
    since: datetime
    oldest: date
    _known: OrderedDict[tuple[str, str, date], Quarters] = field(default_factory=OrderedDict)

    def sums(self, view: str, store: str, span: Span) -> Sequence[int] | None:
        """See `AuditFacts`. PublicationMovedError if a block was deleted."""
        parts = [sums for _, sums in self._within(view, store, span)]
        return [sum(column) for column in zip(*parts, strict=True)] if parts else None

    def has_cells(self, view: str, store: str, span: Span) -> bool:
        """See `AuditFacts`."""
        return any(True for _ in self._within(view, store, span))

    def touched(self, view: str) -> Mapping[str, set[int]]:
        """See `AuditFacts`."""
        found: dict[str, set[int]] = {}
        runs = [
            {day: run for (name, day), run in manifest.items() if name == view and day >= self.oldest}
            for manifest in (self.before, self.after)
        ]
        before, after = ({day: run for day, run in own.items() if runs[0].get(day) != runs[1].get(day)} for own in runs)
        differences = differing(digests(self.session, view, before), digests(self.session, view, after))
        for store, day in differences.changed | differences.new.keys():
            old, new = self._read(view, store, day, runs[0].get(day)), self._of(view, store, day)
            found.setdefault(store, set()).update(at for at in {*old, *new} if old.get(at) != new.get(at))
        open_since = max(self.since, instant(0) + _LONGEST) - _LONGEST
        for day, run in runs[1].items():
            for store in self._stores(run, view, day) if day >= open_since.date() else ():
                not_over = {at for at in self._of(view, store, day) if at >= seconds(open_since)}
                found.setdefault(store, set()).update(not_over)
        return {store: quarters for store, quarters in found.items() if quarters}

    def _within(self, view: str, store: str, span: Span) -> Iterator[tuple[int, Sequence[int]]]:
        for day in _days(span):
            for at, sums in self._of(view, store, day).items():
                if span.start <= at < span.end:
                    yield at, sums

    def _of(self, view: str, store: str, day: date) -> Quarters:
        key = (view, store, day)
        if key not in self._known:
            run = self.after.get((view, day))
            found = self._read(view, store, day, run)
            if run is not None and not found and store in self._stores(run, view, day):
                message = f"the cells of `{view}` of {day} no longer exist, so alerts cannot be audited"
                raise PublicationMovedError(message, do="galatea rebuild")
            self._known[key] = found
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    def _read(self, view: str, store: str, day: date, run: str | None) -> Quarters:
        if run is None:
            return {}
        key = (view, store, month_of(day), run, day)
        block = read_one_block(self.session, key)
        return _summed(_followed(view), block) if block else {}

    def _stores(self, run: str, view: str, day: date) -> frozenset[str]:
        return _stores(self.session, run, view, day)


@lru_cache(maxsize=256)
def _stores(session: Any, run: str, view: str, day: date) -> frozenset[str]:  # noqa: ANN401 - the driver has no types
    row = session.execute(session.prepare(_STORES), (run, view, day)).one()
    return frozenset(orjson.loads(row.stores)) if row else frozenset()


def _followed(view: str) -> AlertableView:
    return next(each for each in alertable_views(view_named(view).source.topic) if each.view.name == view)


def _summed(followed: AlertableView, block: str) -> Quarters:
    places = [list(followed.view.columns).index(state) for state in followed.states]
    found: dict[int, list[int]] = {}
    for key, states in read_block(followed.view, block):
        own = found.setdefault(key.window, [0] * len(places))
        for at, place in enumerate(places):
            value = states[place]
            own[at] += value if isinstance(value, int) else 0
    return found


def _days(span: Span) -> Iterable[date]:
    day, last = instant(span.start).date(), instant(max(span.start, span.end - 1)).date()
    while day <= last:
        yield day
        day += ONE_DAY
