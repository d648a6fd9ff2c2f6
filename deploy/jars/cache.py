"""Jars from a committed lock, fetched once, verified, and kept in a cache that all homes of a user share."""

import hashlib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx
import stamina

from master_dataset.errors import DependencyUnavailableError, OperatorError

if TYPE_CHECKING:
    from deploy.settings import Settings


class Jar(NamedTuple):
    """One file of the Maven repository. `sha256` of its bytes, in hex."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        """As the repository names it."""
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{tail}.jar"

    @property
    def path(self) -> str:
        """Where it lies below the repository's root."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


@cache
def locked_jars(part: str) -> tuple[Jar, ...]:
    """The jars of one part: `kafka`, `cassandra` or `spark`."""
    lock = tomllib.loads((Path(__file__).parent / "jars.lock.toml").read_text())
    jars = []
    for coordinates, sha256 in lock[part].items():
        group, artifact, *classifier, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, "".join(classifier), sha256))
    return tuple(jars)


PARTS = ("kafka", "cassandra", "spark")

Progress = Callable[[int, int], None]
"""Told how many jars of how many are there."""


def jar_paths(part: str, settings: "Settings") -> list[Path]:
    """The class path of one part. The files are there once `ensure_jars` has returned."""
    return [_place(jar, settings.jars.cache_dir) for jar in locked_jars(part)]


def missing_jars(settings: "Settings", parts: Sequence[str] = PARTS) -> list[Jar]:
    """The jars of these parts that are not in the cache, or not whole any more."""
    jars = dict.fromkeys(jar for part in parts for jar in locked_jars(part))
    return [jar for jar in jars if not _is_whole(_place(jar, settings.jars.cache_dir), jar)]


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
        places = {jar: _place(jar, settings.jars.cache_dir) for jar in missing}
        for _ in fetched(places, settings.jars.maven_url):
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


_AT_ONCE = 8
_CHUNK = 1 << 20


def fetched(places: Mapping[Jar, Path], maven_url: str) -> Iterator[Jar]:
    """Fetch jars in parallel, and yield each when its file is in its place.

    Args:
        places: Where the file of each jar belongs.
        maven_url: The repository.

    Raises:
        Unavailable: The repository does not answer.
        OperatorError: A file is not what the lock says.
    """
    with httpx.Client(follow_redirects=True, timeout=60) as client, ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = {pool.submit(_fetch, client, jar, place, maven_url): jar for jar, place in places.items()}
        try:
            for future in as_completed(waiting):
                future.result()
                yield waiting[future]
        except httpx.HTTPError as error:
            pool.shutdown(cancel_futures=True)
            message = f"a jar could not be fetched from `{maven_url}`: {error}"
            raise DependencyUnavailableError(
                message, do="check the network, HTTPS_PROXY and GALATEA_MAVEN_URL; then run it again"
            ) from error


@stamina.retry(on=httpx.TransportError, attempts=4)
def _fetch(client: httpx.Client, jar: Jar, place: Path, maven_url: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(f".{os.getpid()}.part")
    digest = hashlib.sha256()
    with client.stream("GET", f"{maven_url.rstrip('/')}/{jar.path}") as answer, part.open("wb") as file:
        answer.raise_for_status()
        for chunk in answer.iter_bytes(_CHUNK):
            digest.update(chunk)
            file.write(chunk)
    if digest.hexdigest() != jar.sha256:
        part.unlink()
        message = f"`{jar.file_name}` from `{maven_url}` is not the file that the lock names"
        raise OperatorError(message, do="check GALATEA_MAVEN_URL; a mirror may have altered the file")
    part.replace(place)
