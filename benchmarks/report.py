"""The table on the terminal, and the results as JSON with the machine and its load beside them."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.measured import Measured

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
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"  # noqa: PLR2004 - digits that say something
