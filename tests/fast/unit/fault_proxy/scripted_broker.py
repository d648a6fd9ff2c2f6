"""A broker that answers every frame with the correlation id, and remembers what it was asked; and its client."""

import asyncio
import socket
import struct
import threading
from types import TracebackType
from typing import Self

from lab.fault_proxy.kafka_frames import read_frame, request_header, with_length

TOPIC = "numbers"
SILENT_SECONDS = 0.3
"""After this nothing comes any more: only used to see that something does not come."""


def request(api: int, correlation: int, *, version: int = 10, body: bytes = b"") -> bytes:
    """A frame that begins like a request."""
    return struct.pack(">hhi", api, version, correlation) + body


def produced(correlation: int, error: int = 0, offset: int = 7, *, version: int = 10) -> bytes:
    """An answer to Produce as far as a tap reads it: topic, number of partitions, partition, error, offset."""
    count = b"\x02" if version >= 9 else struct.pack(">i", 1)
    return struct.pack(">i", correlation) + TOPIC.encode() + count + struct.pack(">ihq", 0, error, offset) + b"tail"


class ScriptedBroker:
    """Listens in a thread of its own. Use as a context manager."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.port = 0
        self._loop, self._ready = asyncio.new_event_loop(), threading.Event()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.ensure_future(self._answer(reader, writer)))

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (frame := await read_frame(reader)) is not None:
                self.requests.append(frame)
                head = request_header(frame)
                end_txn = struct.pack(">i", head.correlation) + b"\x00" + struct.pack(">ih", 0, 47) + b"\x00"
                writer.write(
                    with_length(end_txn if head.api == 26 else produced(head.correlation, version=head.version))
                )
                await writer.drain()
        finally:
            writer.close()


class Client:
    """One connection, frame by frame."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.settimeout(60)

    def send(self, frame: bytes) -> None:
        self._socket.sendall(with_length(frame))

    def receive(self) -> bytes:
        """The next frame; nothing if the connection has ended."""
        try:
            length = self._exactly(4)
            return self._exactly(struct.unpack(">i", length)[0]) if length else b""
        except ConnectionResetError:
            return b""

    def hears_nothing(self) -> bool:
        """Whether neither a frame nor an end comes."""
        self._socket.settimeout(SILENT_SECONDS)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(60)
        return False

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self._socket.recv(count - len(found))
            if not part:
                return b""
            found += part
        return found
