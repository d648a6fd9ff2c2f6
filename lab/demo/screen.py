"""What the demo shows: stages with a bar, and a live table. Without a terminal both become plain lines, few of them."""

import time
from collections.abc import Sequence
from datetime import UTC
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.table import Table

from deploy.console import Steps, is_terminal, say, stderr
from lab.demo.watch import Look, Row, Watch
from views.core.cut import instant

PLAIN_EVERY_SECONDS = 10.0
COLUMNS = ("window", "batch part", "speed part", "merged", "full recompute", "equal", "state")


class Stage:
    """One long step: a bar with an estimate on a terminal, else a line every ten seconds and one at the end."""

    def __init__(self, what: str) -> None:
        """`what` is being done."""
        self._what, self._steps = what, Steps(what)
        self._began, self._said_at = time.monotonic(), time.monotonic()

    def __enter__(self) -> Self:
        """Begin."""
        self._steps.__enter__()
        if not is_terminal():
            say(f"  {self._what} ...")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say how long it took."""
        self._steps.__exit__(kind, error, trace)
        if kind is None:
            say(f"  {self._what}: done in {time.monotonic() - self._began:.1f} s")

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total`, working on `what`."""
        if is_terminal() or time.monotonic() - self._said_at >= PLAIN_EVERY_SECONDS:
            self._said_at = time.monotonic()
            self._steps.step(done, total, what)


class LiveTable:
    """The watched windows, drawn again at every look."""

    def __init__(self, watch: Watch) -> None:
        """`watch` says which store and where its clocks are."""
        self._watch = watch
        self._live = Live(console=stderr, refresh_per_second=4) if is_terminal() else None
        self._said_at = float("-inf")

    def __enter__(self) -> Self:
        """Begin to draw."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last look on the screen."""
        if self._live is not None:
            self._live.stop()

    def show(self, look: Look, doing: str, *, important: bool = False) -> None:
        """Show a look and what is being done meanwhile."""
        title = (
            f"store {self._watch.store}, net sales in USD   publication {look.publication}, "
            f"cut {look.cut.astimezone(UTC):%H:%M:%S} UTC   waiting for batch {look.waiting}   {doing}"
        )
        if self._live is not None:
            self._live.update(_drawn(title, look.rows, self._watch))
        elif important or time.monotonic() - self._said_at >= PLAIN_EVERY_SECONDS:
            self._said_at = time.monotonic()
            say(f"  {title}")
            for row in look.rows:
                words = (f"{name} {cell}" for name, cell in zip(COLUMNS, _cells(row, self._watch), strict=True))
                say(f"    {'   '.join(words)}")


def _drawn(title: str, rows: Sequence[Row], watch: Watch) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(COLUMNS):
        table.add_column(name, justify="right" if 0 < number <= 4 else "left")  # noqa: PLR2004 - the columns of money
    for row in rows:
        table.add_row(*_cells(row, watch), style={"final": "green", "provisional": "yellow"}.get(_state(row), "dim"))
    return table


def _cells(row: Row, watch: Watch) -> tuple[str, ...]:
    window = f"{instant(row.window).astimezone(watch.zone):%a %d %b %H:%M}"
    money = [_money(cents) for cents in (row.batch, row.speed, row.merged, row.recomputed)]
    return (window, *money, "yes" if row.is_equal else "not yet", _state(row))


def _state(row: Row) -> str:
    if row.merged is None:
        return "-"
    return "final" if row.final else "provisional"


def _money(cents: int | None) -> str:
    return "-" if cents is None else f"{cents / 100:,.2f}"
