"""Rows of the tables of dead letters as pyarrow has them: which are asked for, in which order, each place once.

An archive that lost its checkpoint may have kept a record twice.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.dead_letters.letter import Cursor, Heading, Letter
from master_dataset.dead_letters.place import Place
from master_dataset.dead_letters.question import LetterQuestion
from master_dataset.parsing.json_bytes import MAX_BYTES
from master_dataset.parsing.rows import INSTANT

PLACE = ["topic", "partition", "offset"]
HEADING = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("received_at", INSTANT),
        ("reason", pa.string()),
        ("field", pa.string()),
        ("sentence", pa.string()),
    ]
)
BYTES = ["key", "value", "headers"]
ROWS_AT_ONCE = 64
"""Of letters with their bytes: a value has up to 4 MiB."""
Expression = Any
"""pyarrow ships no types."""


def asked(question: LetterQuestion) -> Expression | None:
    """What the question says of a row by itself; None for every row."""
    same = {"reason": question.reason, "topic": question.source}
    said = [pc.field(name) == value for name, value in same.items() if value is not None]
    said += [] if question.since is None else [pc.field("received_at") >= question.since]
    said += [] if question.until is None else [pc.field("received_at") < question.until]
    return reduce(and_, said) if said else None


def not_before(where: Expression | None, after: Cursor | None, *, oldest_first: bool) -> Expression | None:
    """The same, and in the order of time not before that one."""
    if after is None:
        return where
    at = pc.field("received_at")
    bound = at >= after.received_at if oldest_first else at <= after.received_at
    return bound if where is None else where & bound


def at(places: Collection[Place]) -> Expression:
    """Rows of these places; there is at least one."""
    homes: dict[tuple[str, int], list[int]] = {}
    for place in places:
        homes.setdefault(place[:2], []).append(place.offset)
    return reduce(
        or_,
        (
            (pc.field("topic") == topic) & (pc.field("partition") == partition) & pc.field("offset").isin(offsets)
            for (topic, partition), offsets in homes.items()
        ),
    )


def once(found: pa.Table) -> pa.Table:
    """Each place once."""
    if found.num_rows <= 1:
        return found
    found = found.sort_by([(name, "ascending") for name in ("offset", "partition", "topic")])
    here, before = found.slice(1), found.slice(0, found.num_rows - 1)
    is_other = reduce(pc.or_, (pc.not_equal(here[name], before[name]) for name in PLACE))
    return pa.concat_tables([found.slice(0, 1), here.filter(is_other)])


def first(found: pa.Table, most: int, after: Cursor | None, *, oldest_first: bool) -> pa.Table:
    """At most so many, each place once, in the order of receipt and behind `after`."""
    direction = "ascending" if oldest_first else "descending"
    keys = found.select(["received_at", *PLACE])
    taken: list[int] = []
    last = None if after is None else (after.received_at, *after.place)
    for index in pc.sort_indices(keys, [(name, direction) for name in keys.column_names]):
        row = tuple(keys[name][index.as_py()].as_py() for name in keys.column_names)
        if last is None or (row > last if oldest_first else row < last):
            taken.append(index.as_py())
            last = row
            if len(taken) == most:
                break
    return found.take(pa.array(taken, pa.int64()))


def by_reason(found: pa.Table) -> dict[str, int]:
    """Reason to how many rows, most first."""
    counted = Counter({each["values"]: each["counts"] for each in pc.value_counts(found["reason"]).to_pylist()})
    return dict(counted.most_common())


def heading(row: Mapping[str, Any]) -> Heading:
    """Of a row without its bytes."""
    place = Place(row["topic"], row["partition"], row["offset"])
    return Heading(place, row["received_at"], row["reason"], row["field"], row["sentence"])


def whole(dataset: Expression, where: Expression) -> Iterator[Letter]:
    """Letters with their bytes, a few at a time. Of a value that no record may have only the beginning is kept."""
    scanner = dataset.scanner(
        columns=[*HEADING.names, *BYTES], filter=where, batch_size=ROWS_AT_ONCE, batch_readahead=1, fragment_readahead=1
    )
    for batch in scanner.to_batches():
        for row in batch.to_pylist():
            said, value = heading(row), row["value"]
            headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
            kept = value and value[: MAX_BYTES + 1]
            shared = (said.place, said.received_at, said.reason, said.field, said.sentence)
            yield Letter(*shared, row["key"], kept, headers, len(value or b""))
