"""Long lists as people read them: lag by topic."""

from datetime import datetime

from serving_layer.health.watched import AlarmEvent, LagMeasurement
from serving_layer.pages.stack import TopicBacklog, backlog_by_topic
from tests.support import World
from tests.support.process_metrics import WorldWatch
from tests.support.world import at
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

NOW = "2026-11-21T09:31:00Z"


def measured(reader: str, topic: str, partition: int, records: int, seconds: float) -> LagMeasurement:
    """A moment ago."""
    now: datetime = at(NOW)
    since = datetime.fromtimestamp(now.timestamp() - seconds, now.tzinfo) if records else None
    return LagMeasurement(reader, topic, partition, 100 - records, 100, records, since, now, now)


def test_the_lag_of_a_topic_is_that_of_all_its_partitions() -> None:
    lag = [
        measured("archive", "pos", 0, 2, 1.0),
        measured("archive", "pos", 1, 3, 4.0),
        measured("speed", "pos", 0, 0, 0.0),
        measured("archive", "counts", 0, 0, 0.0),
    ]

    assert backlog_by_topic(lag) == [
        ("counts", [TopicBacklog(0, 0.0), None]),
        ("pos", [TopicBacklog(5, 4.0), TopicBacklog(0, 0.0)]),
    ]


def test_late_events_that_wait_are_said_with_the_reason_why(world: World) -> None:
    watch = WorldWatch(world)
    cut = world.pointer.cut

    def as_operator() -> str:
        browsing = Browsing(Asking(world, watched=watch))
        browsing.sign_in()
        return browsing.words("/stack")

    nothing = as_operator()
    watch.passing["late_events"] = [AlarmEvent(cut, "speed", "")]
    waits = as_operator()
    watch.passing["late_events_left"] = [AlarmEvent(at(NOW), str(world.pointer.publication), "rolled_back")]

    left = as_operator()

    assert "Late events None: every event is counted." in nothing
    assert "Late events Some have waited for the next publication for" in waits
    assert "They wait for the schedule: a rebuild would undo the rollback." in left


def test_a_reader_is_behind_when_something_waits_for_long(world: World) -> None:
    watch = WorldWatch(world)
    watch.measured = [measured("archive", "pos", 0, 1, 2.0), measured("speed", "pos", 0, 7, 61.0)]

    operator, reader = (Browsing(Asking(world, watched=watch)) for _ in range(2))
    operator.sign_in()
    page, of_reader = operator.words("/stack"), reader.words("/stack")

    assert "archive running stores every event 1 record to read, the oldest waits for 2 s" in page
    assert "speed behind counts live numbers 7 records to read, the oldest waits for 1 min 01 s" in page
    assert "archive running stores every event speed behind counts live numbers" in of_reader
    assert "to read, the oldest waits" not in of_reader
