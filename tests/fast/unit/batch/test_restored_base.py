"""The first rebuild after a restore: everything is computed, and nothing counts as corrected."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from batch_layer.ledger.writer import LedgerWriter
from batch_layer.plan import Plan, Planner
from views import registered_views
from views.control.publication import Pointer, Publication, RunStats
from views.control.recompute import LedgerTotals, RecomputeRequest

CUT = datetime(2026, 3, 1, 12, tzinfo=UTC)
BASE = Pointer(2, CUT, "", 0, {})
DAYS = {date(2026, 2, 27), date(2026, 2, 28)}
VIEWS = registered_views()
DEFINITIONS = {view.name: view.definition_hash for view in VIEWS}


class WholeMaster:
    """A table of two days. Asked what came since the base, it would say nothing."""

    version = 9

    def days(self, _stores: Sequence[str] = ()) -> set[date]:
        return DAYS

    def days_received(self, _since: datetime, _before: datetime) -> set[date]:
        return set()

    def days_stepped_back(self, _version: int, _before: datetime) -> set[date]:
        return set()


def test_any_rebuild_computes_every_day_of_every_view() -> None:
    masters: Any = {view.source.topic: WholeMaster() for view in VIEWS}
    planner = Planner(VIEWS, masters, BASE, dict.fromkeys(masters, 5), timedelta(minutes=5))

    plan = planner.plan(RecomputeRequest(), CUT + timedelta(hours=1), 7, DEFINITIONS)

    assert {view.name: days & DAYS for view, days in plan.work} == {view.name: DAYS for view in VIEWS}
    assert set(plan.whys.values()) == {"changed definition"}
    assert not plan.is_published


class LedgerSession:
    """As much of a session as a ledger without lines needs."""

    def __init__(self) -> None:
        self.written: list[Sequence[Any]] = []

    def prepare(self, query: str) -> str:
        return query

    def execute(self, query: str, values: Sequence[Any]) -> Any:
        assert query.startswith("INSERT INTO ledgers")
        self.written.append(values)


def no_spark() -> Any:
    raise AssertionError("nothing has to be compared")


def test_its_ledger_is_complete_and_empty() -> None:
    session = LedgerSession()
    context: Any = SimpleNamespace(session=session)
    plan = Plan(BASE, CUT + timedelta(hours=1), [], {}, {}, 7, DEFINITIONS)

    totals = LedgerWriter(context, no_spark).of_run(plan, "run", lambda *_: None)  # type: ignore[arg-type]

    assert totals == LedgerTotals(0, 0, {})
    [(subject, lines, base, _, written)] = session.written
    assert (subject, lines, base) == ("run", "run", 2)
    assert msgspec.json.decode(written, type=LedgerTotals) == totals


@pytest.mark.parametrize(("stats", "is_restored"), [(RunStats(backup="id"), True), (RunStats(restores=1), False)])
def test_a_restored_publication_is_known_by_its_backup(stats: RunStats, is_restored: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    publication = Publication(2, CUT, "", 0, CUT, "me", "a test", stats=stats)

    assert publication.is_restored is is_restored
