"""A ledger that is written again has the lines of the last attempt, whatever the clocks of the attempts say."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from batch_layer.ledger import correction
from batch_layer.ledger.correction import Ledgers, Whole, written

DAY = date(2026, 11, 1)
Key = tuple[Any, ...]


class Killed(BaseException):
    """The process is gone."""


class Corrections:
    """The table by Cassandra's rules: the greatest write timestamp counts, and a deletion hides what is not newer.

    `calls_left`: after so many statements the process is killed; below 0: never.
    """

    def __init__(self) -> None:
        self.rows: dict[Key, tuple[int, str]] = {}
        self.deleted: dict[Key, int] = {}
        self.calls_left = -1

    def prepare(self, cql: str) -> str:
        return cql

    def execute(self, cql: str, values: Sequence[Any]) -> Any:
        if self.calls_left == 0:
            raise Killed
        self.calls_left -= 1
        if cql.startswith("DELETE"):
            stamp, *partition = values
            self.deleted[tuple(partition)] = max(stamp, self.deleted.get(tuple(partition), 0))
        elif cql.startswith("INSERT"):
            self.put(tuple(values[:4]), values[4], values[5])
        else:
            found = self.shown().get(tuple(values))
            return SimpleNamespace(one=lambda: found and SimpleNamespace(block=found))
        return None

    def put(self, key: Key, block: str, stamp: int) -> None:
        if stamp >= self.rows.get(key, (0, ""))[0]:
            self.rows[key] = stamp, block

    def shown(self) -> Mapping[Key, str]:
        return {key: block for key, (stamp, block) in self.rows.items() if stamp > self.deleted.get(key[:2], 0)}


class Attempts:
    """Attempts to write one ledger, at times that a clock says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.table, self.now = Corrections(), 1_800_000_000
        clock = SimpleNamespace(time_ns=lambda: self.now * 1_000_000_000)
        monkeypatch.setattr(correction, "time", clock)

    def write(self, stores: Sequence[str], events: int, *, later: int = 1) -> None:
        """As `Ledger.write` does; lines that are compared a second time have a `later` timestamp."""
        session: Any = self.table
        stamp = Ledgers(session).begin("r1", "sales")
        for store in stores:
            self.table.put(("r1", "sales", store, DAY), written(Whole("r1", "waited", events)), stamp + later)

    def lines(self) -> Mapping[str, str]:
        return {store: block for (_, view, store, _), block in self.table.shown().items() if view == "sales"}


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    return Attempts(monkeypatch)


def forward(attempts: Attempts) -> None:
    attempts.now += 1


def back(attempts: Attempts) -> None:
    attempts.now -= 120


@pytest.mark.parametrize("set_clock", [forward, back])
@pytest.mark.parametrize("later", [1, 2], ids=["compared once", "compared twice"])
def test_lines_of_an_attempt_before_are_gone(
    attempts: Attempts, set_clock: Callable[[Attempts], None], later: int
) -> None:
    attempts.write(["a", "b"], 1, later=later)
    set_clock(attempts)
    attempts.write(["a"], 2)

    assert attempts.lines() == {"a": written(Whole("r1", "waited", 2))}


@pytest.mark.parametrize("calls", range(1, 4))
def test_an_attempt_that_was_killed_while_it_began_hides_no_line_of_the_next(attempts: Attempts, calls: int) -> None:
    attempts.write(["a", "b"], 1)
    forward(attempts)
    attempts.table.calls_left = calls
    if calls < 3:
        with pytest.raises(Killed):
            attempts.write([], 2)
    else:
        attempts.write([], 2)
    back(attempts)
    attempts.table.calls_left = -1
    attempts.write(["a"], 3)

    assert attempts.lines() == {"a": written(Whole("r1", "waited", 3))}


def test_views_and_subjects_keep_their_own_lines(attempts: Attempts) -> None:
    attempts.write(["a"], 1)
    session: Any = attempts.table
    for subject, view in (("r1", "sales_by_till"), ("r2", "sales")):
        Ledgers(session).begin(subject, view)

    assert attempts.lines() == {"a": written(Whole("r1", "waited", 1))}
