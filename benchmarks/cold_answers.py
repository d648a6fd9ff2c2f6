"""Answers of an API that has just started, and of DuckDB in a fresh connection; then of both again."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import duckdb

from benchmarks import local
from benchmarks.constant_server import listens
from views.control.generation import Generations

if TYPE_CHECKING:
    from deploy.settings import Settings

STARTS, ROUNDS = 9, 40
"""How often an API is started to be asked once, and how many questions it is asked then."""


class Timings(NamedTuple):
    """Seconds of answers: the first one of a process or connection, others, and the first one again."""

    cold: list[float]
    other: list[float]
    again: list[float]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """How many seconds it took, and what it returned."""
    began = time.monotonic()
    found = work()
    return time.monotonic() - began, found


def response_of(settings: "Settings", metric: str, parameters: Mapping[str, Any]) -> bytes:
    """The body of an answer. RuntimeError if it is none."""
    connection = http.client.HTTPConnection("127.0.0.1", settings.api.port)
    key = (settings.home / "operator.key").read_text().strip()
    path = f"/v1/metrics/{metric}?{urlencode(parameters, doseq=True)}"
    connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != http.client.OK:
        raise RuntimeError(body.decode())
    return body


def answered(
    settings: "Settings", question: tuple[str, Mapping[str, Any]], others: Sequence[tuple[str, Mapping[str, Any]]]
) -> tuple[Timings, list[bytes]]:
    """Ask fresh processes the question, then the last of them all others, then the question again and again."""
    timings, bodies = Timings([], [], []), []
    with local.running(settings, "kafka", "cassandra", "speed"):
        wait_for_speed(settings)
        for _ in range(STARTS):
            with api(settings):
                cold, body = timed(partial(response_of, settings, *question))
                timings.cold.append(cold)
                bodies.append(body)
                if len(bodies) == STARTS:
                    timings.other.extend(timed(partial(response_of, settings, *other))[0] for other in others)
                    timings.again.extend(timed(partial(response_of, settings, *question))[0] for _ in range(ROUNDS))
    return timings, bodies


@contextmanager
def api(settings: "Settings") -> Iterator[None]:
    """A process of the API that has answered nothing yet."""
    command = [sys.executable, "-m", "deploy.services.api"]
    with subprocess.Popen(command, env=os.environ | settings.environment(), stdout=subprocess.DEVNULL) as process:
        try:
            local.until(lambda: listens(settings.api.port), "the API")
            yield
        finally:
            process.terminate()


def wait_for_speed(settings: "Settings") -> None:
    """Return when the speed layer has read a first micro-batch."""
    generations = Generations(local.cassandra(settings))
    local.until(lambda: bool(generations.positions(generations.pointer().generation)), "the speed layer")


def beside(sql: str) -> tuple[Timings, list[tuple[Any, ...]]]:
    """DuckDB: each first in a connection of its own."""
    timings, rows = Timings([], [], []), list[tuple[Any, ...]]()
    for _ in range(STARTS):
        with duckdb.connect(config={"threads": 2}) as connection:
            query = partial(_rows, connection, sql)
            cold, rows = timed(query)
            timings.cold.append(cold)
            timings.again.extend(timed(query)[0] for _ in range(max(1, ROUNDS // STARTS)))
    return timings, rows


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()
