"""Merged answers a second, beside an app of the same framework that always gives the same bytes of the same length."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from benchmarks import local
from benchmarks.measured import Measured
from deploy.stack.ports import free_ports

if TYPE_CHECKING:
    from deploy.settings import Settings

CONNECTIONS = 8
SECONDS = 5.0
STORE = "1"


def answered(settings: "Settings") -> Iterator[Measured]:
    """Cells, whose speed rows are read again each time, and a metric, which is remembered while nothing moves."""
    key = (settings.home / "operator.key").read_text().strip()
    today = datetime.now(UTC).date()
    month = {"store": STORE, "from": today - timedelta(days=9), "to": today + timedelta(days=1)}
    day = {"store": STORE, "from": today, "to": today + timedelta(days=1)}
    asked = {
        "answers, speed rows re-read": f"/v1/views/sales/cells?{urlencode(day)}",
        "answers, remembered": f"/v1/metrics/net_sales?{urlencode({**month, 'grain': 'day', 'timezone': 'UTC'})}",
    }
    for name, path in asked.items():
        yield _measured(settings.api_port, name, path, key)


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
        await self._all(until=time.monotonic() + 1)
        self._done, began = 0, time.monotonic()
        await self._all(until=began + SECONDS)
        return self._done / (time.monotonic() - began)

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
