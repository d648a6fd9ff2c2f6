"""The history writer folds the topic `alerts` into tables, and knows up to when they are complete."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from master_dataset.errors import CassandraUnavailableError
from speed_layer.alerts.fold import LogRecord
from speed_layer.alerts.history_table import HistoryPosition
from speed_layer.alerts.history_writer import Completeness, HistoryWriter, TopicRecord
from speed_layer.alerts.intake import AlertIntake
from tests.support.alert_signatures import signatures_of
from tests.support.alert_topic import alert
from views.alerts.alert import Alert

ALERT = alert("acme", "1", 1)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@dataclass
class Topic:
    """Sink over in-memory records. `end`: what the alert processor has written, `visible`: what is decided of it."""

    records: list[bytes] = field(default_factory=list)
    first: int = 0
    visible: int | None = None
    as_of: datetime | None = NOON
    is_gone: bool = False
    at: int = 0
    taken_at_once: int = 500

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        return {0: (self.first, self.end)}

    @property
    def end(self) -> int:
        return self.first + len(self.records)

    def seek(self, positions: Mapping[int, int]) -> None:
        self.at = positions[0]

    def poll(self) -> Sequence[TopicRecord] | None:
        if self.is_gone:
            return None
        until = min(self.at + self.taken_at_once, self.end if self.visible is None else self.visible)
        found = [TopicRecord(0, at + 1, NOON, self.records[at - self.first]) for at in range(self.at, until)]
        self.at = max(self.at, until)
        return [*found, TopicRecord(0, self.at)]

    def completeness(self) -> Mapping[int, Completeness]:
        return {0: Completeness(self.end, self.as_of)} if self.as_of else {}


@dataclass
class Tables:
    """History in memory. `done`: what came in which order; `is_untidy`: it cannot be tidied."""

    kept: list[bytes] = field(default_factory=list)
    rows: dict[int, HistoryPosition] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    is_away: bool = False
    is_untidy: bool = False

    def migrate_open_alerts(self, beat: Callable[[], None], now: datetime) -> None:
        assert now
        beat()
        self.done.append("moved")

    def prune(self, beat: Callable[[], None], now: datetime) -> None:
        assert now
        beat()
        self.done.append("tidied")
        if self.is_untidy:
            raise CassandraUnavailableError("It is away.", do="Wait.")

    def write(self, value: bytes) -> None:
        if self.is_away:
            raise CassandraUnavailableError("It is away.", do="Wait.")
        self.kept.append(value)
        self.done.append("kept")

    def positions(self) -> Mapping[int, HistoryPosition]:
        return dict(self.rows)

    def save_position(self, partition: int, kept: HistoryPosition, now: datetime) -> None:
        assert now
        self.rows[partition] = kept


class AnyRecord(AlertIntake):
    """Takes every record but one for an alert."""

    def __init__(self) -> None:
        super().__init__("alerts", signatures_of(), lambda _: None)

    def alert(self, partition: int, record: LogRecord) -> Alert | None:
        return super().alert(partition, record) if record.value == b"broken" else ALERT


@pytest.fixture
def tables() -> Tables:
    return Tables()


def follow(topic: Topic, tables: Tables, rounds: int = 3) -> HistoryWriter:
    writer = HistoryWriter(topic, tables, AnyRecord(), lambda: NOON + SECOND)
    writer.start()
    for _ in range(rounds):
        writer.step()
    return writer


def test_a_partition_read_to_the_end_is_complete_as_of_the_processor(tables: Tables) -> None:
    follow(Topic([b"a", b"b"]), tables)

    assert tables.kept == [b"a", b"b"]
    assert tables.rows[0] == HistoryPosition(2, NOON, None)


def test_as_long_as_a_transaction_is_open_the_tables_are_not_whole(tables: Tables) -> None:
    topic = Topic([b"a", b"b"], visible=1)

    writer = follow(topic, tables)
    before = tables.rows[0]
    topic.visible = None
    writer.step()

    assert before == HistoryPosition(1, None, None)
    assert tables.rows[0] == HistoryPosition(2, NOON, None)


def test_a_processor_that_has_committed_nothing_yet_gives_no_time(tables: Tables) -> None:
    follow(Topic([b"a"], as_of=None), tables)

    assert tables.rows[0] == HistoryPosition(1, None, None)


def test_it_goes_on_where_the_tables_end(tables: Tables) -> None:
    tables.rows[0] = HistoryPosition(1, NOON, None)

    follow(Topic([b"a", b"b"]), tables)

    assert tables.kept == [b"b"]


def test_killed_before_it_said_how_far_it_folds_again_and_loses_nothing(tables: Tables) -> None:
    topic = Topic([b"a", b"b"], taken_at_once=1)
    tables.is_away = True
    with pytest.raises(CassandraUnavailableError):
        follow(topic, tables)
    tables.is_away = False

    follow(topic, tables, rounds=2)
    tables.rows.clear()
    follow(topic, tables)

    assert tables.kept == [b"a", b"b", b"a", b"b"]
    assert tables.rows[0].position == 2


def test_the_moment_never_goes_back(tables: Tables) -> None:
    tables.rows[0] = HistoryPosition(0, NOON, None)

    follow(Topic([b"a"], as_of=NOON - SECOND), tables)

    assert tables.rows[0] == HistoryPosition(1, NOON, None)


@pytest.mark.parametrize("before", [HistoryPosition(2, NOON, None), None])
def test_what_is_gone_from_the_topic_is_said_to_be_missing(tables: Tables, before: HistoryPosition | None) -> None:
    tables.rows |= {0: before} if before else {}

    follow(Topic([b"f"], first=5), tables)

    assert tables.kept == [b"f"]
    assert tables.rows[0].complete_from == NOON


def test_a_topic_that_is_another_one_is_read_from_its_beginning_and_said_to_lack_what_was_before(
    tables: Tables,
) -> None:
    tables.rows[0] = HistoryPosition(9, NOON, None)

    follow(Topic([b"a"]), tables)

    assert tables.kept == [b"a"]
    assert (tables.rows[0].position, tables.rows[0].complete_from) == (1, NOON)


def test_records_that_are_lost_while_it_reads_are_missing_after_it_begins_again(tables: Tables) -> None:
    topic = Topic([b"a"])
    writer = follow(topic, tables)
    topic.is_gone = True

    goes_on = writer.step()
    topic.is_gone, topic.first, topic.records = False, 4, [b"e"]
    writer.start()
    writer.step()

    assert not goes_on
    assert tables.rows[0] == HistoryPosition(5, NOON, NOON)


def test_a_record_that_is_no_alert_stops_nobody(tables: Tables) -> None:
    follow(Topic([b"broken", b"a"]), tables)

    assert (tables.kept, tables.rows[0].position) == ([b"a"], 2)


@pytest.mark.parametrize("is_untidy", [False, True])
def test_what_is_open_is_moved_before_anything_is_folded_and_tidied_once_in_a_while(
    tables: Tables, *, is_untidy: bool
) -> None:
    tables.is_untidy = is_untidy

    follow(Topic([b"a", b"b"]), tables, rounds=5)

    assert tables.done == ["moved", "kept", "kept", "tidied"]
    assert tables.rows[0].position == 2
