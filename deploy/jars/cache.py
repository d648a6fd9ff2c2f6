"""Jars from a committed lock, fetched once and kept in a cache that all homes of a user share. Java resolves nothing.

The cache is `<cache>/jars/<first two digits>/<sha256>/<file name>`. A file is written beside its place, hashed and
moved, so one that exists is complete and correct.
"""

import hashlib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from master_dataset.errors import DependencyUnavailableError, OperatorError

if TYPE_CHECKING:
    import httpx

    from deploy.settings import Settings

KAFKA, FORMER_KAFKA = "kafka", "kafka-4_3"
PARTS = (KAFKA, "cassandra", "spark")
"""What every new local stack needs."""
OBJECT_STORE = "s3"
"""What Spark needs in addition where tables or checkpoints are on an object store."""
_PARALLEL = 8
_ATTEMPTS = 4
_CHUNK = 1 << 20


class Jar(NamedTuple):
    """One file of the Maven repository. `sha256` is in hex."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the file in the repository."""
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{tail}.jar"

    @property
    def path(self) -> str:
        """Path of the file below the repository's root."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


@cache
def locked_jars(part: str) -> tuple[Jar, ...]:
    """Read the jars of one part, a heading of the lock."""
    lock = tomllib.loads((Path(__file__).parent / "jars.lock.toml").read_text())
    jars = []
    for coordinates, sha256 in lock[part].items():
        group, artifact, *classifier, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, "".join(classifier), sha256))
    return tuple(jars)


def jar_paths(part: str, settings: "Settings") -> list[Path]:
    """Return the class path of one part. The files exist once `ensure_jars` has returned."""
    return [_place(jar, settings.jars.cache_dir) for jar in locked_jars(part)]


def missing_jars(settings: "Settings", parts: Sequence[str] = PARTS) -> list[Jar]:
    """Return the jars of these parts that are not in the cache, or damaged."""
    jars = dict.fromkeys(jar for part in _needed(parts, settings) for jar in locked_jars(part))
    return [jar for jar in jars if not _is_complete(_place(jar, settings.jars.cache_dir), jar)]


def ensure_jars(
    settings: "Settings",
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    parts: Sequence[str] = PARTS,
) -> int:
    """Fetch missing jars in parallel.

    Args:
        settings: Where the cache and the repository are.
        progress: Called with the number of jars in the cache, and of all.
        parts: Parts of the stack that are needed.

    Returns:
        How many jars these parts have.

    Raises:
        DependencyUnavailableError: The repository does not answer.
        OperatorError: A file differs from the lock.
    """
    parts = _needed(parts, settings)
    total = len({jar for part in parts for jar in locked_jars(part)})
    missing = missing_jars(settings, parts)
    done = total - len(missing)
    progress(done, total)
    if missing:
        places = {jar: _place(jar, settings.jars.cache_dir) for jar in missing}
        for _ in _fetched(places, settings.jars.maven_url):
            done += 1
            progress(done, total)
    return total


def spark_parts(settings: "Settings") -> Sequence[str]:
    """Return the parts on Spark's class path."""
    return ("spark", OBJECT_STORE) if settings.paths.remote else ("spark",)


def _needed(parts: Sequence[str], settings: "Settings") -> Sequence[str]:
    return [*parts, *(each for each in spark_parts(settings) if "spark" in parts and each not in parts)]


def _place(jar: Jar, cache_dir: Path) -> Path:
    return cache_dir / "jars" / jar.sha256[:2] / jar.sha256 / jar.file_name


def _is_complete(place: Path, jar: Jar) -> bool:
    if not place.exists():
        return False
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def _fetched(places: Mapping[Jar, Path], maven_url: str) -> Iterator[Jar]:
    """Fetch jars in parallel, and yield each when its file is in its place."""
    import httpx  # noqa: PLC0415 - a command that fetches nothing needs no HTTP client
    import stamina  # noqa: PLC0415 - likewise

    fetch = stamina.retry(on=httpx.TransportError, attempts=_ATTEMPTS)(_fetch)
    named = httpx.URL(maven_url)
    # Errors show the URL, httpx's too: a password is sent beside it.
    login = (named.username, named.password) if named.userinfo else None
    maven_url = str(named.copy_with(userinfo=b""))
    with httpx.Client(auth=login, follow_redirects=True, timeout=60) as client, ThreadPoolExecutor(_PARALLEL) as pool:
        waiting = {pool.submit(fetch, client, jar, place, maven_url): jar for jar, place in places.items()}
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


def _fetch(client: "httpx.Client", jar: Jar, place: Path, maven_url: str) -> None:
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
