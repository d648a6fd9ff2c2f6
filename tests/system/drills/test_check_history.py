"""The checker of histories finds every kind of wrong answer, and nothing in a right history."""

from pathlib import Path

import pytest

from tests.system.drills.check_history import Checker, Invariant
from tests.system.drills.history import History, Line, Operation, read_history

HOUR_US = 3_600_000_000
NOW_US = 500_000 * HOUR_US
COUNT = {"archived": 3, "dead_letters": {"not_json": 1}, "cells_compared": 9, "cells_different": 0, "unexplained": 0}


def line(operation: Operation, **fields: object) -> Line:
    return {"op": operation, "ms": 1, **fields}


def sent(number: int | None, hours: float = 0, offset: int = 0) -> list[Line]:
    happened_us = None if number is None else NOW_US - int(hours * HOUR_US)
    of = {"store": "1", "number": number}
    return [
        line(Operation.SEND, **of, minor=100, happened_us=happened_us),
        line(Operation.ACK, **of, partition=0, offset=offset, received_us=NOW_US),
    ]


def read(value: int, publication: int = 1) -> Line:
    return line(Operation.READ, publication=publication, values={"1": value})


def rest(name: str, value: int, waiting: int, cut_us: int = NOW_US) -> Line:
    return line(Operation.REST, name=name, value=value, waiting=waiting, cut_us=cut_us)


RIGHT = [
    *sent(1),
    read(0),
    *sent(2, hours=24, offset=1),
    read(1),
    *sent(1, offset=2),
    *sent(None, offset=3),
    line(Operation.REFUSAL, code="not_yet"),
    line(Operation.FAULT, drill="D33", method="STOP", target="api", args=""),
    rest("receipts", 1, 1),
    rest("minor", 100, 1),
    rest("minor", 200, 0, NOW_US + 1),
    line(Operation.COUNT, **COUNT),
]


def broken(lines: list[Line]) -> set[str]:
    checker = Checker()
    checker.check(lines)
    return {name for name, verdict in checker.verdicts.items() if verdict.broken}


def test_a_right_history_breaks_nothing_and_checks_every_invariant() -> None:
    checker = Checker()
    checker.check(RIGHT)

    assert broken(RIGHT) == set()
    assert set(checker.verdicts) == {value for name, value in vars(Invariant).items() if name.isupper()}
    assert checker.faults == {"STOP api": 1}


@pytest.mark.parametrize(
    ("wrong", "invariant"),
    [
        (read(3), Invariant.NEVER_MORE),
        (read(0), Invariant.NEVER_LESS),
        (read(1, publication=0), Invariant.IN_ORDER),
        (line(Operation.REFUSAL, code=""), Invariant.TYPED),
        (rest("receipts", 2, 1), Invariant.EXACT),
        (rest("receipts", 1, 0), Invariant.EXACT),
        (rest("minor", 101, 1), Invariant.EXACT),
        (line(Operation.COUNT, **{**COUNT, "archived": 2}), Invariant.CONSERVED),
        (line(Operation.COUNT, **{**COUNT, "dead_letters": {}}), Invariant.CONSERVED),
        (line(Operation.COUNT, **{**COUNT, "cells_different": 1}), Invariant.RECOMPUTED),
        (line(Operation.COUNT, **{**COUNT, "cells_compared": 0}), Invariant.RECOMPUTED),
        (line(Operation.COUNT, **{**COUNT, "unexplained": 1}), Invariant.EXPLAINED),
    ],
)
def test_each_wrong_line_breaks_its_invariant(wrong: Line, invariant: str) -> None:
    assert broken([*RIGHT, wrong]) == {invariant}


def test_a_receipt_that_was_sent_but_not_acknowledged_may_be_shown_and_is_not_due() -> None:
    send, _ = sent(3, offset=4)

    assert broken([*RIGHT[:-1], send, read(3)]) == set()


def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history.jsonl.gz"
    with History(path) as history:
        history.add(Operation.READ, publication=1, values={"1": 7})

    (found,) = read_history(path)

    assert {**found, "ms": 1} == read(7)
