"""Live updates: a client follows a request, and gets its answer whenever that changes.

Each event is a whole merged answer, so nobody has to add anything up and nothing is lost when some are skipped: a slow
follower gets the newest. However many follow one request, it is answered once.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import orjson

from master_dataset.errors import CassandraUnavailableError, GalateaError
from serving_layer.caching import etag
from serving_layer.errors import TooBusyError, TooManyAtOnceError
from serving_layer.fair_semaphore import FairSemaphore
from serving_layer.keys.key import Caller
from serving_layer.limits import LIMITS, Limits
from serving_layer.query.resolve import MetricsRequest
from serving_layer.service import QueryService

EVERY_SECONDS = 0.5
ANSWERS_AT_ONCE = 16
"""Answers that are computed at once for all followers; of one key at most half, however many requests it follows."""
CHECK_SECONDS = 5.0
"""Seconds between checks of a follower's key while its answer does not change."""
ANSWER, PROBLEM = "answer", "problem"


class Event(NamedTuple):
    """`id`: the entity tag of the answer; empty for a problem. `kind`: an answer, or why there is none just now."""

    id: str
    kind: str
    data: str


class Live:
    """The requests that are followed. One per process and event loop."""

    def __init__(self, service: QueryService, limits: Limits = LIMITS) -> None:
        """`service`: answers the requests. `followers`: how many there are, by the name of their key."""
        self._service, self._limits = service, limits
        self._channels: dict[Hashable, _Channel] = {}
        self.followers: Counter[str] = Counter()
        self._semaphore = FairSemaphore(ANSWERS_AT_ONCE, min(limits.requests_per_key, ANSWERS_AT_ONCE // 2))

    @asynccontextmanager
    async def follow(self, request: MetricsRequest, caller: Caller) -> AsyncIterator["Follower"]:
        """Follow a request while inside.

        Raises:
            TooBusyError: too many follow anything.
            TooManyAtOnceError: too many follow with this key.
            GalateaError: what the answer raises now.
        """
        self._refuse_too_many(caller)
        key = (request, caller.visibility_scope)
        self.followers[caller.name] += 1
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = _Channel(self._service, self._semaphore, request, caller)
        channel.followers += 1
        try:
            await channel.started()
            yield Follower(channel)
        finally:
            self.followers -= Counter([caller.name])
            channel.followers -= 1
            if not channel.followers and self._channels.get(key) is channel:
                del self._channels[key]
                await channel.end()

    def _refuse_too_many(self, caller: Caller) -> None:
        if self.followers.total() >= self._limits.live_followers:
            message = f"{self._limits.live_followers} live answers are already followed."
            raise TooBusyError(message, do="Try again later, or poll instead.")
        if caller.tenant is not None and self.followers[caller.name] >= self._limits.live_followers_per_key:
            message = f"{self._limits.live_followers_per_key} live answers are already followed with this key."
            raise TooManyAtOnceError(message, do="Close another one first, or poll instead.")

    def close(self) -> None:
        """End the events of every follower; clients reconnect to another process."""
        for channel in self._channels.values():
            channel.close()


class _Channel:
    """One request, answered again and again while somebody follows it."""

    def __init__(
        self, service: QueryService, semaphore: FairSemaphore, request: MetricsRequest, caller: Caller
    ) -> None:
        self._service, self._semaphore, self._request, self._caller = service, semaphore, request, caller
        self._took = 0.0
        self.followers, self.is_ended = 0, False
        self.newest: Event | None = None
        self._changed, self._reading = asyncio.Event(), asyncio.Lock()
        self._first = asyncio.ensure_future(self._read())
        self._task: asyncio.Task[None] | None = None

    async def started(self) -> None:
        """Wait for the first answer. Raises what it raises, so that a bad request is refused before any event."""
        await asyncio.shield(self._first)
        if self._task is None:
            self._task = asyncio.ensure_future(self._poll())
            self._task.add_done_callback(lambda _: self.close())

    async def catch_up(self) -> None:
        """Read the answer once more: another process may have shown a newer one already. Raises what it raises."""
        await self._read(fresh=True)

    async def changed(self) -> None:
        """Wait until there is another event, or there will be none."""
        await self._changed.wait()

    def close(self) -> None:
        """There will be no more events."""
        self.is_ended = True
        self._notify()

    async def end(self) -> None:
        """Nobody follows any more."""
        for task in (self._first, self._task):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, GalateaError):
                    await task

    async def _poll(self) -> None:
        while not self.is_ended:
            pause, self._took = max(EVERY_SECONDS, self._took), 0.0  # answers take half of the time at most
            await asyncio.sleep(pause)
            try:
                await self._read()
            except GalateaError as error:
                problem = {"code": error.code, "title": error.message, "detail": error.do, "status": error.status}
                self._emit(Event("", PROBLEM, orjson.dumps(problem).decode()))

    async def _read(self, *, fresh: bool = False) -> None:
        async with self._reading:  # so that no event is followed by an older one
            version = await self._service.read_version(self._request.first, self._caller, fresh=fresh)
            tag = etag(
                ("live", self._request), self._caller.visibility_scope, version.key, self._service.catalogue.fingerprint
            )
            if self.newest is None or self.newest.id != tag:
                async with self._semaphore.hold(self._caller.name):
                    began = time.monotonic()
                    try:
                        body = await self._service.metrics(self._request, version, self._caller, has_slot=True)
                    finally:
                        self._took = time.monotonic() - began
                self._emit(Event(tag, ANSWER, body.decode()))

    def _emit(self, event: Event) -> None:
        if event != self.newest:
            self.newest = event
            self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Follower:
    """A client that follows a request."""

    def __init__(self, channel: _Channel) -> None:
        """Made by `Live.follow`."""
        self._channel = channel

    async def events(self, has: str | None) -> AsyncIterator[Event]:
        """The answer of now unless its id is `has`, then each that comes.

        The event `has` may be of another process, and newer than what this one has read: then it reads again first, so
        that nobody goes back in time and gets that event twice.
        """
        known = has
        newest = self._channel.newest
        if known is not None and newest is not None and newest.id != known:
            with suppress(GalateaError):  # the next event says why there is no answer
                await self._channel.catch_up()
        while not self._channel.is_ended:
            newest = self._channel.newest
            if newest is not None and newest.id != known:
                known = newest.id
                yield newest
            else:
                await self._channel.changed()


async def while_allowed(
    events: AsyncIterator[Event], is_allowed: Callable[[], Awaitable[bool]], every: float
) -> AsyncIterator[Event]:
    """Yield the events until `is_allowed` returns False.

    It is called before each event, and every `every` seconds while none comes. While it raises
    CassandraUnavailableError, nobody knows whether the follower is allowed to have them: answers wait, and problems do
    not.
    """
    coming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            await asyncio.wait([coming], timeout=every)
            event = coming.result() if coming.done() else None
            if coming.done() and event is None:
                return
            try:
                if not await is_allowed():
                    return
            except CassandraUnavailableError:
                if event is None or event.kind != PROBLEM:
                    await asyncio.sleep(EVERY_SECONDS)
                    continue
            if event is not None:
                yield event
                coming = asyncio.ensure_future(anext(events, None))
    finally:
        coming.cancel()
