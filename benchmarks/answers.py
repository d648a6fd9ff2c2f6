"""Merged answers a second, beside an app of the same framework that always gives the same bytes of the same length.

And how long the slowest answer in a hundred takes, beside a point read of one block.
"""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from benchmarks import local
from benchmarks.measured import Measured, percentile
from deploy.stack.ports import free_ports

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

CONNECTIONS = 8
SECONDS, WARM_SECONDS = 5.0, 1.0
STORE = "1"


def answered(settings: "Settings") -> Iterator[Measured]:
    """Cells, whose speed rows are read again each time, and a metric, which is remembered while nothing moves."""
    today = datetime.now(UTC).date()
    month = {"store": STORE, "from": today - timedelta(days=9), "to": today + timedelta(days=1)}
    asked = {
        "answers, speed rows re-read": _cells_of_today(),
        "answers, remembered": f"/v1/metrics/net_sales?{urlencode({**month, 'grain': 'day', 'timezone': 'UTC'})}",
    }
    for name, path in asked.items():
        yield _measured(settings.api_port, name, path, _key(settings))
    yield _slowest(settings)


def seconds_of_answers(settings: "Settings", seconds: float) -> list[float]:
    """Of each merged answer that one caller gets, who asks again and again for so long, after a short warm-up."""
    return asyncio.run(_Client(settings.api_port, _cells_of_today(), _key(settings)).durations(seconds))


def _cells_of_today() -> str:
    today = datetime.now(UTC).date()
    return f"/v1/views/sales/cells?{urlencode({'store': STORE, 'from': today, 'to': today + timedelta(days=1)})}"


def _key(settings: "Settings") -> str:
    return (settings.home / "operator.key").read_text().strip()


def _slowest(settings: "Settings") -> Measured:
    """One caller after the other: with more of them the time in the queue would be measured, not that of an answer."""
    ours = seconds_of_answers(settings, SECONDS)
    beside = _point_reads(local.cassandra(settings))
    p50 = {"p50": round(median(ours), 5), "p50_beside": round(median(beside), 5), "answers": len(ours)}
    both = percentile(ours, 0.99), percentile(beside, 0.99)
    return Measured("answers p99, one caller", *both, "s", "bare point read", better="low", details=p50)


def _point_reads(session: "Session") -> list[float]:
    """Seconds of each read of one block by its whole key, prepared, for as long as ours were asked."""
    names = "view_name, store, month, run, day"
    found = session.execute(f"SELECT {names} FROM batch_cells LIMIT 1").one()  # noqa: S608 - names of columns
    where = " AND ".join(f"{name} = ?" for name in names.split(", "))
    select = session.prepare(f"SELECT block FROM batch_cells WHERE {where}")  # noqa: S608 - likewise
    taken = []
    warm = time.monotonic() + WARM_SECONDS
    while (began := time.monotonic()) < warm + SECONDS:
        session.execute(select, tuple(found)).one()
        if began > warm:
            taken.append(time.monotonic() - began)
    return taken


def _measured(port: int, name: str, path: str, key: str) -> Measured:
    size = asyncio.run(_Client(port, path, key).size())
    with _constant(size) as other:
        ours = asyncio.run(_Client(port, path, key).rate())
        beside = asyncio.run(_Client(other, "/constant", key).rate())
    details = {"bytes": size, "connections": CONNECTIONS}
    return Measured(name, ours, beside, "answers/s", "constant answer", details=details)


@contextmanager
def _constant(size: int) -> Iterator[int]:
    (port,) = free_ports(1)
    with subprocess.Popen([sys.executable, "-m", "benchmarks.constant", str(port), str(size)]) as child:
        try:
            local.until(lambda: _listens(port), "the constant answer")
            yield port
        finally:
            child.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class _Client:
    """As small as can be, since it shares the processors with what it measures."""

    def __init__(self, port: int, path: str, key: str) -> None:
        self._port, self._done = port, 0
        self._request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode()

    async def size(self) -> int:
        """Bytes of the body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        length = await self._ask(reader, writer)
        writer.close()
        return length

    async def rate(self) -> float:
        """Answers a second over all connections, after a short warm-up."""
        await self._all(until=time.monotonic() + WARM_SECONDS)
        self._done, began = 0, time.monotonic()
        await self._all(until=began + SECONDS)
        return self._done / (time.monotonic() - began)

    async def durations(self, seconds: float) -> list[float]:
        """Seconds of each answer on one connection, after a short warm-up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        taken = []
        warm = time.monotonic() + WARM_SECONDS
        while (began := time.monotonic()) < warm + seconds:
            await self._ask(reader, writer)
            if began > warm:
                taken.append(time.monotonic() - began)
        writer.close()
        return taken

    async def _all(self, until: float) -> None:
        await asyncio.gather(*(self._keep_asking(until) for _ in range(CONNECTIONS)))

    async def _keep_asking(self, until: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while time.monotonic() < until:
            await self._ask(reader, writer)
            self._done += 1
        writer.close()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        writer.write(self._request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(body.decode())
        return length
