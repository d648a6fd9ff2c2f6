"""Who worked, or was planned to work, from when to when: a segment is sent once it is over.

A correction is a reversal (sign -1, the next revision) and a new segment.
"""

import msgspec

from master_dataset.fields import Choice, Id, Instant, Label, Whole
from master_dataset.intervals import HOUR_MS, lasted
from master_dataset.parsing.dead_letter import Reason, Refused
from master_dataset.source import Record, Source
from master_dataset.terms import Terms

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
    """Give the segment. Raises Refused for one that ends before it starts, or lasts more than 16 hours."""
    started = record["started_at"]
    lasted(started, record["happened_at"], LONGEST_MS, "started_at")
    if not record["sign"]:
        raise Refused(Reason.OUT_OF_RANGE, "must be 1 or -1", "/sign")
    said = record["staff"], record["kind"], record["role"]
    return Segment(*said, started * 1000, record["sign"], record["revision"])


STAFF_HOURS = Source(
    topic="staff_hours",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "staff", "kind", "started_at", "happened_at", "revision"),
    fields={
        "operation_id": Id(),
        "staff": Label(),
        "kind": Choice(("worked", "planned")),
        "role": Choice(("sales_floor", "checkout", "other")),
        "started_at": Instant(),
        "happened_at": Instant(),
        "sign": Whole(-1, 1, optional=True, otherwise=1),
        "revision": Whole(0, MOST_REVISIONS, optional=True, otherwise=0),
    },
    payload=Segment,
    derive=segment,
    content=("role", "sign"),
)
