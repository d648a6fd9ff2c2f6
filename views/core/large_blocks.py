"""Blocks of cells that are larger than what Cassandra accepts at once, which are kept in parts, and a note of how many.

Parts lie in the partition of their block, under the same run, so that they are deleted with it. Their days are those of
the first centuries, which no block has.
"""

from collections.abc import Iterator
from datetime import date, timedelta

from views.core.cut import month_of

MOST_CHARACTERS = 500_000
"""Of a part. Cassandra accepts 8 MB in all, and a character has up to four bytes."""
_NOTE = "parts:"
_DAYS_OF_MONTH, _BEFORE = 31, date(1900, 1, 1)


def note_of(block: str) -> str:
    """What is kept as the block: itself, or how many parts it has."""
    count = -(-len(block) // MOST_CHARACTERS)
    return block if count <= 1 else f"{_NOTE}{count}"


def parts_of(day: date, block: str) -> Iterator[tuple[date, str]]:
    """The parts of a large block of this day, each with the day that it is kept under; none for other blocks."""
    if len(block) > MOST_CHARACTERS:
        for number, first in enumerate(range(0, len(block), MOST_CHARACTERS)):
            yield _kept_under(day, number), block[first : first + MOST_CHARACTERS]


def days_of_parts(day: date, kept: str) -> list[date]:
    """The days that the parts of a block are kept under, in order; empty: `kept` is the block itself."""
    count = int(kept.removeprefix(_NOTE)) if kept.startswith(_NOTE) else 0
    return [_kept_under(day, number) for number in range(count)]


def day_of_block(month: date, kept_under: date) -> date:
    """The day of the block that a row of this month is of. `kept_under`: its own day, or that of a part."""
    if kept_under >= _BEFORE:
        return kept_under
    return month_of(month) + timedelta(days=(kept_under - date.min).days % _DAYS_OF_MONTH)


def _kept_under(day: date, number: int) -> date:
    return date.min + timedelta(days=number * _DAYS_OF_MONTH + day.day - 1)
