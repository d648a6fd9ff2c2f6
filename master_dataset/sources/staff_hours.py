"""Who worked, or was planned to work, from when to when: a segment is sent once it is over.

A correction is a reversal (sign -1, the next revision) and a new segment.
"""

import msgspec

from master_dataset.fields import Choice, Id, Instant, Label, Sign, Whole
from master_dataset.fields.times import HOUR_MS, lasted
from master_dataset.registry.stores import Terms
from master_dataset.source import Record, Source

LONGEST_MS = 16 * HOUR_MS
MOST_REVISIONS = 1_000_000


class Segment(msgspec.Struct, frozen=True, gc=False):
    """`basis`: the kind. `started_us`: microseconds since 1970; it ends at `happened_at`.

    `sign` -1 takes back what was sent before.
    """

    staff: str
    basis: str
    role: str
    started_us: int
    sign: int
    revision: int


def segment(record: Record, _: Terms) -> Segment:
    """Return the segment. InvalidRecordError for one that ends before it starts, or lasts more than 16 hours."""
    started = record["started_at"]
    lasted(started, record["happened_at"], LONGEST_MS, "started_at")
    said = record["staff"], record["kind"], record["role"]
    return Segment(*said, started * 1000, record["sign"], record["revision"])


STAFF_HOURS = Source(
    topic="staff_hours",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "staff", "kind", "started_at", "happened_at", "revision"),
    fields={
        "operation_id": Id(about="The store; also the key of the topic."),
        "staff": Label(about="A pseudonym."),
        "kind": Choice(("worked", "planned"), about="What the segment is of."),
        "role": Choice(("sales_floor", "checkout", "other"), about="What was done."),
        "started_at": Instant(about="Start of the segment."),
        "happened_at": Instant(about="End of the segment."),
        "sign": Sign(about="-1 takes a segment back."),
        "revision": Whole(0, MOST_REVISIONS, optional=True, otherwise=0, about="Rises with each correction."),
    },
    payload=Segment,
    derive=segment,
    content=("role", "sign"),
    example={
        "happened_at": "2026-03-07T10:30:00+01:00",
        "operation_id": 1,
        "staff": "s-7f3a",
        "kind": "worked",
        "role": "sales_floor",
        "started_at": "2026-03-07T09:50:00+01:00",
    },
)
