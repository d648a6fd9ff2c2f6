"""A few windows of one store, as readers see them over REST, beside what the oracle makes of the master files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import httpx
from deltalake import DeltaTable

from lab.demo.journey import zone_of
from lab.demo.oracle import Oracle
from views.core.cut import instant, seconds
from views.sales import SALES

WINDOW_SECONDS = 900


@dataclass(frozen=True)
class Row:
    """Net sales of one window in cents. None: that layer knows no event of it. `final`: as `/v1/metrics` says."""

    window: int
    batch: int | None
    speed: int | None
    merged: int | None
    recomputed: int | None
    final: bool

    @property
    def is_equal(self) -> bool:
        """Whether the merged answer is what a full recompute says."""
        return self.merged == self.recomputed


@dataclass(frozen=True)
class Look:
    """One look at the watched windows. `waiting`: of this store and these days."""

    rows: Sequence[Row]
    publication: int
    cut: datetime
    waiting: int

    @property
    def is_equal(self) -> bool:
        """Whether every row is."""
        return all(row.is_equal for row in self.rows)


class Watch:
    """Looks at the windows of one store."""

    def __init__(self, url: str, master: str, oracle: Oracle, store: str, windows: Sequence[int]) -> None:
        """`url` of the REST interface, `master`: the folder of the receipts' table."""
        self._client = httpx.Client(base_url=url, trust_env=False, timeout=10)
        self._master, self._oracle = master, oracle
        self.store, self.zone, self._windows = store, ZoneInfo(zone_of(int(store))), sorted(windows)

    def look(self) -> Look:
        """Ask for the cells and the metric, then recompute. Unequal may only mean: not read yet."""
        cells, points = self._ask("/v1/views/sales/cells"), self._ask("/v1/metrics/net_sales", grain="15m")
        as_of = cells["as_of"]
        cut = datetime.fromisoformat(as_of["cut"])
        shown = {seconds(datetime.fromisoformat(cell["window"])): cell for cell in cells["cells"]}
        finals = {seconds(datetime.fromisoformat(at["start"])): at["final"] for at in points["series"][0]["points"]}
        days = {instant(window).date() for window in self._windows}
        self._oracle.recompute(self._oracle.master(DeltaTable(self._master), days), cut, self.store)
        recomputed = self._recomputed()
        rows = [_row(at, shown.get(at, {}), recomputed.get(at), final=finals[at]) for at in self._windows]
        return Look(rows, as_of["publication"], cut, as_of["waiting_for_batch"])

    def question(self, path: str, **more: str) -> str:
        """Write a question about these windows as a URL."""
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


def _row(window: int, cell: Mapping[str, Any], recomputed: int | None, *, final: bool) -> Row:
    return Row(window, _net(cell.get("batch")), _net(cell.get("speed")), _net(cell.get("merged")), recomputed, final)


def _net(states: Mapping[str, int] | None) -> int | None:
    return None if states is None else int(states["gross_sales"] - states["returns_value"])
