"""What the settings say of other machines, looked at from this one: the Spark master, the master dataset's folder."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deploy.executors import on_cluster
from deploy.local.finding import Finding

if TYPE_CHECKING:
    from deploy.settings import Settings

_SECONDS = 3.0
_SPARK_PORT = 7077


def elsewhere(settings: "Settings") -> Iterator[Finding]:
    """Nothing to find as long as everything is in the home and Spark is local."""
    if on_cluster(settings) and settings.spark_master.startswith("spark://"):
        yield _spark(settings.spark_master)
    for name in ("master_uri", "checkpoint_uri"):
        folder = as_folder(getattr(settings, name))
        if folder is not None and settings.home not in folder.parents:
            yield _folder(f"GALATEA_{name.upper()}", folder)


def as_folder(uri: str) -> Path | None:
    """The folder, if it is one."""
    return None if "://" in uri else Path(uri)


def _spark(url: str) -> Finding:
    places = [urlsplit(f"//{place}") for place in url.removeprefix("spark://").split(",")]
    silent = [place.netloc for place in places if not _answers(place.hostname or "", place.port or _SPARK_PORT)]
    ok = len(silent) < len(places)  # of several masters one leads
    do = "" if ok else "start the Spark master and its workers, or mend GALATEA_SPARK_MASTER"
    return Finding("spark", ok, f"{url} {'answers' if ok else 'does not answer'}", do)


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), _SECONDS).close()
    except OSError:
        return False
    return True


def _folder(setting: str, folder: Path) -> Finding:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    ok = os.access(there, os.W_OK)
    do = "" if ok else f"mount it here as on every worker, or mend {setting}"
    return Finding(setting, ok, f"{folder} {'can' if ok else 'cannot'} be written", do)
