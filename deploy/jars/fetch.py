"""Fetches jars from a Maven repository. A file is written beside its place, hashed, and moved."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import httpx
import stamina

from deploy.jars.lock import Jar
from master_dataset.errors import OperatorError, Unavailable

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
            raise Unavailable(
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
