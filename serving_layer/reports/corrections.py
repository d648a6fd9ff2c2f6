"""What publications have changed in the numbers that earlier reports showed, by store and date."""

import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

from master_dataset.registry.stores import Store, currency
from serving_layer.admin.corrections import CorrectionsRequest, CorrectionsService
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.errors import DefinitionNotPublishedError, PublicationCollectedError
from serving_layer.off_loop import off_loop
from serving_layer.pages.language import gettext_noop
from serving_layer.query.render import money
from serving_layer.reports.period import ReportPeriod
from serving_layer.responses.encoding import Number, iso_instant
from serving_layer.responses.publications import Correction
from serving_layer.responses.reports import ReportCorrection, ReportCorrections
from serving_layer.store.readers import PublishedReader
from serving_layer.timeline import zone_named
from views.core.cut import seconds
from views.core.local_time import BusinessDays

STATES = {
    "sales": {"gross_sales": ("net_sales", 1), "returns_value": ("net_sales", -1), "receipts": ("receipts", 1)},
    "traffic": {"people_in": ("visitors", 1)},
}
"""By view and state, the figure that it is a part of, and its sign."""
REASONS = {
    "waited": gettext_noop("events arrived too late to be counted live"),
    "definition changed": gettext_noop("the definition of the figure changed"),
    "miskeyed": gettext_noop("an event had been counted twice"),
    "unexplained": gettext_noop("the cause is not known; your operator has an alarm"),
    "rolled back": gettext_noop("an older publication was restored"),
}
SHOWN = 10
PUBLICATIONS_AT_ONCE, PAGE_SIZE, MOST_PAGES = 200, 1000, 400
"""Pages of ledgers that one report reads at most."""
MOST_SECONDS = 5.0
"""For how long one report reads ledgers: after a bulk load they have very many rows."""
CELLS_PER_ROW = 5
"""Cells that take as long to merge as a row takes to add."""


class _Key(NamedTuple):
    """`currency`: None for visitors, who have none."""

    day: date
    store: str
    currency: str | None
    cause: str


_Found = dict[_Key, dict[str, int]]
"""The difference of each figure."""


async def corrections_of(
    period: ReportPeriod,
    stores: Mapping[str, Store],
    published: PublishedReader,
    ledgers: CorrectionsService,
    now: datetime,
) -> ReportCorrections:
    """The corrections of dates before the period.

    Args:
        period: of the report; says which publications count.
        stores: those of the report, by id.
        published: lists publications.
        ledgers: reads what they corrected.
        now: the current time.

    Raises:
        CassandraUnavailableError: they cannot be read.
    """
    since, until = period.published(now)
    found: _Found = {}
    reader = _LedgerPages(ledgers, stores.keys())
    async for number in _publications(published, since, until):
        if reader.is_at_end:
            reader.is_complete = False
            break
        for view in STATES:
            async for rows in reader.rows(number, view):
                added = partial(_sums, rows, stores, period.start)
                _add(found, await off_loop(len(rows) * CELLS_PER_ROW, added))
    return _response(found, stores, reader, since, until)


class _LedgerPages:
    """Reads ledgers, as many pages and for as long as one report may. `is_complete`: it has read all of them."""

    def __init__(self, ledgers: CorrectionsService, stores: Collection[str]) -> None:
        self._ledgers, self._stores = ledgers, stores
        self._left, self._until = MOST_PAGES, time.monotonic() + MOST_SECONDS
        self.is_complete = True

    @property
    def is_at_end(self) -> bool:
        """Whether it may read no further page."""
        return not self._left or time.monotonic() >= self._until

    async def rows(self, publication: int, view: str) -> AsyncIterator[Sequence[Correction]]:
        """The corrections of one publication and view, page by page.

        The first publication corrects nothing: before, readers were shown that history is loading.
        """
        request = CorrectionsRequest(publication, view=view, limit=PAGE_SIZE, among=self._stores)
        while not self.is_at_end:
            self._left -= 1
            try:
                page, following = await self._ledgers.page(request)
            except (PublicationCollectedError, DefinitionNotPublishedError):
                self.is_complete = False
                return
            if page.base == 0:
                return
            self.is_complete &= not page.pending
            yield page.corrections
            if following is None:
                return
            request = replace(request, start=following)
        self.is_complete = False


async def _publications(published: PublishedReader, since: datetime, until: datetime) -> AsyncIterator[int]:
    before = MAX_PUBLICATION
    while entries := await published.history(before, PUBLICATIONS_AT_ONCE):
        for entry in entries:
            at = entry.published_at
            if at is not None and at < since:
                return
            if entry.publication and at is not None and at < until:  # 0 has no cells, so it corrects nothing
                yield entry.publication
        before = entries[-1].publication


def _sums(rows: Collection[Correction], stores: Mapping[str, Store], before: date) -> _Found:
    """The differences of some rows. The rows of a window follow each other, so that its day is computed once."""
    found: _Found = {}
    at, day = ("", ""), before
    for row in rows:
        known = STATES[row.view].get(row.state)
        if known is None or not isinstance(row.difference, int):
            continue
        store = stores[row.store]
        if at != (row.store, row.window):
            at, day = (row.store, row.window), business_day_of(store, row.window)
        if day < before:
            figure, sign = known
            code = row.dimensions.get("currency") or store.currency.code if row.view == "sales" else None
            sums = found.setdefault(_Key(day, row.store, code, row.cause), {})
            sums[figure] = sums.get(figure, 0) + sign * row.difference
    return found


def _add(found: _Found, added: _Found) -> None:
    for key, differences in added.items():
        sums = found.setdefault(key, {})
        for figure, difference in differences.items():
            sums[figure] = sums.get(figure, 0) + difference


def business_day_of(store: Store, window: str) -> date:
    """The business day of a store that a window is in."""
    return BusinessDays.of(store, zone_named(store.timezone)).day_of(seconds(datetime.fromisoformat(window)))


def _response(
    found: _Found, stores: Mapping[str, Store], reader: _LedgerPages, since: datetime, until: datetime
) -> ReportCorrections:
    changed = {key: sums for key, sums in found.items() if any(sums.values())}
    largest = _largest(changed)[:SHOWN]
    rows = [_correction(key, changed[key], stores[key.store]) for key in largest]
    rows.sort(key=lambda row: row.date, reverse=True)
    return ReportCorrections(iso_instant(since), iso_instant(until), len(changed), reader.is_complete, rows)


def _largest(changed: _Found) -> list[_Key]:
    """The largest first, one of each currency and of visitors in turn: only amounts with one currency compare."""
    ranked: dict[str | None, list[_Key]] = {}
    for key in sorted(changed, key=lambda key: _size(changed[key]), reverse=True):
        ranked.setdefault(key.currency, []).append(key)
    return [key for turn in zip_longest(*ranked.values()) for key in turn if key is not None]


def _size(sums: Mapping[str, int]) -> tuple[int, int]:
    """How much a correction is, beside others of the same kind: amounts or visitors first, then receipts."""
    return abs(sums.get("net_sales", 0) or sums.get("visitors", 0)), abs(sums.get("receipts", 0))


def _correction(key: _Key, sums: Mapping[str, int], store: Store) -> ReportCorrection:
    net: Number | None = None
    if key.currency is not None:
        net = money(sums.get("net_sales", 0), currency(key.currency).digits)
    return ReportCorrection(
        store=store.id,
        name=store.name or f"Store {store.id}",
        date=key.day,
        currency=key.currency,
        net_sales=net,
        receipts=sums.get("receipts", 0),
        visitors=sums.get("visitors", 0),
        reason=REASONS.get(key.cause, key.cause),
    )
