"""A simulation as a folder: one file of JSON lines per source, the shops as `stores.yaml`, and what was counted."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from lab.simulation.simulation import Simulation
from lab.simulation.stores_text import stores_text
from master_dataset.errors import RequestError

SIMULATED = "Simulated: no shop, person, device or receipt in it is real."
Told = Callable[[datetime], None]
"""Hears of every record how far the time has come."""


def write(simulation: Simulation, folder: Path, told: Told) -> None:
    """Write all of it. RequestError if the folder holds anything already, or cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RequestError(f"`{folder}` is not empty, and nothing in it is overwritten.", do="Name a new folder.")
        (folder / "stores.yaml").write_text(f"# {SIMULATED}\n{stores_text(simulation.stores)}", encoding="utf-8")
        _write_lines(simulation, folder, told)
        (folder / "manifest.json").write_bytes(orjson.dumps(manifest(simulation), option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise RequestError(f"`{folder}` cannot be written: {error.strerror}.", do="Name another folder.") from error


def manifest(simulation: Simulation) -> dict[str, Any]:
    """What the simulation says of itself once all of it was given."""
    return {
        "simulated": True,
        "note": SIMULATED,
        "seed": simulation.seed,
        "from": simulation.first,
        "to": simulation.last,
        "faults": simulation.faults,
        "stores": _ids(simulation),
        "sent": simulation.tally.sent,
        "sources": simulation.tally.told(),
    }


def _ids(simulation: Simulation) -> Sequence[str]:
    return [store.id for store in simulation.stores]


def _write_lines(simulation: Simulation, folder: Path, told: Told) -> None:
    with ExitStack() as opened:
        files = {
            topic: opened.enter_context((folder / f"{topic}.jsonl").open("wb")) for topic in sorted(simulation.topics)
        }
        for send_at, topic, value in simulation.deliveries():
            files[topic].write(value + b"\n")
            told(send_at)
