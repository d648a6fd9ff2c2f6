"""The live part of the demo: a trading day arrives, and a rebuild in between changes states but no numbers.

A few windows of one store are shown as readers see them over REST, beside the oracle's recompute of the master files.
Without a terminal, the table becomes a few plain lines.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo

import httpx
from rich.live import Live
from rich.table import Table

from deploy.console import PLAIN_EVERY_SECONDS, is_terminal, print_message, stderr
from lab.demo.journey import zone_of
from lab.demo.oracle import Oracle
from lab.demo.progress import LayerProgress
from lab.demo.trading_day import WATCHED_UNTIL, ReceiptPlayback, TradingDay
from master_dataset.errors import OperatorError
from master_dataset.storage import open_table
from views.core.cut import instant, seconds
from views.sales import SALES

WINDOW_SECONDS = 900


@dataclass(frozen=True)
class WatchedWindow:
    """Net sales of one window in cents. None: the layer has no event of it. `final`: as in `/v1/metrics`."""

    window: int
    batch: int | None
    speed: int | None
    merged: int | None
    recomputed: int | None
    final: bool

    @property
    def is_equal(self) -> bool:
        """Whether the merged answer equals a full recompute."""
        return self.merged == self.recomputed


@dataclass(frozen=True)
class WatchedWindows:
    """The watched windows at one moment. `waiting`: `waiting_for_batch` of this store and these days."""

    rows: Sequence[WatchedWindow]
    publication: int
    cut: datetime
    waiting: int

    @property
    def is_equal(self) -> bool:
        """Whether every window is equal."""
        return all(row.is_equal for row in self.rows)


class WindowReader:
    """Reads the watched windows of one store."""

    def __init__(self, client: httpx.Client, master: str, oracle: Oracle, store: str, windows: Sequence[int]) -> None:
        """`client`: of the REST API, which is closed with this; `master`: the folder of the receipts' Delta table."""
        self._client = client
        self._master, self._oracle = master, oracle
        self.store, self.zone, self._windows = store, ZoneInfo(zone_of(int(store))), sorted(windows)

    def read(self) -> WatchedWindows:
        """Query the cells and the metric, then recompute. Unequal may only mean that a layer has not read yet."""
        cells, points = self._ask("/v1/views/sales/cells"), self._ask("/v1/metrics/net_sales", grain="15m")
        as_of = cells["as_of"]
        cut = datetime.fromisoformat(as_of["cut"])
        shown = {seconds(datetime.fromisoformat(cell["window"])): cell for cell in cells["cells"]}
        finals = {seconds(datetime.fromisoformat(at["start"])): at["final"] for at in points["series"][0]["points"]}
        days = {instant(window).date() for window in self._windows}
        self._oracle.recompute(self._oracle.master(open_table(self._master), days), cut, self.store)
        recomputed = self._recomputed()
        rows = [_row(at, shown.get(at, {}), recomputed.get(at), final=finals[at]) for at in self._windows]
        return WatchedWindows(rows, as_of["publication"], cut, as_of["waiting_for_batch"])

    def url(self, path: str, **more: str) -> str:
        """Return a query for these windows as a URL."""
        return str(self._client.build_request("GET", path, params=self._parameters(more)).url)

    def _recomputed(self) -> dict[int, int | None]:
        cells = self._oracle.cells(SALES).items()
        return {int(str(key[1])): _net(dict(zip(SALES.columns, states, strict=True))) for key, states in cells}

    def _ask(self, path: str, **more: str) -> Any:  # noqa: ANN401 - an answer's JSON
        answer = self._client.get(path, params=self._parameters(more))
        answer.raise_for_status()
        return answer.json()

    def _parameters(self, more: Mapping[str, str]) -> dict[str, str]:
        first, last = instant(self._windows[0]), instant(self._windows[-1] + WINDOW_SECONDS)
        span = {"from": first.astimezone(UTC).isoformat(), "to": last.astimezone(UTC).isoformat()}
        return {"store": self.store, **span, **more}


def _row(window: int, cell: Mapping[str, Any], recomputed: int | None, *, final: bool) -> WatchedWindow:
    return WatchedWindow(
        window, _net(cell.get("batch")), _net(cell.get("speed")), _net(cell.get("merged")), recomputed, final
    )


def _net(states: Mapping[str, int] | None) -> int | None:
    return None if states is None else int(states["gross_sales"] - states["returns_value"])


COLUMNS = ("window", "batch part", "speed part", "merged", "full recompute", "equal", "state")


class LiveTable:
    """The table of the watched windows."""

    def __init__(self, watch: WindowReader) -> None:
        """`watch`: its store and time zone."""
        self._watch = watch
        self._live = Live(console=stderr, refresh_per_second=4) if is_terminal() else None
        self._said_at = self._changed_at = float("-inf")
        self._said = frozenset[str]()

    def __enter__(self) -> Self:
        """Start to draw."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state on the screen."""
        if self._live is not None:
            self._live.stop()

    def show(self, look: WatchedWindows, doing: str, *, important: bool = False) -> None:
        """Show the windows and what the demo is doing. Without a terminal, only what has changed is printed."""
        title = (
            f"store {self._watch.store}, net sales in USD   publication {look.publication}, "
            f"cut {look.cut.astimezone(UTC):%H:%M:%S} UTC   waiting for batch {look.waiting}   {doing}"
        )
        if self._live is not None:
            self._live.update(_drawn(title, look.rows, self._watch))
        elif important or time.monotonic() - self._said_at >= PLAIN_EVERY_SECONDS:
            self._print_changes([f"  {title}", *(_line(row, self._watch) for row in look.rows)])

    def _print_changes(self, lines: Sequence[str]) -> None:
        """Print the first line and those that have changed since, and how long nothing has."""
        title, *rows = lines
        changed = [row for row in rows if row not in self._said]
        if changed or title not in self._said:
            self._changed_at = time.monotonic()
        else:
            title = f"{title}, {time.monotonic() - self._changed_at:.0f} s"
        self._said_at, self._said = time.monotonic(), frozenset(lines)
        for line in (title, *changed):
            print_message(line)


def _line(row: WatchedWindow, watch: WindowReader) -> str:
    cells = zip(COLUMNS, _cells(row, watch), strict=True)
    return f"    {'   '.join(f'{name} {cell}' for name, cell in cells)}"


def _drawn(title: str, rows: Sequence[WatchedWindow], watch: WindowReader) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(COLUMNS):
        table.add_column(name, justify="right" if 0 < number <= 4 else "left")  # noqa: PLR2004 - the columns of money
    for row in rows:
        table.add_row(*_cells(row, watch), style={"final": "green", "provisional": "yellow"}.get(_state(row), "dim"))
    return table


def _cells(row: WatchedWindow, watch: WindowReader) -> tuple[str, ...]:
    window = f"{instant(row.window).astimezone(watch.zone):%a %d %b %H:%M}"
    money = [_money(cents) for cents in (row.batch, row.speed, row.merged, row.recomputed)]
    return (window, *money, "yes" if row.is_equal else "not yet", _state(row))


def _state(row: WatchedWindow) -> str:
    if row.merged is None:
        return "-"
    return "final" if row.final else "provisional"


def _money(cents: int | None) -> str:
    return "-" if cents is None else f"{cents / 100:,.2f}"


LOOK_SECONDS, LOOK_SHARE = 1.0, 0.2
"""Between two looks, and the share of the time that they may take: each recomputes days, on the cores of the layers."""
POLL_SECONDS = 0.25
"""Between two checks whether a part of the day is over."""
SETTLE_SECONDS = 180.0
Rebuild = Callable[[], str]
"""Rebuilds, and returns a short description of the result."""


@dataclass(frozen=True)
class WatchedDay:
    """A trading day that is played and watched."""

    day: TradingDay
    play: ReceiptPlayback
    watch: WindowReader
    table: LiveTable
    reading: LayerProgress

    def run(self, rebuild: Rebuild) -> str:
        """Play, rebuild in between, play on. Returns what the rebuild changed.

        Raises OperatorError if the rebuild changed a number.
        """
        self._until(lambda: self.play.has_reached(WATCHED_UNTIL + 0.1))
        before = self._settled("about to rebuild")
        with ThreadPoolExecutor(1, "rebuild") as pool:
            rebuilding = pool.submit(rebuild)
            self._until(rebuilding.done, "rebuilding while events flow")
            after = self._settled(rebuilding.result())
        self.play.release()
        self._until(self.play.is_over)
        self.table.show(self.watch.read(), "all sent", important=True)
        return self._compared(before, after)

    def _until(self, over: Callable[[], bool], doing: str = "playing") -> None:
        next_look = time.monotonic()
        while not (over() or self.play.is_over()):
            if (began := time.monotonic()) >= next_look:
                self._show(self.watch.read(), doing)
                next_look = began + max(LOOK_SECONDS, (time.monotonic() - began) / LOOK_SHARE)
            time.sleep(POLL_SECONDS)

    def _settled(self, doing: str) -> WatchedWindows:
        """Wait until both layers have read what was sent; then all windows must be equal, or become so soon."""
        ends = self.reading.ends()
        self._until(lambda: self.reading.has_read(ends))
        deadline = time.monotonic() + SETTLE_SECONDS
        while not (look := self.watch.read()).is_equal:
            if time.monotonic() > deadline:
                message = f"merged and recomputed numbers of store {self.watch.store} stay different: {look.rows}"
                raise OperatorError(message, do="galatea verify")
            time.sleep(POLL_SECONDS)
        self._show(look, doing, important=True)
        return look

    def _show(self, look: WatchedWindows, doing: str, *, important: bool = False) -> None:
        self.table.show(look, f"{doing}, {self.play.sent:,} of {self.play.total:,} sent", important=important)

    def _late(self, look: WatchedWindows) -> list[WatchedWindow]:
        return [row for row in look.rows if row.window == self.day.late_window]

    def _compared(self, before: WatchedWindows, after: WatchedWindows) -> str:
        if not all(row.merged for row in before.rows if row.window != self.day.late_window):
            raise OperatorError(f"store {self.watch.store} shows no sales that were sent", do="galatea lag")
        pairs = [pair for pair in zip(before.rows, after.rows, strict=True) if pair[0].window != self.day.late_window]
        moved = [old.window for old, new in pairs if old.merged != new.merged]
        if moved:
            raise OperatorError(f"the rebuild moved the numbers of windows {moved}", do="galatea verify")
        became = sum(new.final and not old.final for old, new in pairs)
        gained = sum((row.merged or 0) * sign for look, sign in ((after, 1), (before, -1)) for row in self._late(look))
        return (
            f"{became} of {len(pairs)} watched windows went from provisional to final, 0 numbers moved; "
            f"the late receipt that waited brought {gained / 100:,.2f} USD to its window"
        )
