"""What an audit of alerts reads of two publications: sums by quarter, and the quarters that are others than before."""

from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from batch_layer.alerts.published_cells import PublishedCells
from batch_layer.run import digest_of
from master_dataset.errors import PublicationMovedError
from views.alerts.rule_metrics import alertable_views
from views.core.cells import CellKey, write_block
from views.core.cut import seconds
from views.core.local_time import Span
from views.sales import SALES

MONDAY, TUESDAY = date(2026, 11, 16), date(2026, 11, 17)
NOON = seconds(datetime(2026, 11, 17, 12, tzinfo=UTC))
QUARTER = 900
LATER = datetime(2026, 11, 20, tzinfo=UTC)
[FOLLOWED] = alertable_views("pos_transactions")
RECEIPTS = FOLLOWED.states.index("receipts")


class Blocks:
    """A session that knows blocks: (run, store, day) to receipts by quarter and currency."""

    def __init__(self, cells: dict[tuple[str, str, date], dict[tuple[int, str], int]]) -> None:
        self.blocks = {place: self._block(own) for place, own in cells.items()}
        self.named = set(self.blocks)

    @staticmethod
    def _block(own: dict[tuple[int, str], int]) -> str:
        states = [[number if name == "receipts" else 0 for name in SALES.columns] for number in own.values()]
        keys = [CellKey(at, (currency,)) for at, currency in own]
        return write_block(SALES, [(key, tuple(each)) for key, each in zip(keys, states, strict=True)])

    def prepare(self, query: str) -> str:
        return query

    def execute(self, query: str, values: tuple[Any, ...]) -> Any:
        if "batch_cells" in query:
            _, store, _, run, day = values
            block = self.blocks.get((run, store, day))
            return SimpleNamespace(one=lambda: block and SimpleNamespace(block=block))
        run, days = values[0], {day for run, _, day in self.named if run == values[0]}
        rows = [self._row(run, day) for day in sorted(days) if day == values[-1] or len(values) == 2]
        return Rows(rows)

    def _row(self, run: str, day: date) -> Any:
        stores = sorted(store for name, store, of in self.named if (name, of) == (run, day))
        digests: dict[str, object] = {
            each: (digest_of(self.blocks.get((run, each, day), "")), 1, []) for each in stores
        }
        column = SimpleNamespace(date=lambda: day)
        return SimpleNamespace(day=column, stores=orjson.dumps(stores), digests=orjson.dumps(digests))


class Rows(list[Any]):
    def one(self) -> Any:
        return self[0] if self else None


def cells_of(session: Blocks, before: str, after: str, since: datetime = LATER, oldest: date = MONDAY) -> Any:
    old, new = ({("sales", day): run for day in (MONDAY, TUESDAY) if run} for run in (before, after))
    return PublishedCells(session, old, new, since, oldest)


def test_sums_are_over_every_dimension_of_the_quarters_in_a_window() -> None:
    session = Blocks(
        {
            ("sums", "1", TUESDAY): {
                (NOON, "EUR"): 2,
                (NOON, "CZK"): 3,
                (NOON + QUARTER, "EUR"): 4,
                (NOON + 3600, "EUR"): 9,
            }
        }
    )
    cells = cells_of(session, "", "sums")

    hour = cells.sums("sales", "1", Span(NOON, NOON + 3600))

    assert hour[RECEIPTS] == 9
    assert cells.sums("sales", "1", Span(NOON - 3600, NOON)) is None
    assert cells.sums("sales", "2", Span(NOON, NOON + 3600)) is None
    assert cells.has_cells("sales", "1", Span(NOON + 3600, NOON + 3601))


def test_touched_are_the_quarters_whose_sums_are_others_and_no_more() -> None:
    session = Blocks(
        {
            ("old", "1", TUESDAY): {(NOON, "EUR"): 2, (NOON + QUARTER, "EUR"): 4},
            ("new", "1", TUESDAY): {(NOON, "EUR"): 2, (NOON + QUARTER, "EUR"): 5},
            ("old", "2", TUESDAY): {(NOON, "EUR"): 2},
            ("new", "2", TUESDAY): {(NOON, "EUR"): 2},
            ("new", "3", MONDAY): {(NOON - 86400, "EUR"): 1},
        }
    )

    assert cells_of(session, "old", "new").touched("sales") == {"1": {NOON + QUARTER}, "3": {NOON - 86400}}
    assert cells_of(session, "old", "new", oldest=TUESDAY).touched("sales") == {"1": {NOON + QUARTER}}
    assert cells_of(session, "new", "new").touched("sales") == {}


def test_quarters_whose_windows_were_not_over_are_touched_though_nothing_came() -> None:
    session = Blocks({("open", "1", TUESDAY): {(NOON, "EUR"): 2}})
    noon = datetime(2026, 11, 17, 12, tzinfo=UTC)

    assert cells_of(session, "open", "open", since=noon).touched("sales") == {"1": {NOON}}


def test_a_block_that_is_named_and_gone_is_an_error_and_never_no_event() -> None:
    session = Blocks({("gone", "1", TUESDAY): {(NOON, "EUR"): 2}})
    session.blocks.clear()

    with pytest.raises(PublicationMovedError, match="no longer exist"):
        cells_of(session, "", "gone").sums("sales", "1", Span(NOON, NOON + 3600))
