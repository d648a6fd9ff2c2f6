"""What the streaming processes say of themselves, without a stream."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from prometheus_client import REGISTRY

from deploy.local.records import metrics_url, write_metrics_target
from deploy.services import runner
from deploy.services.archive import ArchiveWatch
from master_dataset.kafka.lag import Lag, last_moves
from master_dataset.kafka.partition_progress import PartitionProgress
from tests.support.raw_http import wire

START = datetime(2026, 11, 21, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Alarms:
    """Remembers what was noticed."""

    def __init__(self) -> None:
        self.places: list[str] = []

    def notice(self, name: str, _at: datetime, place: str, _detail: str) -> None:
        assert name == "clock_stepped_back"
        self.places.append(place)


@pytest.fixture
def alarms() -> Alarms:
    return Alarms()


@pytest.fixture
def watch(alarms: Alarms) -> ArchiveWatch:
    """A published cut at the start, and five seconds of skew."""
    found = ArchiveWatch(alarms.notice, lambda: START, 5 * SECOND)
    found.refresh()
    return found


def kept(oldest: datetime, dead_letters: int = 0) -> dict[int, PartitionProgress]:
    refused = Counter({"not_json": dead_letters} if dead_letters else {})
    return {1: PartitionProgress(9, oldest, 7, refused, oldest, received=7 + dead_letters)}


def test_events_and_dead_letters_are_counted_by_reason(watch: ArchiveWatch) -> None:
    watch.on_batch("counted", kept(START, dead_letters=2), repeats=True)
    watch.on_batch("counted", kept(START, dead_letters=1), repeats=False)

    assert REGISTRY.get_sample_value("galatea_received_total", {"topic": "counted"}) == 17
    assert REGISTRY.get_sample_value("galatea_events_total", {"topic": "counted"}) == 14
    labels = {"topic": "counted", "reason": "not_json"}
    assert REGISTRY.get_sample_value("galatea_dead_letters_total", labels) == 3


def test_a_stamp_below_the_cut_is_noticed_unless_the_micro_batch_may_be_a_repetition(
    watch: ArchiveWatch, alarms: Alarms
) -> None:
    watch.on_batch("repeated", kept(START - SECOND), repeats=True)
    watch.on_batch("new", kept(START - SECOND), repeats=False)

    assert alarms.places == ["new/1"]


def test_a_stamp_behind_the_micro_batch_before_is_noticed(watch: ArchiveWatch, alarms: Alarms) -> None:
    for second in (60, 56, 54):
        watch.on_batch("stepping", kept(START + second * SECOND), repeats=False)

    assert alarms.places == ["stepping/1"]


def test_a_position_is_where_it_is_since_it_was_first_seen_there() -> None:
    seen = last_moves(
        {("t", 0): (5, START), ("t", 1): (5, START)}, [Lag("t", 0, 5, 9, None), Lag("t", 1, 6, 9, None)], START + SECOND
    )

    assert seen == {("t", 0): (5, START), ("t", 1): (6, START + SECOND)}


def test_the_place_of_metrics_is_a_file_that_prometheus_reads(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()

    write_metrics_target(tmp_path, "speed", 4711)

    expected = b'[{"targets":["127.0.0.1:4711"],"labels":{"component":"speed"}}]'
    assert (tmp_path / "run" / "speed.targets.json").read_bytes() == expected
    assert metrics_url(tmp_path, "speed") == "http://127.0.0.1:4711/metrics"
    assert metrics_url(tmp_path, "archive") is None


def test_who_comes_for_metrics_and_says_nothing_is_let_go_and_others_get_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    monkeypatch.setattr(runner, "SCRAPE_SECONDS", 0.5)
    (tmp_path / "run").mkdir()
    runner.Process("metrics").show_metrics(0)
    url = metrics_url(tmp_path, "metrics") or ""

    with wire(url) as silent:
        collected = httpx.get(url, trust_env=False)
        silent.listen(1)

        assert silent.is_closed
    assert (collected.status_code, "python_info" in collected.text) == (200, True)
