"""The cache of verified jars: `<cache>/jars/<first two digits>/<sha256>/<file name>`, shared by all homes of a user.

A file is there only if it was whole and right when it was put there: it is written beside its place, hashed, and moved.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.jars.lock import Jar, locked_jars

if TYPE_CHECKING:
    from deploy.settings import Settings

PARTS = ("kafka", "cassandra", "spark")

Progress = Callable[[int, int], None]
"""Told how many jars of how many are there."""


def jar_paths(part: str, settings: "Settings") -> list[Path]:
    """The class path of one part. The files are there once `ensure_jars` has returned."""
    return [_place(jar, settings.cache_dir) for jar in locked_jars(part)]


def missing_jars(settings: "Settings", parts: Sequence[str] = PARTS) -> list[Jar]:
    """The jars of these parts that are not in the cache, or not whole any more."""
    jars = dict.fromkeys(jar for part in parts for jar in locked_jars(part))
    return [jar for jar in jars if not _is_whole(_place(jar, settings.cache_dir), jar)]


def ensure_jars(
    settings: "Settings", progress: Progress = lambda _done, _total: None, parts: Sequence[str] = PARTS
) -> int:
    """Fetch what is missing of these parts, in parallel. Gives back how many jars they have.

    Unavailable if the repository does not answer; OperatorError if a file is not what the lock says.
    """
    total = len({jar for part in parts for jar in locked_jars(part)})
    missing = missing_jars(settings, parts)
    done = total - len(missing)
    progress(done, total)
    if missing:
        from deploy.jars.fetch import fetched  # noqa: PLC0415 - a command that fetches nothing needs no HTTP client

        places = {jar: _place(jar, settings.cache_dir) for jar in missing}
        for _ in fetched(places, settings.maven_url):
            done += 1
            progress(done, total)
    return total


def _place(jar: Jar, cache: Path) -> Path:
    return cache / "jars" / jar.sha256[:2] / jar.sha256 / jar.file_name


def _is_whole(place: Path, jar: Jar) -> bool:
    if not place.exists():
        return False
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
