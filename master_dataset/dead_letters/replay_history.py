"""One time that a dead letter was sent again: who, when, and where it went.

The Delta table `replays`: which dead letters were sent again. Append-only, as all of the master dataset.

Each replay has a row from before it was sent, and another one from when the broker had answered. Who replays writes
it; the dead letter itself is never touched.

What became of replays, as far as it can be known by now: read from where the broker put them, never written down.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from master_dataset.dead_letters.dead_letter import DeadLetterSummary
from master_dataset.dead_letters.deliveries import Delivery, EventKey, first_of
from master_dataset.delta.commit_intents import append
from master_dataset.delta.dataset import arrow_dataset, report_lost_files
from master_dataset.delta.fsync import fsync_first_commit
from master_dataset.delta.history import LOG_PROPERTIES
from master_dataset.delta.incomplete_commits import roll_back_incomplete
from master_dataset.errors import OperatorError
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.results import Reason


class SendStatus(StrEnum):
    """BEGUN is written before anything is sent, so that nothing sent is ever forgotten. UNKNOWN: there or not.

    REFUSED: the broker takes none so large.
    """

    BEGUN = "begun"
    SENT = "sent"
    UNKNOWN = "unknown"
    REFUSED = "refused"


@dataclass(frozen=True)
class Replay:
    """`run`: what was replayed together. `by`: a key's id or a user's name. `mended`: as Patch tells it.

    `to`: where the broker put it, None unless it is SENT. `day`, `identity_hash`: of the event that it says.
    """

    place: RecordPosition
    run: str
    at: datetime
    by: str
    mended: str
    sending: SendStatus
    to: RecordPosition | None
    day: date
    identity_hash: int


REPLAYS = "replays"
_POSITION = list(RecordPosition._fields)
COLUMNS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("run", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("by", pa.string()),
        ("mended", pa.string()),
        ("sending", pa.string()),
        ("to_partition", pa.int32()),
        ("to_offset", pa.int64()),
        ("day", pa.date32()),
        ("identity_hash", pa.int64()),
    ]
)


class ReplayTable:
    """Of one master dataset. A row is a replay and how far it was; what is known of it last counts."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._path = f"{root}/{REPLAYS}"

    def create(self) -> None:
        """Once, by the archive when it starts: of two who create it at once the second would change the table."""
        roll_back_incomplete(self._path)
        if not DeltaTable.is_deltatable(self._path):
            DeltaTable.create(
                self._path,
                Schema.from_arrow(COLUMNS),
                partition_by=["topic"],
                configuration=LOG_PROPERTIES | {"delta.appendOnly": "true"},
            )
            fsync_first_commit(self._path)

    def append(self, replays: Iterable[Replay]) -> None:
        """Keep them, in one commit. OperatorError if that cannot be done; then the same may be asked again."""
        rows = pa.Table.from_pylist([_row(each) for each in replays], COLUMNS)
        if not DeltaTable.is_deltatable(self._path):
            message = f"The master dataset has no table `{REPLAYS}`; nothing was sent."
            raise OperatorError(message, do="galatea up: the archive makes it when it starts")
        try:
            append(self._path, rows)
        except (DeltaError, OSError) as error:
            message = f"The table `{REPLAYS}` of the master dataset cannot be written: {error}."
            do = "Patch that, then the same again: what was sent already counts once."
            raise OperatorError(message, do=do) from error

    def of(self, places: Collection[RecordPosition]) -> dict[RecordPosition, list[Replay]]:
        """What was replayed of these letters, in the order of time. A letter that never was is left out."""
        if not places:
            return {}
        topics, offsets = sorted({each.topic for each in places}), sorted({each.offset for each in places})
        rows = self._read(None, pc.field("topic").isin(topics) & pc.field("offset").isin(offsets)).to_pylist()
        found: dict[RecordPosition, dict[str, Replay]] = {}
        for replay in map(_replay, rows):
            own = found.setdefault(replay.place, {})
            if replay.run not in own or own[replay.run].sending == SendStatus.BEGUN:
                own[replay.run] = replay
        return {place: sorted(found[place].values(), key=lambda each: each.at) for place in found if place in places}

    def sent(self, topic: str | None) -> pa.Table:
        """Places of letters that the broker took again; columns topic, partition, offset, each place once."""
        where = pc.field("sending") == SendStatus.SENT.value
        where = where if topic is None else where & (pc.field("topic") == topic)
        return self._read(_POSITION, where).group_by(_POSITION).aggregate([])

    def version(self) -> int:
        """Of the table; it moves whenever something is sent again. -1 if nothing ever was."""
        return DeltaTable(self._path).version() if DeltaTable.is_deltatable(self._path) else -1

    def _read(self, columns: Sequence[str] | None, where: Any) -> pa.Table:  # noqa: ANN401 - pyarrow ships no types
        wanted = list(columns or COLUMNS.names)
        if not DeltaTable.is_deltatable(self._path):
            return pa.table({name: pa.array([], COLUMNS.field(name).type) for name in wanted})
        table = DeltaTable(self._path)
        with report_lost_files(table):
            return arrow_dataset(table).to_table(columns=wanted, filter=where)


def _row(replay: Replay) -> dict[str, object]:
    return {
        **replay.place._asdict(),
        "run": replay.run,
        "at": replay.at,
        "by": replay.by,
        "mended": replay.mended,
        "sending": replay.sending.value,
        "to_partition": None if replay.to is None else replay.to.partition,
        "to_offset": None if replay.to is None else replay.to.offset,
        "day": replay.day,
        "identity_hash": replay.identity_hash,
    }


def _replay(row: dict[str, Any]) -> Replay:
    topic, offset = row["topic"], row["to_offset"]
    return Replay(
        RecordPosition(topic, row["partition"], row["offset"]),
        row["run"],
        row["at"],
        row["by"],
        row["mended"],
        SendStatus(row["sending"]),
        None if offset is None else RecordPosition(topic, row["to_partition"], offset),
        row["day"],
        row["identity_hash"],
    )


class ReplayOutcome(StrEnum):
    """UNKNOWN: the broker did not confirm it. WAITING: sent, and not archived yet."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    EVENT = "event"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True)
class ReplayResult:
    """`of`: the delivery that counts, where it is another one. `reason`: of a dead letter."""

    outcome: ReplayOutcome
    of: RecordPosition | None = None
    reason: str | None = None


class Letters(Protocol):
    """Which records are dead letters."""

    def headings(self, places: Collection[RecordPosition]) -> Mapping[RecordPosition, DeadLetterSummary]:
        """Those of these places that are."""


class Events(Protocol):
    """Which events are archived."""

    def deliveries(self, sought: Collection[EventKey]) -> Mapping[EventKey, Collection[Delivery]]:
        """All deliveries of each, repeats and conflicts among them; what is not there yet has none."""


def replay_results(replays: Collection[Replay], letters: Letters, events: Events) -> dict[Replay, ReplayResult]:
    """The end of each, as the tables are now."""
    sent = {each: each.to for each in replays if each.to is not None}
    refused = letters.headings(set(sent.values()))
    sought = {each: EventKey(each.place.topic, each.day, each.identity_hash) for each in sent}
    kept = events.deliveries(set(sought.values()))
    too_large = ReplayResult(ReplayOutcome.DEAD_LETTER, None, Reason.TOO_LARGE)
    found = {
        each: too_large if each.sending is SendStatus.REFUSED else ReplayResult(ReplayOutcome.UNKNOWN)
        for each in replays
    }
    for replay, place in sent.items():
        own = next((each for each in kept[sought[replay]] if each.place == place), None)
        if own is None:
            heading = refused.get(place)
            found[replay] = (
                ReplayResult(ReplayOutcome.DEAD_LETTER, None, heading.reason)
                if heading
                else ReplayResult(ReplayOutcome.WAITING)
            )
        else:
            found[replay] = _end(own, [each for each in kept[sought[replay]] if each.identity == own.identity])
    return found


def _end(own: Delivery, same: Collection[Delivery]) -> ReplayResult:
    first = first_of(same)
    if first.place == own.place:
        return ReplayResult(ReplayOutcome.EVENT)
    return ReplayResult(
        ReplayOutcome.DUPLICATE if first.content == own.content else ReplayOutcome.CONFLICT, first.place
    )
