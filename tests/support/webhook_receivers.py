"""Webhook receivers that fail in every way, misbehave on a raw connection, or have good and bad certificates."""

import asyncio
import json
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from deploy.local import authority as authorities

DAY = timedelta(days=1)


class Authority:
    """Signs. `trust`: for callers that trust it."""

    def __init__(self) -> None:
        self._own = authorities.Authority.new("Galatea's tests", DAY)

    @property
    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.load_verify_locations(cadata=self._own.own.certificate_text)
        return context

    def serving(self, host: str, *, is_expired: bool = False, is_own: bool = False) -> ssl.SSLContext:
        """For a receiver of that name. `is_own`: signed by an authority that nobody knows."""
        signing = authorities.Authority.new(host, DAY) if is_own else self._own
        issued = signing.issue(host, [host], -timedelta(hours=1) if is_expired else DAY)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with TemporaryDirectory() as folder:
            file = Path(folder, "both.pem")
            file.write_text(issued.key_text + issued.certificate_text)
            context.load_cert_chain(file)
        return context


@cache
def authority() -> Authority:
    """One for all tests."""
    return Authority()


TAKES, HANGS, TAKES_AND_HANGS, DROPS, TAKES_AND_DROPS, AWAY = (
    "takes",
    "hangs",
    "takes, and hangs",
    "drops",
    "takes, and drops",
    "away",
)
EACH = (TAKES, HANGS, TAKES_AND_HANGS, DROPS, TAKES, TAKES_AND_DROPS, AWAY)
"""What becomes of the calls of a store, one after the other, and then from the beginning."""
REDIRECTS, ELSEWHERE = "redirects", "/elsewhere"


class BadReceiver:
    """Listens on this machine while inside. Calls with a number of `redirected` it sends elsewhere, always.

    `kept`: (store, number) by `alert_id`, in the order in which they came. `did`: how often it did what.
    """

    def __init__(self, redirected: Sequence[int]) -> None:
        self.kept: dict[str, tuple[str, int]] = {}
        self.did: Counter[str] = Counter()
        self.again = 0
        self._redirected, self._plans = set(redirected), dict[str, Any]()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}/alerts"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def numbers(self, store: str) -> list[int]:
        """Of a store's alerts, in the order in which each came for the first time."""
        return [number for of, number in self.kept.values() if of == store]

    def called(self, path: str, alerts: Sequence[dict[str, Any]]) -> str:
        """What it does about that call."""
        with self._lock:
            does = self._does(path, alerts)
            self.did[does] += 1
            if does.startswith(TAKES):
                self.again += sum(each["alert_id"] in self.kept for each in alerts)
                for each in alerts:
                    self.kept.setdefault(each["alert_id"], (each["store"], each["value"]))
        return does

    def _does(self, path: str, alerts: Sequence[dict[str, Any]]) -> str:
        if path == ELSEWHERE:
            return ELSEWHERE
        if self._redirected & {each["value"] for each in alerts}:
            return REDIRECTS
        return str(next(self._plans.setdefault(alerts[0]["store"], cycle(EACH))))


def _handler(receiver: BadReceiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            does = receiver.called(self.path, json.loads(body)["alerts"])
            if does in {HANGS, TAKES_AND_HANGS}:
                self.connection.recv(1)  # until the other side gives up
                self.close_connection = True
            elif does in {DROPS, TAKES_AND_DROPS}:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            else:
                self.send_response({AWAY: 503, REDIRECTS: 307}.get(does, 204))
                if does == REDIRECTS:
                    self.send_header("Location", ELSEWHERE)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    return Handler


CHUNK = b"x" * 65_536
Behaviour = Callable[["Receiver", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Call:
    """One call: its Idempotency-Key, and the numbers of its alerts."""

    key: str
    numbers: list[int]


@dataclass
class Receiver:
    """`behaviour`: what it does with a call. `calls`: all that came. `sent`: bytes that it got rid of."""

    behaviour: Behaviour
    calls: list[Call] = field(default_factory=list)
    sent: int = 0
    port: int = 0

    async def on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (call := await _call(reader)) is not None:
                self.calls.append(call)
                await self.behaviour(self, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            return
        finally:
            writer.close()

    async def send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await writer.drain()
        self.sent += len(data)


@asynccontextmanager
async def listening(behaviour: Behaviour, serving: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver on a free port of this machine."""
    receiver = Receiver(behaviour)
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(receiver.on_connection(reader, writer))
        tasks.add(task)
        await asyncio.wait([task])

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=serving)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _call(reader: asyncio.StreamReader) -> Call | None:
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
    named = {name.lower(): value for name, value in fields.items()}
    body = json.loads(await reader.readexactly(int(named["content-length"])))
    return Call(named["idempotency-key"], [each["value"] for each in body["alerts"]])


def answers(status: int, **headers: str) -> Behaviour:
    """A receiver that says this to everything."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    said = f"HTTP/1.1 {status} Said\r\nContent-Length: 0\r\n{lines}\r\n".encode()

    async def answer(receiver: Receiver, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await receiver.send(writer, said)

    return answer


async def hangs(_: Receiver, __: asyncio.StreamReader, ___: asyncio.StreamWriter) -> None:
    """Says nothing, ever."""
    await asyncio.Event().wait()


async def drips(receiver: Receiver, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers at once, and byte by byte for ever."""
    await receiver.send(writer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        await receiver.send(writer, b"1\r\nx\r\n")
        await asyncio.sleep(0.005)


async def floods(receiver: Receiver, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with gigabytes."""
    await receiver.send(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 8000000000\r\n\r\n")
    while True:
        await receiver.send(writer, CHUNK)


async def floods_headers(receiver: Receiver, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Header fields without end."""
    await receiver.send(writer, b"HTTP/1.1 200 OK\r\n")
    while True:
        await receiver.send(writer, b"X-More: " + b"y" * 8000 + b"\r\n")


async def one_long_header(receiver: Receiver, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One header field that never ends."""
    await receiver.send(writer, b"HTTP/1.1 200 OK\r\nX-More: ")
    while True:
        await receiver.send(writer, CHUNK)


async def continues(receiver: Receiver, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says again and again that it will answer in a moment."""
    while True:
        await receiver.send(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(0.001)


async def floods_continues(receiver: Receiver, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says so as often as it can."""
    while True:
        await receiver.send(writer, b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


async def resets(receiver: Receiver, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Ends the connection in the middle of its answer, as a crash does."""
    await receiver.send(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    raise ConnectionResetError


async def drops(_: Receiver, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Has taken the call, and its answer is lost."""
    writer.transport.abort()
    raise ConnectionResetError


async def talks_nonsense(receiver: Receiver, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks no HTTP."""
    await receiver.send(writer, b"\x00\xff220 mail.example ESMTP\r\n" * 10)
    raise ConnectionResetError
