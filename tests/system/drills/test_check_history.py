"""The checker of histories finds every kind of wrong answer, and nothing in a right history."""

from pathlib import Path

import pytest

from tests.system.drills.check_history import Checker, Invariant
from tests.system.drills.check_history import broken as broken_in
from tests.system.drills.history import History, Line, Operation, read_history

HOUR_US = 3_600_000_000
NOW_US = 500_000 * HOUR_US
COUNT = {"archived": 3, "dead_letters": {"not_json": 1}, "cells_compared": 9, "cells_different": 0, "unexplained": 0}
COUNT |= {"is_published": True}


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


def rest(name: str, value: int | None, waiting: int, cut_us: int = NOW_US, *, is_last: bool = True) -> Line:
    return line(Operation.REST, name=name, value=value, waiting=waiting, cut_us=cut_us, is_last=is_last)


RIGHT = [
    *sent(1),
    read(0),
    *sent(2, hours=24, offset=1),
    read(1),
    *sent(1, offset=2),
    *sent(None, offset=3),
    line(Operation.REFUSAL, status=503, code="not_yet"),
    line(Operation.FAULT, drill="D33", method="STOP", target="api", args=""),
    rest("receipts", 0, 0, is_last=False),
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
        (line(Operation.READ, publication=1, values={}), Invariant.NEVER_LESS),
        (line(Operation.REFUSAL, status=503, code=""), Invariant.TYPED),
        (line(Operation.REFUSAL, status=500, code="internal"), Invariant.TYPED),
        (line(Operation.UNKNOWN, store="1", number=1), Invariant.KNOWN),
        (line(Operation.ACK, store="2", number=None, partition=0, offset=3, received_us=NOW_US), Invariant.PLACED),
        (line(Operation.ACK, store="1", number=None, partition=1, offset=9, received_us=NOW_US), Invariant.PLACED),
        (rest("minor", 101, 1, is_last=False), Invariant.NEVER_TOO_MUCH),
        (rest("receipts", 1, 2, is_last=False), Invariant.NEVER_TOO_MUCH),
        (rest("receipts", None, 0), Invariant.EXACT),
        (rest("receipts", 1, 0), Invariant.EXACT),
        (rest("minor", 99, 1), Invariant.EXACT),
        (line(Operation.COUNT, **{**COUNT, "archived": 2}), Invariant.CONSERVED),
        (line(Operation.COUNT, **{**COUNT, "dead_letters": {}}), Invariant.CONSERVED),
        (line(Operation.COUNT, **{**COUNT, "cells_different": 1}), Invariant.RECOMPUTED),
        (line(Operation.COUNT, **{**COUNT, "cells_compared": 0}), Invariant.RECOMPUTED),
        (line(Operation.COUNT, **{**COUNT, "is_published": False}), Invariant.RECOMPUTED),
        (line(Operation.COUNT, **{**COUNT, "unexplained": 1}), Invariant.EXPLAINED),
    ],
)
def test_each_wrong_line_breaks_its_invariant(wrong: Line, invariant: str) -> None:
    # What is counted is counted once, so a wrong count takes the place of the right one.
    is_count = wrong["op"] == Operation.COUNT
    assert broken([*(RIGHT[:-1] if is_count else RIGHT), wrong]) == {invariant}


def test_a_receipt_that_was_sent_but_not_acknowledged_may_be_shown_and_is_not_due() -> None:
    send, _ = sent(3, offset=4)

    assert broken([*RIGHT[:-1], send, read(3), RIGHT[-1]]) == set()


def test_a_history_without_an_end_or_with_nothing_counted_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl.gz"
    with History(path) as history:
        for each in RIGHT:
            history.add(
                Operation(each["op"]), **{name: value for name, value in each.items() if name not in {"op", "ms"}}
            )

    assert broken_in(path) == []
    path.write_bytes(path.read_bytes()[:-20])
    assert any(Invariant.WHOLE in each for each in broken_in(path))
    assert broken(RIGHT[:-1]) >= {Invariant.WHOLE, Invariant.CONSERVED, Invariant.RECOMPUTED}


def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "history.jsonl.gz"
    with History(path) as history:
        history.add(Operation.READ, publication=1, values={"1": 7})

    (found,) = read_history(path)

    assert {**found, "ms": 1} == read(7)
