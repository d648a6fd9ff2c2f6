"""What ledgers say of cells of windows, read once however many corrections ask."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import orjson

from batch_layer.alerts.corrected_facts import LedgerCauses
from views.alerts.audit_facts import CauseQuery
from views.core.cut import seconds
from views.core.local_time import Span

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = Span(seconds(NOON), seconds(NOON) + 3600)
QUERY = CauseQuery("sales", "1", (HOUR,), 0)


class Ledgers:
    """A session with ledgers of publications, by number: when each was written, and the blocks of store 1."""

    def __init__(self, ledgers: Mapping[int, tuple[datetime, Mapping[date, object]]]) -> None:
        self._ledgers = ledgers
        self.read: list[tuple[Any, ...]] = []

    def prepare(self, cql: str) -> str:
        return cql

    def execute(self, _: str, values: tuple[Any, ...]) -> Any:
        self.read.append(values)
        written_at, blocks = self._ledgers.get(int(values[0]), (None, {}))
        if len(values) == 1:
            row = SimpleNamespace(lines=values[0], written_at=written_at.replace(tzinfo=None)) if written_at else None
        else:
            block = blocks.get(values[3]) if values[2] == "1" else None
            row = SimpleNamespace(block=orjson.dumps(block).decode()) if block else None
        return SimpleNamespace(one=lambda: row)

    def causes(self, *queries: CauseQuery, first: int = 1) -> Mapping[CauseQuery, str]:
        session: Any = self
        return LedgerCauses(session, first, max(self._ledgers)).causes(set(queries))


def line(cause: str, at: int = HOUR.start) -> Mapping[str, object]:
    return {"window": at, "cause": cause}


def test_the_gravest_of_all_ledgers_is_named_and_lines_of_other_windows_are_not() -> None:
    day = NOON.date()
    ledgers = Ledgers(
        {
            1: (NOON, {day: [line("waited")]}),
            2: (NOON, {day: [line("miskeyed"), line("unexplained", HOUR.end)]}),
            3: (NOON, {day: {"whole": "definition changed"}}),
        }
    )

    found = ledgers.causes(QUERY, QUERY._replace(store="2"))

    assert found == {QUERY: "miskeyed"}


def test_each_block_is_read_once_for_all_who_ask() -> None:
    ledgers = Ledgers({1: (NOON, {NOON.date(): [line("waited")]})})
    queries = [QUERY._replace(after_ms=number) for number in range(50)]

    found = ledgers.causes(*queries)

    assert set(found.values()) == {"waited"}
    assert len(ledgers.read) == 3  # the ledger, its lines of the day, and that there are no more of them


def test_ledgers_that_were_written_before_the_windows_began_are_not_read() -> None:
    ledgers = Ledgers({number: (NOON + (number - 5) * DAY, {}) for number in range(1, 8)})

    ledgers.causes(QUERY)

    assert [values[0] for values in ledgers.read if len(values) == 1] == ["7", "6", "5", "4", "3"]


def test_who_asks_nothing_reads_nothing() -> None:
    ledgers = Ledgers({1: (NOON, {})})

    assert ledgers.causes() == {}
    assert ledgers.read == []
