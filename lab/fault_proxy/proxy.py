"""Which requests a tap harms, and how.

The tap: a TCP proxy before one broker, in a thread of its own, that lets everything pass but what its rule says.

The broker advertises the tap's port for a listener of its own, so nothing on the wire has to be rewritten.
"""

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import NamedTuple, Self

from lab.fault_proxy.kafka_frames import Api, Head, answered, end_txn_error, framed, head_of, read_frame, refusal


class Action(StrEnum):
    """What happens to a request that a rule hits."""

    DROP_RESPONSE = "drop_response"
    """It is forwarded, its answer swallowed, and both connections end: a lost acknowledgement."""
    DROP_REQUEST = "drop_request"
    """It is not forwarded, and nobody is told: a lost request."""
    REFUSE = "refuse"
    """It is not forwarded but answered, just before the next answer, with an error that passes: so few copies are in
    step at the moment. The requests behind it are on their way by then."""
    REFUSE_AT_ONCE = "refuse_at_once"
    """The same for who has one request on its way and waits: answered after the pattern of the last answer."""
    HOLD = "hold"
    """It is kept, and both connections end; `Tap.release` sends it later: a request that the network delayed."""
    HOLD_SILENTLY = "hold_silently"
    """It is kept, and the connection stays as it is: whoever asked waits until its own patience ends."""


@dataclass
class Rule:
    """Hits the `first` request of this kind, counted from 1 since it was given, then `every` so many, `most` times.

    `topic` is needed to refuse. `passed` and `hits` say what has happened.
    """

    api: Api
    action: Action
    first: int = 1
    every: int = 0
    most: int = 1
    topic: str = ""
    passed: int = 0
    hits: int = 0

    def takes(self, api: int) -> bool:
        """Count one request; whether it is one to harm."""
        if api != self.api or self.hits == self.most:
            return False
        self.passed += 1
        behind = self.passed - self.first
        hit = behind == 0 or (behind > 0 and self.every > 0 and behind % self.every == 0)
        self.hits += hit
        return hit


_PATIENCE_SECONDS = 60.0
UNREAD = -2
"""Kafka has no error of this number."""


class Link:
    """One connection of a client and the one that continues it to the broker."""

    def __init__(self, client: StreamWriter, broker: StreamWriter) -> None:
        """Both are written to; they end together."""
        self.client, self.broker = client, broker
        self.asked: dict[int, Head] = {}
        self.swallowed: set[int] = set()
        self.refused: list[tuple[int, Rule]] = []

    def cut(self) -> None:
        """End both connections, as a network does."""
        self.client.close()
        self.broker.close()


class _Pattern(NamedTuple):
    """The last answer to Produce, after which a refusal is made."""

    answer: bytes
    version: int


class Tap:
    """Use as a context manager. One rule at a time; without one it is a plain proxy."""

    def __init__(self, host: str, port: int, broker_port: int) -> None:
        """Listens at `host:port`, for a broker that listens at `host:broker_port`."""
        self.port = port
        self._host, self._broker_port = host, broker_port
        self._rule: Rule | None = None
        self._held: list[bytes] = []
        self._holds = threading.Event()
        self._pattern: _Pattern | None = None
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._listens = threading.Event()
        self._failed: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="tap", daemon=True)
        self.forwarded: dict[int, int] = {}
        """Requests that went on to the broker, by their kind."""

    def __enter__(self) -> Self:
        """Listen. OSError if the port is taken."""
        self._thread.start()
        self._listens.wait()
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def harm(self, rule: Rule) -> Rule:
        """From now on do this instead of what was said before; gives the rule back, which counts."""
        self._rule = rule
        return rule

    def heal(self) -> None:
        """From now on let everything pass. What is held stays held."""
        self._rule = None

    def forget(self) -> None:
        """What is held is lost: it never arrives."""
        self._holds.clear()
        self._held.clear()

    def await_held(self, seconds: float = _PATIENCE_SECONDS) -> bool:
        """Wait until a request is held; whether there is one."""
        return self._holds.wait(seconds)

    def release(self) -> int:
        """Send the oldest request that is held over a connection of its own.

        The error code in the answer to an EndTxn, 0: done; `UNREAD` where something else was held and answered.
        """
        self._holds.clear()
        asked = asyncio.run_coroutine_threadsafe(self._send_late(self._held.pop(0)), self._loop)
        return asked.result(_PATIENCE_SECONDS)

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
        links: set[asyncio.Task[None]] = set()

        def connected(reader: StreamReader, writer: StreamWriter) -> None:
            task = asyncio.ensure_future(self._link(reader, writer))
            links.add(task)
            task.add_done_callback(links.discard)

        server = await asyncio.start_server(connected, self._host, self.port)
        self._listens.set()
        await self._over.wait()
        server.close()
        for task in links:
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _link(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            from_broker, to_broker = await asyncio.open_connection(self._host, self._broker_port)
        except OSError:  # the broker is away, and so is its tap
            writer.close()
            return
        link = Link(writer, to_broker)
        pumps = [
            asyncio.ensure_future(self._requests(reader, link)),
            asyncio.ensure_future(self._answers(from_broker, link)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            link.cut()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            for each in (link.client, link.broker):
                with suppress(OSError):
                    await each.wait_closed()

    async def _requests(self, reader: StreamReader, link: Link) -> None:
        while (request := await read_frame(reader)) is not None:
            head = head_of(request)
            rule = self._rule
            if rule is not None and rule.takes(head.api) and not self._passes(request, head, rule, link):
                if rule.action == Action.HOLD:
                    return
                continue
            link.asked[head.correlation] = head
            self.forwarded[head.api] = self.forwarded.get(head.api, 0) + 1
            link.broker.write(framed(request))
            await link.broker.drain()

    def _passes(self, request: bytes, head: Head, rule: Rule, link: Link) -> bool:
        """Do what the rule says; whether the request is forwarded."""
        if rule.action == Action.DROP_RESPONSE:
            link.swallowed.add(head.correlation)
            return True
        if rule.action == Action.REFUSE:
            link.refused.append((head.correlation, rule))
        elif rule.action == Action.REFUSE_AT_ONCE:
            self._refuse(head.correlation, rule, link)
        elif rule.action in (Action.HOLD, Action.HOLD_SILENTLY):
            self._held.append(request)
            self._holds.set()
        return False

    async def _answers(self, reader: StreamReader, link: Link) -> None:
        while (answer := await read_frame(reader)) is not None:
            correlation = answered(answer)
            head = link.asked.pop(correlation, None)
            if correlation in link.swallowed:
                return
            if head is not None and head.api == Api.PRODUCE:
                self._pattern = _Pattern(answer, head.version)
                while link.refused:
                    self._refuse(*link.refused.pop(0), link)
            link.client.write(framed(answer))
            await link.client.drain()

    def _refuse(self, correlation: int, rule: Rule, link: Link) -> None:
        if self._pattern is not None:
            link.client.write(framed(refusal(self._pattern.answer, self._pattern.version, rule.topic, correlation)))

    async def _send_late(self, request: bytes) -> int:
        reader, writer = await asyncio.open_connection(self._host, self._broker_port)
        writer.write(framed(request))
        answer = await read_frame(reader)
        writer.close()
        await writer.wait_closed()
        if answer is None:
            raise ConnectionResetError("the broker ended the connection instead of answering a late request")
        head = head_of(request)
        return end_txn_error(answer, head.version) if head.api == Api.END_TXN else UNREAD
