"""The corrections of a publication or preview, page by page, in order of view, store, day and row.

Blocks are read a few at a time, so a page needs as much memory as its rows and the largest block.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import orjson

from master_dataset.errors import UnknownNameError
from serving_layer.admin.ledger import BlockKey, Ledger, LedgerBlock, LedgerReader
from serving_layer.admin.publications import MAX_PUBLICATION, RecomputeReader, require_recompute
from serving_layer.errors import BadQuestionError, DefinitionNotPublishedError, PublicationCollectedError
from serving_layer.responses.encoding import iso_epoch, iso_instant
from serving_layer.responses.publications import Correction, CorrectionPage, CorrectionTotals
from serving_layer.store.readers import Readers
from serving_layer.store.snapshot import publication_entry
from views.control.recompute import Cause
from views.core import View
from views.core.cells import read_block
from views.core.local_time import ONE_DAY


def rows_of_new_block(view: View, block: str, cause: str, events_total: int) -> Iterator[dict[str, Any]]:
    """A row per cell and state with a value, in the block's order; which events are in which cell is not kept.

    DefinitionNotPublishedError if the block was written for another definition of the view.
    """
    try:
        for key, states in read_block(view, block):
            dimensions = dict(zip(view.dimensions, key.dimensions, strict=True))
            for state, value in zip(view.columns, states, strict=True):
                if value is not None:
                    yield {
                        "window": key.window,
                        "dimensions": dimensions,
                        "state": state,
                        "shown": None,
                        "corrected": value,
                        "difference": value,
                        "cause": cause,
                        "events": [],
                        "events_total": events_total,
                    }
    except KeyError as error:
        message = f"The view `{view.name}` has a state {error} now, which those cells do not have."
        raise DefinitionNotPublishedError(message, do="Request another `view`, or for a newer publication.") from error


Row = dict[str, Any]
OTHER, AS_BEFORE = (
    "`after` belongs to another request.",
    "Repeat the arguments of the page before, or leave `after` out.",
)
READ_AT_ONCE, READ_AT_MOST = 16, 2000
"""Blocks: of one read, and of one page. A page that looks for a rare cause may be empty and still have a next one."""


class CorrectionPosition(NamedTuple):
    """Of one correction, as a row of its day's block; the next page begins there. `subject` as in Ledger."""

    subject: str
    view: str
    store: str
    day: date
    row: int


@dataclass(frozen=True)
class CorrectionsRequest:
    """Without a publication or a recompute: the newest publication. `start`: None for the first page.

    `among`: of these stores only; what others have is neither decoded nor counted. None for all. `state`: of a view.
    """

    publication: int | None = None
    recompute: str | None = None
    view: str | None = None
    store: str | None = None
    cause: Cause | None = None
    limit: int = 100
    start: CorrectionPosition | None = None
    among: Collection[str] | None = None
    state: str | None = None


class _Subject(NamedTuple):
    key: str
    publication: int | None
    recompute: str | None
    is_awaited: bool


class CorrectionsService:
    """Reads the ledgers of one deployment."""

    def __init__(
        self, readers: Readers, ledgers: LedgerReader, recomputes: RecomputeReader, views: Mapping[str, View]
    ) -> None:
        """`views`: the registered ones by name."""
        self._readers, self._ledgers, self._recomputes, self._views = readers, ledgers, recomputes, views

    async def page(self, ask: CorrectionsRequest) -> tuple[CorrectionPage, CorrectionPosition | None]:
        """A page and where the next one begins. UnknownNameError, BadQuestionError, PublicationCollectedError."""
        views = self._views_of(ask)
        subject = await self._subject(ask)
        if ask.start is not None and ask.start.subject != subject.key:
            raise BadQuestionError(OTHER, do=AS_BEFORE)
        ledger = await self._ledgers.ledger(subject.key)
        rows: list[Correction] = []
        following = None
        if ledger is not None and _may_have(ledger, ask):
            rows, following = await self._rows(ledger, views, ask)
        page = CorrectionPage(
            publication=subject.publication,
            recompute=subject.recompute,
            base=ledger.base if ledger else None,
            written_at=iso_instant(ledger.written_at) if ledger else None,
            pending=ledger is None and subject.is_awaited,
            totals=msgspec.convert(ledger.totals, CorrectionTotals) if ledger else None,
            corrections=rows,
            next=None,
        )
        return page, following

    def _views_of(self, ask: CorrectionsRequest) -> list[str]:
        """Those that are left to read, in order."""
        if ask.view is not None and ask.view not in self._views:
            raise UnknownNameError("view", ask.view, self._views)
        views = sorted(self._views) if ask.view is None else [ask.view]
        if ask.state is not None:
            states = {state for name in views for state in self._views[name].columns}
            if ask.state not in states:
                raise UnknownNameError("state", ask.state, states)
            views = [name for name in views if ask.state in self._views[name].columns]
        if ask.start is None:
            return views
        if ask.start.view not in views or ask.store not in (None, ask.start.store):
            raise BadQuestionError(OTHER, do=AS_BEFORE)
        return views[views.index(ask.start.view) :]

    async def _subject(self, ask: CorrectionsRequest) -> _Subject:
        if ask.recompute is not None and ask.publication is not None:
            raise BadQuestionError("`publication` and `recompute` cannot be combined.", do="Leave one of them out.")
        if ask.recompute is not None:
            record = await require_recompute(self._recomputes, ask.recompute)
            key = str(record.publication) if record.publication else record.id
            return _Subject(key, record.publication, record.id, record.state not in {"unchanged", "failed"})
        number = ask.publication
        if number is None and ask.start is not None and ask.start.subject.isdecimal():
            number = min(int(ask.start.subject), MAX_PUBLICATION)  # the newest one of the first page
        if number is None:
            number = (await self._readers.published.pointer()).publication
        await publication_entry(self._readers.published, number)
        return _Subject(str(number), number, None, is_awaited=True)

    async def _rows(
        self, ledger: Ledger, views: list[str], ask: CorrectionsRequest
    ) -> tuple[list[Correction], CorrectionPosition | None]:
        page: list[Correction] = []
        read = 0
        async for view, block, skipped in self._blocks(ledger.lines, views, ask):
            if read == READ_AT_MOST:
                return page, CorrectionPosition(ledger.subject, view.name, block.store, block.day, skipped)
            read += 1
            if ask.among is not None and block.store not in ask.among:
                continue
            rows = islice(enumerate(await self._rows_of(view, block, ask.cause)), skipped, None)
            for number, row in rows:
                if ask.cause not in (None, row["cause"]) or ask.state not in (None, row["state"]):
                    continue
                if len(page) == ask.limit:
                    return page, CorrectionPosition(ledger.subject, view.name, block.store, block.day, number)
                page.append(_correction(view, block, row))
        return page, None

    async def _blocks(
        self, lines: str, views: list[str], ask: CorrectionsRequest
    ) -> AsyncIterator[tuple[View, LedgerBlock, int]]:
        """With how many rows of the block were on the page before."""
        for name in views:
            start, skipped = BlockKey(ask.store or "", date.min), 0
            if ask.start is not None and ask.start.view == name:
                start, skipped = BlockKey(ask.start.store, ask.start.day), ask.start.row
            while True:
                blocks = await self._ledgers.ledger_blocks(lines, name, ask.store, start, READ_AT_ONCE)
                for block in blocks:
                    is_first = (block.store, block.day) == start
                    yield self._views[name], block, skipped if is_first else 0
                if len(blocks) < READ_AT_ONCE:
                    break
                start, skipped = BlockKey(blocks[-1].store, blocks[-1].day + ONE_DAY), 0

    async def _rows_of(self, view: View, block: LedgerBlock, cause: Cause | None) -> Iterator[Row]:
        """Its rows as they are kept, or those that its run's cells stand for."""
        rows: list[Row] | dict[str, Any] = orjson.loads(block.block)
        if isinstance(rows, list):
            return iter(rows)
        if cause not in (None, rows["whole"]):
            return iter(())
        cells = await self._readers.batch.blocks(view.name, block.store, rows["run"], [block.day])
        if block.day not in cells:
            message = f"The cells of `{view.name}` on {block.day} that were new then were collected."
            raise PublicationCollectedError(
                message, do="Request another `view`, `store` or `cause`; `totals` are kept."
            )
        return rows_of_new_block(view, cells[block.day], rows["whole"], rows["events_total"])


def _may_have(ledger: Ledger, ask: CorrectionsRequest) -> bool:
    return ask.cause is None or ledger.cells(ask.cause) > 0


def _correction(view: View, block: LedgerBlock, row: Row) -> Correction:
    return Correction(**{"view": view.name, "store": block.store, **row, "window": iso_epoch(row["window"])})
