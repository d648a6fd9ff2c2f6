"""What the streaming processes say of themselves, without a stream."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from deploy.stack import targets
from master_dataset.lag import Lag
from master_dataset.lag_table import moved

START = datetime(2026, 11, 21, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_a_position_is_where_it_is_since_it_was_first_seen_there() -> None:
    seen = moved(
        {("t", 0): (5, START), ("t", 1): (5, START)}, [Lag("t", 0, 5, 9, None), Lag("t", 1, 6, 9, None)], START + SECOND
    )

    assert seen == {("t", 0): (5, START), ("t", 1): (6, START + SECOND)}


def test_the_place_of_metrics_is_a_file_that_prometheus_reads(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()

    targets.write(tmp_path, "speed", 4711)

    expected = b'[{"targets":["127.0.0.1:4711"],"labels":{"component":"speed"}}]'
    assert (tmp_path / "run" / "speed.targets.json").read_bytes() == expected
    assert targets.url(tmp_path, "speed") == "http://127.0.0.1:4711/metrics"
    assert targets.url(tmp_path, "archive") is None
