"""Reads the examples, as `test_golden.py` says how they are written."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from tests.support import World

HERE = Path(__file__).parent
EXAMPLES = sorted(folder.parent.name for folder in HERE.glob("*/example.json"))
DAY = {"store": "1", "from_": "2026-03-07", "to": "2026-03-08"}


def read(example: str, name: str) -> Any:
    return json.loads((HERE / example / f"{name}.json").read_text())


def world_of(example: str, cut: str | None) -> World:
    """The events in the order of their receipt, and one publication."""
    said = read(example, "example")
    store = msgspec.convert({"id": "1", "timezone": "Europe/Bratislava", **said["store"]}, Store, strict=False)
    world = World(store, epoch=timedelta(seconds=said.get("epoch_seconds", 300)))
    sent = []
    for file in (HERE / example).glob("*.jsonl"):
        received = said.get("received", {}).get(file.stem, {})
        for number, line in enumerate(file.read_bytes().splitlines()):
            event = json.loads(line)
            lasts = timedelta(milliseconds=event.get("interval_ms", 0), seconds=1)
            ended = datetime.fromisoformat(event["happened_at"]) + lasts
            at = received.get(str(number))
            sent.append((datetime.fromisoformat(at) if at else ended, file.stem, number, line))
    for at, topic, _, line in sorted(sent):
        world.receive(line, at, registered_sources()[topic])
    if cut:
        world.rebuild(cut)
    return world
