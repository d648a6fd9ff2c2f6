"""The fault proxy: a TCP proxy in front of one broker that forwards everything except what its rule selects.

It runs in a thread of its own. The broker advertises the proxy's port for a separate listener, so nothing on the wire
has to be rewritten.
"""

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import NamedTuple, Self

from lab.fault_proxy.kafka_frames import (
    Api,
    RequestHeader,
    correlation_of,
    end_txn_error,
    read_frame,
    rejected,
    request_header,
    with_length,
)


class Action(StrEnum):
    """What happens to a request that a rule selects."""

    DROP_RESPONSE = "drop_response"
    """It is forwarded, its response is dropped, and both connections close: a lost acknowledgement."""
    DROP_REQUEST = "drop_request"
    """Drop it without an error for the client: a lost request."""
    REJECT = "reject"
    """It is not forwarded but gets a retriable error (NOT_ENOUGH_REPLICAS), just before the next response. The requests
    after it have been sent by then."""
    REJECT_AT_ONCE = "reject_at_once"
    """The same at once, for a client with a single request in flight: the error is modelled on the last response."""
    HOLD = "hold"
    """It is kept, and both connections close; `FaultProxy.release` sends it later: a request delayed by the network."""
    HOLD_SILENTLY = "hold_silently"
    """It is kept, and the connection stays open: the client waits until its own timeout."""


@dataclass
class Rule:
    """Selects the `first` request of this kind (from 1), then every `every`-th, at most `most` of them.

    `topic` is required to reject a request. `passed` and `hits` count requests seen and selected.
    """

    api: Api
    action: Action
    first: int = 1
    every: int = 0
    most: int = 1
    topic: str = ""
    passed: int = 0
    hits: int = 0

    def selects(self, api: int) -> bool:
        """Count one request; return whether it is selected."""
        if api != self.api or self.hits == self.most:
            return False
        self.passed += 1
        behind = self.passed - self.first
        hit = behind == 0 or (behind > 0 and self.every > 0 and behind % self.every == 0)
        self.hits += hit
        return hit


_PATIENCE_SECONDS = 60.0
UNREAD = -2
"""Returned by `release` if the response was not read. No Kafka error has this number."""


class ProxiedConnection:
    """A client's connection and the one to the broker that continues it."""

    def __init__(self, client: StreamWriter, broker: StreamWriter) -> None:
        """Both are written to, and both close together."""
        self.client, self.broker = client, broker
        self.pending: dict[int, RequestHeader] = {}
        self.dropped: set[int] = set()
        self.rejected: list[tuple[int, Rule]] = []

    def cut(self) -> None:
        """Close both connections, as a network failure does."""
        self.client.close()
        self.broker.close()


class _ProduceResponse(NamedTuple):
    """The last Produce response, on which an error response is modelled."""

    response: bytes
    version: int


class FaultProxy:
    """A context manager. It has one rule at a time; without one it is a plain proxy."""

    def __init__(self, host: str, port: int, broker_port: int) -> None:
        """Listen at `host:port` for a broker at `host:broker_port`."""
        self.port = port
        self._host, self._broker_port = host, broker_port
        self._rule: Rule | None = None
        self._held: list[bytes] = []
        self._holds = threading.Event()
        self._last_produce: _ProduceResponse | None = None
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._listens = threading.Event()
        self._failed: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)
        self.forwarded: dict[int, int] = {}
        """Requests forwarded to the broker, by API key."""

    def __enter__(self) -> Self:
        """Start to listen. Raises OSError if the port is in use."""
        self._thread.start()
        self._listens.wait()
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def set_rule(self, rule: Rule) -> Rule:
        """Replace the rule, and return the new one, which counts."""
        self._rule = rule
        return rule

    def clear_rule(self) -> None:
        """Forward everything from now on. Held requests stay held."""
        self._rule = None

    def discard_held(self) -> None:
        """Drop all held requests."""
        self._holds.clear()
        self._held.clear()

    def await_held(self, seconds: float = _PATIENCE_SECONDS) -> bool:
        """Wait until a request is held; return whether there is one."""
        return self._holds.wait(seconds)

    def release(self) -> int:
        """Send the oldest held request over a connection of its own.

        Returns the error code of the response to an EndTxn (0: success), or `UNREAD` for any other request.
        """
        self._holds.clear()
        sending = asyncio.run_coroutine_threadsafe(self._send_late(self._held.pop(0)), self._loop)
        return sending.result(_PATIENCE_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as error:
            self._failed = error
            self._listens.set()
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        connections: set[asyncio.Task[None]] = set()

        def connected(reader: StreamReader, writer: StreamWriter) -> None:
            task = asyncio.ensure_future(self._connection(reader, writer))
            connections.add(task)
            task.add_done_callback(connections.discard)

        server = await asyncio.start_server(connected, self._host, self.port)
        self._listens.set()
        await self._stopped.wait()
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connection(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection(self._host, self._broker_port)
        except OSError:  # the broker is down, and so is its proxy
            writer.close()
            return
        connection = ProxiedConnection(writer, to_broker)
        pumps = [
            asyncio.ensure_future(self._requests(reader, connection)),
            asyncio.ensure_future(self._responses(from_broker, connection)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            connection.cut()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for each in (connection.client, connection.broker):
                with suppress(OSError):
                    await each.wait_closed()

    async def _requests(self, reader: StreamReader, connection: ProxiedConnection) -> None:
        while (request := await read_frame(reader)) is not None:
            head = request_header(request)
            rule = self._rule
            if rule is not None and rule.selects(head.api) and not self._apply(request, head, rule, connection):
                if rule.action == Action.HOLD:
                    return
                continue
            connection.pending[head.correlation] = head
            self.forwarded[head.api] = self.forwarded.get(head.api, 0) + 1
            connection.broker.write(with_length(request))
            await connection.broker.drain()

    def _apply(self, request: bytes, head: RequestHeader, rule: Rule, connection: ProxiedConnection) -> bool:
        """Apply the rule; return whether the request is forwarded."""
        if rule.action == Action.DROP_RESPONSE:
            connection.dropped.add(head.correlation)
            return True
        if rule.action == Action.REJECT:
            connection.rejected.append((head.correlation, rule))
        elif rule.action == Action.REJECT_AT_ONCE:
            self._reject(head.correlation, rule, connection)
        elif rule.action in (Action.HOLD, Action.HOLD_SILENTLY):
            self._held.append(request)
            self._holds.set()
        return False

    async def _responses(self, reader: StreamReader, connection: ProxiedConnection) -> None:
        while (response := await read_frame(reader)) is not None:
            correlation = correlation_of(response)
            head = connection.pending.pop(correlation, None)
            if correlation in connection.dropped:
                return
            if head is not None and head.api == Api.PRODUCE:
                self._last_produce = _ProduceResponse(response, head.version)
                while connection.rejected:
                    self._reject(*connection.rejected.pop(0), connection)
            connection.client.write(with_length(response))
            await connection.client.drain()

    def _reject(self, correlation: int, rule: Rule, connection: ProxiedConnection) -> None:
        if self._last_produce is not None:
            connection.client.write(
                with_length(rejected(self._last_produce.response, self._last_produce.version, rule.topic, correlation))
            )

    async def _send_late(self, request: bytes) -> int:
        reader, writer = await asyncio.open_connection(self._host, self._broker_port)
        writer.write(with_length(request))
        response = await read_frame(reader)
        writer.close()
        await writer.wait_closed()
        if response is None:
            raise ConnectionResetError("the broker ended the connection instead of answering a late request")
        head = request_header(request)
        return end_txn_error(response, head.version) if head.api == Api.END_TXN else UNREAD
