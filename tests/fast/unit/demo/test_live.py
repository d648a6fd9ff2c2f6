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


def test_without_a_terminal_changes_are_printed_and_how_long_there_is_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = LiveTable(cast("WindowReader", Watch()))
    printed = []
    for look, doing in (
        (windows(100, None), "playing"),
        (windows(100, None), "playing"),
        (windows(100, 250), "playing"),
        (windows(100, 250), "all sent"),
    ):
        table.show(look, doing, important=True)
        printed.append([line.strip() for line in capsys.readouterr().err.splitlines()])

    assert [len(lines) for lines in printed] == [3, 1, 2, 1]
    assert printed[1][0].endswith("playing, 0 s")
    assert "08:00" in printed[2][1]
