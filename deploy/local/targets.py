"""Where each process shows its metrics: files of the form that Prometheus reads targets from (`file_sd_configs`)."""

from pathlib import Path

import orjson

from deploy.local.nodes import LOOPBACK


def write(home: Path, name: str, port: int) -> None:
    """Name the port of a process; a reader never sees half of it."""
    place = path(home, name)
    part = place.with_suffix(".part")
    part.write_bytes(orjson.dumps([{"targets": [f"{LOOPBACK}:{port}"], "labels": {"component": name}}]))
    part.replace(place)


def url(home: Path, name: str) -> str | None:
    """Where the metrics of a process are, or were when it ran last; None if it never showed any."""
    place = path(home, name)
    if not place.exists():
        return None
    [target] = orjson.loads(place.read_bytes())
    return f"http://{target['targets'][0]}/metrics"


def path(home: Path, name: str) -> Path:
    """The file of a process."""
    return home / "run" / f"{name}.targets.json"
