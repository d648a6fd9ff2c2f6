"""Honest clients: they query and send at a steady rate, and record the latency of every response.

A process of its own: `python -m tests.system.drills.honest PORT SECONDS KEYS`, the keys as JSON, by store.
"""

import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

READS_PER_SECOND, POSTS_PER_SECOND, IN_A_POST = 8.0, 4.0, 10
NEW_EVERY = 10
"""So many requests go over one connection: a server that takes none any more would be missed by who has one."""
LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")


@dataclass
class Noted:
    """Seconds by what was done, statuses, and how many events were accepted."""

    reads: list[float] = field(default_factory=list)
    posts: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    accepted: int = 0


class Client:
    """One tenant's, with a key for both."""

    def __init__(self, port: int, key: str, store: str, noted: Noted) -> None:
        self._port, self._store, self._noted = port, store, noted
        self._head = f"Host: localhost\r\nAuthorization: Bearer {key}\r\n".encode()
        self._number = 0

    async def read(self, until: float) -> None:
        """Ask for today's numbers, as a dashboard does."""
        today = datetime.now(UTC).date()
        span = f"from={today - timedelta(days=1)}&to={today + timedelta(days=1)}&timezone=UTC"
        for_each = f"GET /v1/metrics/net_sales?store={self._store}&{span}&grain=hour HTTP/1.1\r\n".encode()
        await self._pace(for_each + self._head + b"\r\n", READS_PER_SECOND, until, self._noted.reads)

    async def post(self, until: float) -> None:
        """Send new receipts."""
        await self._pace(b"", POSTS_PER_SECOND, until, self._noted.posts)

    async def _pace(self, request: bytes, rate: float, until: float, took: list[float]) -> None:
        """What is late by the fault of the server counts as time that it took."""
        due, sent = time.monotonic(), 0
        connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while due < until:
            await asyncio.sleep(max(due - time.monotonic(), 0))
            try:
                if connection is None or sent % NEW_EVERY == 0:
                    if connection is not None:
                        connection[1].close()
                    connection = await asyncio.open_connection("127.0.0.1", self._port)
                status, body = await self._ask(*connection, request or self._receipts())
            except (OSError, asyncio.IncompleteReadError) as error:
                status, body, connection = type(error).__name__, b"", None
            took.append(time.monotonic() - due)
            self._noted.statuses[status] += 1
            if not request and status == "202":
                self._noted.accepted += json.loads(body)["accepted"]
            due, sent = due + 1 / rate, sent + 1

    @staticmethod
    async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytes) -> tuple[str, bytes]:
        writer.write(said)
        head = await reader.readuntil(b"\r\n\r\n")
        found = LENGTH.search(head)
        return head[9:12].decode(), await reader.readexactly(int(found[1]) if found else 0)

    def _receipts(self) -> bytes:
        now = datetime.now(UTC).isoformat()
        self._number += IN_A_POST
        said = [
            {
                "happened_at": now,
                "operation_id": self._store,
                "vendor_fiscal_module": f"till {time.monotonic_ns()}",
                "transaction_id": self._number + each,
                "transactions": [{"title": "Milk", "price": 1.09, "amount": 1, "sku": "1"}],
            }
            for each in range(IN_A_POST)
        ]
        body = json.dumps(said).encode()
        head = b"POST /v1/events/pos_transactions HTTP/1.1\r\nContent-Type: application/json\r\n" + self._head
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def _work(port: int, seconds: float, keys: Mapping[str, str]) -> Noted:
    noted, until = Noted(), time.monotonic() + seconds
    clients = [Client(port, key, store, noted) for store, key in keys.items()]
    await asyncio.gather(*(work(until) for client in clients for work in (client.read, client.post)))
    return noted


def main() -> None:
    """For so long; then print what was noted."""
    noted = asyncio.run(_work(int(sys.argv[1]), float(sys.argv[2]), json.loads(sys.argv[3])))
    sys.stdout.write(json.dumps(vars(noted)))


if __name__ == "__main__":
    main()
