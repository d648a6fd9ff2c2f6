"""Results of drills: one JSON line for each run, in a folder outside of the source tree."""

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("DRILL_LEDGER", ".galatea/ledger"))


def append(name: str, line: str) -> None:
    """Append one line of JSON to the ledger called `name`, which is created if there is none."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def lines_of(name: str) -> list[dict[str, Any]]:
    """All lines of the ledger called `name`, oldest first; none if there is no such ledger."""
    path = FOLDER / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
