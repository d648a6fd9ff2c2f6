"""Rows of a file that Cassandra writes all together or not at all: how large they may be.

Rows of one partition are one mutation. `batch_size_fail_threshold` (50 KiB), which is about batches of several
partitions, does not apply to them. `max_mutation_size` does: 16 MiB unless it is set, half of `commitlog_segment_size`.
Long before that, a small node needs more than the seconds that a write may take, or more memory than it has.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from cassandra import InvalidRequest

from master_dataset.errors import BadFileError

MOST_BYTES = 4 * 1024 * 1024
"""Of all rows of one write: a quarter of what stock Cassandra accepts, half of what the local stack does."""
ROW_BYTES = 100
"""Counted for each row beside its texts: more than its keys, times and flags are."""
ITEM_BYTES = 32
"""Counted for each item of a set beside its text: it is a cell of its own, which costs memory more than bytes."""
_DO = "Split the file, and load its parts one after another, without `--prune` if they are rules. Nothing was written."


@contextmanager
def one_write(rows: Sequence[Sequence[object]]) -> Iterator[None]:
    """Guard the write of rows of one partition, which is done inside.

    Args:
        rows: the values of the columns of each.

    Raises:
        BadFileError: the rows are too large for one write, or Cassandra refuses them. Nothing is written.
    """
    size = 0
    for row in rows:
        size += ROW_BYTES + sum(map(_size, row))
        if size > MOST_BYTES:  # the rest is not counted, because it may be long
            message = f"The file has more than the {MOST_BYTES:,} bytes that can be written at once."
            raise BadFileError(message, do=_DO)
    try:
        yield
    except InvalidRequest as error:  # a cluster may have lower limits, such as guardrails
        message = f"Cassandra refuses to write the rows of the file at once: {error}"
        raise BadFileError(message, do=_DO) from error


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, AbstractSet):
        return sum(ITEM_BYTES + _size(item) for item in value)
    return 0  # a number, day or instant, which is in ROW_BYTES
