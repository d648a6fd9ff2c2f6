"""Receivers of webhooks on this machine that do what no receiver should. Each is a coroutine over a raw connection."""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

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
