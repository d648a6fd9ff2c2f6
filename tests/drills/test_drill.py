"""The quick drill: a hostile stream while every process is killed in turn, and every number right in the end."""

from pathlib import Path

from deploy.jars import ensure_jars
from tests.drills.__main__ import drill_settings
from tests.drills.drill import Drill
from tests.drills.report import Order

QUICK = Order(seed=20261121, receipts=10_000, rebuilds=1, crashes=2, pauses=1, seconds=30)


def test_nothing_is_lost_twice_torn_or_too_large_while_every_process_is_killed(tmp_path: Path) -> None:
    settings = drill_settings(tmp_path, QUICK)
    ensure_jars(settings)

    report = Drill(QUICK, settings).run()

    assert report.wrong == []
    assert report.differing == 0
    assert report.cells > 0
    assert report.answers > 0
