"""One case: a good question with something else in it, and the status and the code that have to come back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("cases.json")
DAY = {"from": "2026-11-21", "to": "2026-11-22", "store": "1"}
GOOD: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "metric": ("/v1/metrics/net_sales", DAY),
    "cells": ("/v1/views/sales/cells", DAY),
    "index": ("/v1/index/net_sales", DAY),
    "live": ("/v1/live/net_sales", DAY),
    "raw": ("/v1/raw/pos_transactions", {"store": "1", "day": "2026-11-21"}),
    "publications": ("/v1/publications", {}),
    "corrections": ("/v1/corrections", {}),
    "letters": ("/v1/dead-letters", {}),
    "recompute": ("/v1/recomputes/no-such", {}),
}
"""Where a question goes, and what is asked for where a case says nothing else."""


@dataclass(frozen=True)
class QueryCase:
    """`arguments`: of the question, by name. `key`: a word for who asks, or the text of a key; None for nobody."""

    name: str
    path: str
    arguments: Mapping[str, Any]
    key: str | None
    status: int
    code: str | None


def query_cases() -> list[QueryCase]:
    """All of them."""
    return [_case(entry) for entry in json.loads(CASES.read_text(encoding="utf-8"))]


def _case(entry: Mapping[str, Any]) -> QueryCase:
    path, usual = GOOD[entry["ask"]]
    arguments = {**usual, **entry.get("with", {})}
    given = {name: value for name, value in arguments.items() if value is not None}
    return QueryCase(
        entry["name"], entry.get("path", path), given, entry.get("key"), entry["expected"], entry.get("code")
    )
