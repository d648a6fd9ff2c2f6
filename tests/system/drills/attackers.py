"""Hostile clients, each alone on a connection. A second after its connection was closed, a client connects again.

A process of its own (`python -m tests.system.drills.attackers PORT KEY KEY NUMBER OTHERS`), which runs until its input
ends and then prints the result. It has the lowest priority: elsewhere, attackers use processors of their own, not those
of the stack.
"""

import asyncio
import gzip
import json
import os
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from serving_layer.http.server import raise_open_file_limit

PAUSE_SECONDS = 1.0
DRIP_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
LOWEST_PRIORITY = 19
HEAD = b"Host: localhost\r\nContent-Type: application/json\r\n"
POST = b"POST /v1/events/pos_transactions HTTP/1.1\r\n" + HEAD
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
AT_ONCE = {"bomb"}
"""Kinds for whom it is over with the answer."""
BOMB = gzip.compress(b"0" * 100_000_000)
FLOOD = GET + b"".join(b"X-%d: %b\r\n" % (number, b"a" * 200) for number in range(500)) + b"\r\n"


@dataclass
class Harm:
    """By kind: how many seconds each connection lasted until the server ended it, and how many were refused at once."""

    lasted: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def summary(self) -> dict[str, Any]:
        """As it goes from one process to another."""
        return {"lasted": dict(self.lasted), "statuses": dict(self.statuses), "cpu_s": round(time.process_time(), 1)}


class Attackers:
    """`number` of slowloris, and `others` of each other kind; of those that send much at once fewer."""

    def __init__(self, port: int, keys: Sequence[str], number: int, others: int) -> None:
        """`keys`: of who sends slowly, and of who sends bombs."""
        self._port = port
        self._key, self._bombs_key = (f"Authorization: Bearer {key}\r\n".encode() for key in keys)
        self._harm = Harm()
        self._kinds: Mapping[str, tuple[int, Callable[[asyncio.StreamWriter], Awaitable[None]]]] = {
            "slowloris": (number, self._slowloris),
            "silent": (others, self._silent),
            "slow body": (others, self._slow_body),
            "slow body without a key": (others, self._keyless),
            "header flood": (others * 2 // 5, self._flood),
            "bomb": (others * 2 // 5, self._bomb),
        }

    async def attack(self, stop: threading.Event) -> Harm:
        """Runs until stopped."""
        tasks = [
            asyncio.ensure_future(self._again(kind, harm, at / max(count, 1)))
            for kind, (count, harm) in self._kinds.items()
            for at in range(count)
        ]
        while not stop.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return self._harm

    async def _again(self, kind: str, harm: Callable[[asyncio.StreamWriter], Awaitable[None]], after: float) -> None:
        await asyncio.sleep(after)  # not all in one moment
        while True:
            with suppress(OSError):
                await self._once(kind, harm)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _once(self, kind: str, harm: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        began = time.monotonic()
        doing = asyncio.ensure_future(harm(writer))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                heard = await (_answer(reader) if kind in AT_ONCE else reader.read())
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            heard = b""
        finally:
            doing.cancel()
            writer.close()
        await asyncio.gather(doing, return_exceptions=True)
        self._harm.lasted[kind].append(time.monotonic() - began)
        self._harm.statuses[f"{kind}: {heard[9:12].decode() or 'ended'}"] += 1

    async def _slowloris(self, writer: asyncio.StreamWriter) -> None:
        await self._say(writer, GET)
        while True:
            await self._say(writer, b"X-a: b\r\n")
            await asyncio.sleep(DRIP_SECONDS)

    async def _silent(self, _: asyncio.StreamWriter) -> None:
        await asyncio.sleep(PATIENCE_SECONDS)

    async def _slow_body(self, writer: asyncio.StreamWriter) -> None:
        await self._drip(writer, POST + self._key)

    async def _keyless(self, writer: asyncio.StreamWriter) -> None:
        await self._drip(writer, POST)

    async def _flood(self, writer: asyncio.StreamWriter) -> None:
        await self._say(writer, FLOOD)

    async def _bomb(self, writer: asyncio.StreamWriter) -> None:
        length = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)
        await self._say(writer, POST + self._bombs_key + length + BOMB)

    async def _drip(self, writer: asyncio.StreamWriter, head: bytes) -> None:
        await self._say(writer, head + b"Content-Length: 900000\r\n\r\n")
        while True:
            await self._say(writer, b" ")
            await asyncio.sleep(DRIP_SECONDS)

    @staticmethod
    async def _say(writer: asyncio.StreamWriter, said: bytes) -> None:
        writer.write(said)
        await writer.drain()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """What was all that this one came for: the connection may go on without it."""
    head = await reader.readuntil(b"\r\n\r\n")
    found = LENGTH.search(head)
    return head + await reader.readexactly(int(found[1]) if found else 0)


def main() -> None:
    """Until the input ends."""
    port, *keys, number, others = sys.argv[1:]
    os.nice(LOWEST_PRIORITY)
    raise_open_file_limit(int(number) + 5 * int(others) + 1000)
    stop = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    sys.stdout.write(
        json.dumps(asyncio.run(Attackers(int(port), keys, int(number), int(others)).attack(stop)).summary())
    )


if __name__ == "__main__":
    main()
