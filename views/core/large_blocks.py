"""Blocks of cells, and lines of ledgers, that are larger than what Cassandra accepts at once: they are kept in parts.

Parts of a block lie in its partition, under the same run, so that they are deleted with it. Their days are those of
the first centuries, which no block has.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from itertools import count
from typing import TypeVar

from views.core.cut import month_of

Line = TypeVar("Line")
MOST_CHARACTERS = 500_000
"""Of a part. Cassandra accepts 8 MB in all, and a character has up to four bytes."""
MOST_OF_LINES = 200_000
"""Characters of the lines of a ledger that are kept together. One line may have 100,000: it names up to 20 events."""
_NOTE = "parts:"
_DAYS_OF_MONTH, _BEFORE = 31, date(1900, 1, 1)


def note_of(block: str) -> str:
    """What is kept as the block: itself, or how many parts it has."""
    number = -(-len(block) // MOST_CHARACTERS)
    return block if number <= 1 else f"{_NOTE}{number}"


def parts_of(day: date, block: str) -> Iterator[tuple[date, str]]:
    """The parts of a large block of this day, each with the day that it is kept under; none for other blocks."""
    if len(block) > MOST_CHARACTERS:
        for number, first in enumerate(range(0, len(block), MOST_CHARACTERS)):
            yield _kept_under(day, number), block[first : first + MOST_CHARACTERS]


def days_of_parts(day: date, kept: str) -> list[date]:
    """The days that the parts of a block are kept under, in order; empty: `kept` is the block itself."""
    parts = int(kept.removeprefix(_NOTE)) if kept.startswith(_NOTE) else 0
    return [_kept_under(day, number) for number in range(parts)]


def day_of_block(month: date, kept_under: date) -> date:
    """The day of the block that a row of this month is of. `kept_under`: its own day, or that of a part."""
    if kept_under >= _BEFORE:
        return kept_under
    return month_of(month) + timedelta(days=(kept_under - date.min).days % _DAYS_OF_MONTH)


def lines_in_parts(
    day: date, lines: Sequence[Line], size_of: Callable[[Line], int]
) -> Iterator[tuple[date, Sequence[Line]]]:
    """The lines of this day, as many as are kept together, and the day that these are kept under.

    `size_of`: the characters of a line.
    """
    under, first, size = days_of_lines(day), 0, 0
    for at, line in enumerate(lines):
        own = size_of(line)
        if at > first and size + own > MOST_OF_LINES:
            yield next(under), lines[first:at]
            first, size = at, 0
        size += own
    if lines:
        yield next(under), lines[first:]


def days_of_lines(day: date) -> Iterator[date]:
    """The days that lines of this day may be kept under, without end: after the last lines, there are none."""
    yield day
    for number in count():
        yield _kept_under(day, number)


def _kept_under(day: date, number: int) -> date:
    return date.min + timedelta(days=number * _DAYS_OF_MONTH + day.day - 1)
