"""The Delta table `replays`: which dead letters were sent again, and with which outcome.

Append-only, like the whole master dataset. Each replay has one row written before it was sent, and another written
after the broker had responded. The dead letter itself is never changed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from master_dataset.dead_letters.dead_letter import DeadLetterSummary
from master_dataset.dead_letters.deliveries import ArchivedEvents, Delivery, EventKey, first_of
from master_dataset.delta.append import append
from master_dataset.delta.creation import create_table
from master_dataset.delta.data_files import TableLayout
from master_dataset.delta.dataset import arrow_dataset, report_lost_files
from master_dataset.delta.incomplete_commits import roll_back_incomplete
from master_dataset.errors import OperatorError
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.results import Reason
from master_dataset.storage import is_table, open_table


class SendStatus(StrEnum):
    """BEGUN is recorded before anything is sent. UNKNOWN: it may or may not be in the topic. REFUSED: too large.

    WITHDRAWN: not sent, because another replay as a different event had begun at the same time.
    """

    BEGUN = "begun"
    SENT = "sent"
    UNKNOWN = "unknown"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Replay:
    """One time that a dead letter was sent again.

    `run`: shared by all dead letters of one request. `by`: id of an API key or name of a user. `mended`: the
    description of the patch. `to`: its position in the topic, None unless it is SENT. `day`, `identity_hash`: of the
    event in it.
    """

    position: RecordPosition
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
_LAYOUT = TableLayout(COLUMNS, "topic")


class ReplayTable:
    """The table `replays` of one master dataset."""

    def __init__(self, root: str) -> None:
        """`root` of the master dataset."""
        self._path = f"{root}/{REPLAYS}"

    def create(self) -> None:
        """Create the table. Only the archive does it, at its start: two creators at once would change the table."""
        roll_back_incomplete(self._path)
        create_table(self._path, _LAYOUT)

    def append(self, replays: Iterable[Replay]) -> None:
        """Record replays in one commit.

        Raises:
            OperatorError: The table is missing or cannot be written. The same call may be repeated.
        """
        rows = pa.Table.from_pylist([_row(each) for each in replays], COLUMNS)
        if not is_table(self._path):
            message = f"The master dataset has no table `{REPLAYS}`; nothing was sent."
            raise OperatorError(message, do="galatea up: the archive creates it when it starts")
        try:
            append(self._path, rows, _LAYOUT)
        except (DeltaError, OSError) as error:
            message = f"The table `{REPLAYS}` of the master dataset cannot be written: {error}."
            do = "Fix that, then repeat the command: records that were already sent count once."
            raise OperatorError(message, do=do) from error

    def of(self, positions: Collection[RecordPosition]) -> dict[RecordPosition, list[Replay]]:
        """Return the replays of dead letters, oldest first. A dead letter that was never replayed is left out."""
        if not positions:
            return {}
        topics, offsets = sorted({each.topic for each in positions}), sorted({each.offset for each in positions})
        rows = self._read(None, pc.field("topic").isin(topics) & pc.field("offset").isin(offsets)).to_pylist()
        found: dict[RecordPosition, dict[str, Replay]] = {}
        for replay in map(_replay, rows):
            own = found.setdefault(replay.position, {})
            if replay.run not in own or own[replay.run].sending == SendStatus.BEGUN:
                own[replay.run] = replay
        return {
            position: sorted(found[position].values(), key=lambda each: each.at)
            for position in found
            if position in positions
        }

    def sent(self, topic: str | None) -> pa.Table:
        """Return the positions of dead letters that were sent again: columns topic, partition, offset; each once."""
        where = pc.field("sending") == SendStatus.SENT.value
        where = where if topic is None else where & (pc.field("topic") == topic)
        return self._read(_POSITION, where).group_by(_POSITION).aggregate([])

    def version(self) -> int:
        """Return the version of the table, which changes with each replay; -1 if there is no table."""
        return open_table(self._path).version() if is_table(self._path) else -1

    def _read(self, columns: Sequence[str] | None, where: Any) -> pa.Table:  # noqa: ANN401 - pyarrow ships no types
        wanted = list(columns or COLUMNS.names)
        if not is_table(self._path):
            return pa.table({name: pa.array([], COLUMNS.field(name).type) for name in wanted})
        table = open_table(self._path)
        with report_lost_files(table):
            return arrow_dataset(table).to_table(columns=wanted, filter=where)


def _row(replay: Replay) -> dict[str, object]:
    return {
        **replay.position._asdict(),
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


# Outcomes of replays


class ReplayOutcome(StrEnum):
    """The outcome of a replay. UNKNOWN: the broker did not confirm it. WAITING: sent, and not archived yet."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    EVENT = "event"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True)
class ReplayResult:
    """`of`: the delivery that counts, if it is a different one. `reason`: why it is a dead letter again."""

    outcome: ReplayOutcome
    of: RecordPosition | None = None
    reason: str | None = None


class Summaries(Protocol):
    """Looks up which records are dead letters."""

    def summaries(self, positions: Collection[RecordPosition]) -> Mapping[RecordPosition, DeadLetterSummary]:
        """Summaries of the dead letters among these positions."""


def replay_results(
    replays: Collection[Replay], dead_letters: Summaries, events: ArchivedEvents
) -> dict[Replay, ReplayResult]:
    """Find out the outcomes of replays by their positions. They are not stored."""
    sent = {each: each.to for each in replays if each.to is not None}
    rejected = dead_letters.summaries(set(sent.values()))
    keys = {each: EventKey(each.position.topic, each.day, each.identity_hash) for each in sent}
    archived = events.deliveries(set(keys.values()))
    results = {}
    for replay in replays:
        if replay.sending is SendStatus.REFUSED:
            results[replay] = ReplayResult(ReplayOutcome.DEAD_LETTER, None, Reason.TOO_LARGE)
        elif replay.sending is SendStatus.WITHDRAWN:
            results[replay] = ReplayResult(ReplayOutcome.DEAD_LETTER, None, Reason.CONFLICTING_DUPLICATE)
        elif replay not in sent:
            results[replay] = ReplayResult(ReplayOutcome.UNKNOWN)
        else:
            results[replay] = _result(sent[replay], archived[keys[replay]], rejected)
    return results


def _result(
    position: RecordPosition,
    deliveries: Collection[Delivery],
    rejected: Mapping[RecordPosition, DeadLetterSummary],
) -> ReplayResult:
    own = next((each for each in deliveries if each.position == position), None)
    if own is None:
        summary = rejected.get(position)
        if summary is None:
            return ReplayResult(ReplayOutcome.WAITING)
        return ReplayResult(ReplayOutcome.DEAD_LETTER, None, summary.reason)
    first = first_of([each for each in deliveries if each.identity == own.identity])
    if first.position == own.position:
        return ReplayResult(ReplayOutcome.EVENT)
    outcome = ReplayOutcome.DUPLICATE if first.content == own.content else ReplayOutcome.CONFLICT
    return ReplayResult(outcome, first.position)
