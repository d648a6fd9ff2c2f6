"""Results of benchmarks: one row of the table, the printed table, and the JSON that is kept with the machine's load."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import psutil
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Measured:
    """`ours` and `beside` in `unit`. `limit` bounds their ratio (ours / beside), if something was promised.

    `better`: whether a high or a low ratio is good. `details` are kept with the results and shown beneath the table.
    """

    name: str
    ours: float
    beside: float
    unit: str
    what_is_beside: str
    better: Literal["high", "low"] = "high"
    limit: float | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """How many times the baseline we reach."""
        return self.ours / self.beside if self.beside else 0.0

    @property
    def holds(self) -> bool | None:
        """Whether the promise is kept; None where none was made."""
        if self.limit is None:
            return None
        return self.ratio >= self.limit if self.better == "high" else self.ratio <= self.limit


def percentile(values: list[float], share: float) -> float:
    """The percentile, by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


RESULTS = Path(__file__).with_name("results")
GIB = 1 << 30
WORDS = {True: "holds", False: "missed", None: ""}


class Load:
    """How busy the machine was while we measured: our own processes and everybody else's."""

    def __init__(self) -> None:
        """From now on."""
        self._at, self._cpu = time.monotonic(), psutil.cpu_times()

    def facts(self) -> dict[str, object]:
        """The machine in neutral words."""
        now = psutil.cpu_times()
        idle = (now.idle - self._cpu.idle) / max(1e-9, (time.monotonic() - self._at) * (os.cpu_count() or 1))
        return {
            "cores": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / GIB),
            "idle_share": round(max(0.0, min(1.0, idle)), 2),
            "load_average_15m": round(os.getloadavg()[2], 1),
        }


def show(rows: Sequence[Measured], machine: dict[str, object]) -> None:
    """Print the table."""
    table = Table("measured", "ours", "beside it", "unit", "ratio", "promised", "", title="make bench")
    for row in rows:
        sign = "at least" if row.better == "high" else "at most"
        promised = "" if row.limit is None else f"{sign} {row.limit:g}"
        beside = f"{_short(row.beside)} {row.what_is_beside}"
        table.add_row(row.name, _short(row.ours), beside, row.unit, f"{row.ratio:.3g}", promised, WORDS[row.holds])
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table)
    console.print(f"machine: {machine}")
    for row in rows:
        if row.details:
            console.print(f"{row.name}: {dict(row.details)}", highlight=False)


def keep(rows: Sequence[Measured], machine: dict[str, object], size: int) -> Path:
    """Write the results beside the earlier ones."""
    at = datetime.now(UTC)
    found = [asdict(row) | {"ratio": row.ratio, "holds": row.holds} for row in rows]
    body = {"measured_at": at.isoformat(timespec="seconds"), "size": size, "machine": machine, "results": found}
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{at:%Y-%m-%d-%H%M}.json"
    path.write_text(json.dumps(body, indent=1) + "\n")
    return path


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"  # noqa: PLR2004 - three significant digits
