"""What the demo prints of the watched windows where there is no terminal."""

from datetime import UTC, datetime
from typing import cast
from zoneinfo import ZoneInfo

import pytest

from lab.demo.live import LiveTable, WatchedWindow, WatchedWindows, WindowReader

CUT = datetime(2026, 11, 25, 9, 0, tzinfo=UTC)
FIRST, SECOND = (int(datetime(2026, 11, 25, hour, tzinfo=UTC).timestamp()) for hour in (7, 8))


class Watch:
    """Of one store."""

    store, zone = "7", ZoneInfo("UTC")


def windows(*cents: int | None) -> WatchedWindows:
    rows = [
        WatchedWindow(window, None, each, each, each, final=False)
        for window, each in zip((FIRST, SECOND), cents, strict=True)
    ]
    return WatchedWindows(rows, 1, CUT, 0)


def test_without_a_terminal_only_what_has_changed_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    table = LiveTable(cast("WindowReader", Watch()))
    printed = []
    for look, doing in (
        (windows(100, None), "playing"),
        (windows(100, None), "playing"),
        (windows(100, 250), "playing"),
        (windows(100, 250), "all sent"),
    ):
        table.show(look, doing, important=True)
        printed.append([line.strip().split("   ")[0] for line in capsys.readouterr().err.splitlines()])

    assert [len(lines) for lines in printed] == [3, 0, 2, 1]
    assert printed[2][1].endswith("08:00")
