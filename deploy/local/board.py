"""The states of the components, as the supervisor writes them down and `galatea status` reads them."""

import os
from collections.abc import Mapping
from pathlib import Path

import orjson

STARTING, RUNNING, BACKING_OFF, STOPPED, FAILED = "starting", "running", "backing_off", "stopped", "failed"


def write(home: Path, states: Mapping[str, str]) -> None:
    """Name to state; a reader never sees half of it."""
    place = home / "run" / "states.json"
    part = place.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(orjson.dumps(dict(states)))
    part.replace(place)


def read(home: Path) -> dict[str, str]:
    """Name to state; empty where no stack was ever started."""
    place = home / "run" / "states.json"
    return orjson.loads(place.read_bytes()) if place.exists() else {}
