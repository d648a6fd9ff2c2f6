"""`queue_events`: what a camera over a queue says of every turn. The length is of those who wait."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from lab.simulation.checkout import Turn
from lab.simulation.clock import written
from lab.simulation.record import Records, Wire
from lab.simulation.shop_day import ShopDay

TRACK_BITS = 48
STEP = {"join": 1, "service_start": -1, "abandon": -1, "leave": 0}


class Change(NamedTuple):
    """A kind of event at an instant, of one turn with its track. They are sorted: at one instant joins come first."""

    at_ms: int
    order: int
    kind: str
    track: str
    turn: Turn


def queue_events(day: ShopDay, turns: Sequence[Turn]) -> Records:
    """Tell all turns, queue by queue."""
    wire, drawn = Wire(day, "queue_events"), day.chance("tracks of queues")
    for _, of_queue in groupby(sorted(turns, key=attrgetter("queue")), key=attrgetter("queue")):
        changes = [each for turn in of_queue for each in _changes(turn, f"{drawn.getrandbits(TRACK_BITS):012x}")]
        length = 0
        for change in sorted(changes):
            length += STEP[change.kind]
            said = {"queue": change.turn.queue, "track": change.track, "kind": change.kind, "length_after": length}
            yield wire.record(change.at_ms, change.turn.sensor, {**said, **_starts(change)})


def _changes(turn: Turn, track: str) -> list[Change]:
    moments = {"join": turn.joined_ms}
    if turn.started_ms is None:
        moments["abandon"] = turn.ended_ms
    else:
        moments |= {"service_start": turn.started_ms, "leave": turn.ended_ms}
    return [Change(at, list(STEP).index(kind), kind, track, turn) for kind, at in moments.items()]


def _starts(change: Change) -> dict[str, Any]:
    starts = {} if change.kind == "join" else {"joined_at": written(change.turn.joined_ms)}
    if change.kind == "leave" and change.turn.started_ms is not None:
        starts["service_started_at"] = written(change.turn.started_ms)
    return starts
