"""A client on a raw socket: the bytes that it sends and receives."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import orjson

LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
PATIENCE_SECONDS = 30.0


@dataclass
class Wire:
    """One connection. `heard`: answers so far; `is_closed`: the server has ended it."""

    connected: socket.socket
    heard: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    is_closed: bool = False
    _left: bytes = b""

    def say(self, said: bytes) -> None:
        """Send it, as far as it is taken: a server may have heard enough."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connected.sendall(said)

    def drip(self, said: bytes, pause: float) -> None:
        """Send it byte by byte, until the server answers or hangs up."""
        for at in range(len(said)):
            self.connected.settimeout(pause)
            self.say(said[at : at + 1])
            try:
                if self._hear():
                    return
            except TimeoutError:
                continue

    def listen(self, answers: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Until there are so many answers, or the server hangs up, or for so long."""
        until = time.monotonic() + seconds
        while not self.is_closed and len(self.heard) < answers and (left := until - time.monotonic()) > 0:
            self.connected.settimeout(left)
            try:
                self._hear()
            except TimeoutError:
                return

    @property
    def statuses(self) -> list[int]:
        return [status for status, _, _ in self.heard]

    @property
    def code(self) -> str | None:
        """Of the problem in the last response; None if it has none."""
        _, head, body = self.heard[-1] if self.heard else (0, b"", b"")
        return str(orjson.loads(body)["code"]) if b"application/problem+json" in head else None

    def _hear(self) -> bool:
        try:
            read = self.connected.recv(65_536)
        except ConnectionResetError:
            read = b""
        self.is_closed = not read
        self._left += read
        while (answer := self._next()) is not None:
            self.heard.append(answer)
        return self.is_closed or bool(self.heard)

    def _next(self) -> tuple[int, bytes, bytes] | None:
        head, end, rest = self._left.partition(b"\r\n\r\n")
        if not end:
            return None
        found = LENGTH.search(head)
        length = int(found[1]) if found else 0
        if len(rest) < length:
            return None
        self._left = rest[length:]
        return int(head.split(b" ")[1]), head, rest[:length]


@contextmanager
def wire(url: str) -> Iterator[Wire]:
    """A connection to that address."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=PATIENCE_SECONDS) as connected:
        yield Wire(connected)
