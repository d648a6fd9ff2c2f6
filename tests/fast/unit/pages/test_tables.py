"""Long lists as people read them: corrections by cell, lag by topic."""

from datetime import datetime

from serving_layer.health.watched import LagMeasurement
from serving_layer.pages.corrections import rows_by_cell
from serving_layer.pages.stack import TopicBacklog, backlog_by_topic
from serving_layer.responses.publications import Correction
from tests.support import World
from tests.support.process_metrics import WorldWatch
from tests.support.world import at
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

NOW = "2026-11-21T09:31:00Z"


def line(state: str, shown: int | None, corrected: int | None, window: str = "10:00") -> Correction:
    return Correction(
        view="sales",
        store="12",
        window=window,
        dimensions={},
        state=state,
        shown=shown,
        corrected=corrected,
        cause="waited",
        events=(),
        events_total=0,
        difference=(corrected or 0) - (shown or 0),
    )


def measured(reader: str, topic: str, partition: int, records: int, seconds: float) -> LagMeasurement:
    """A moment ago."""
    now: datetime = at(NOW)
    since = datetime.fromtimestamp(now.timestamp() - seconds, now.tzinfo) if records else None
    return LagMeasurement(reader, topic, partition, 100 - records, 100, records, since, now, now)


def test_the_lines_of_a_cell_stand_together() -> None:
    rows = [line("units", 1, 2), line("net", 5, 9), line("net", 1, 0, "10:15")]

    assert [[row.state for row in cell] for cell in rows_by_cell(rows)] == [["units", "net"], ["net"]]


def test_of_a_new_cell_only_what_it_has_is_shown() -> None:
    rows = [line("stay_0", None, 0), line("visits", None, 3), line("stay_1", None, None)]

    assert [[row.state for row in cell] for cell in rows_by_cell(rows)] == [["visits"]]


def test_a_new_cell_that_has_nothing_is_not_lost() -> None:
    rows = [line("a", None, 0), line("b", None, 0)]

    assert [[row.state for row in cell] for cell in rows_by_cell(rows)] == [["a"]]


def test_a_state_that_became_nothing_is_shown() -> None:
    assert len(rows_by_cell([line("a", 4, 0), line("b", 0, 0)])[0]) == 2


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


def test_a_reader_is_behind_when_something_waits_for_long(world: World) -> None:
    watch = WorldWatch(world)
    watch.measured = [measured("archive", "pos", 0, 1, 2.0), measured("speed", "pos", 0, 7, 61.0)]

    page = Browsing(Asking(world, watched=watch)).words("/stack")

    assert "archive running writes the master dataset 1 record to read, the oldest waiting for 2.0 s" in page
    assert "speed behind computes provisional cells 7 records to read, the oldest waiting for 61.0 s" in page
