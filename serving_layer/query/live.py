"""Answers that come by themselves: whoever follows a question is told each time that its answer is another one.

Each event is a whole merged answer, so nobody has to add anything up, and nothing is lost when some are skipped: a slow
follower gets the newest. However many follow one question, it is asked once.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import orjson

from master_dataset.errors import GalateaError
from serving_layer.api.limits import LIMITS, Limits
from serving_layer.caching import etag
from serving_layer.errors import TooBusyError, TooManyAtOnceError
from serving_layer.keys.key import Caller
from serving_layer.query.metrics_answer import MetricsRequest
from serving_layer.query.service import QueryService

EVERY_SECONDS = 0.5
ANSWER, PROBLEM = "answer", "problem"


class Event(NamedTuple):
    """`id`: what the answer rests on; who has it has the answer. `kind`: an answer, or why there is none just now."""

    id: str
    kind: str
    data: str


class Live:
    """One per process and event loop."""

    def __init__(self, answers: QueryService, limits: Limits = LIMITS) -> None:
        """`answers`: what others ask, too. `followers`: how many there are, by the name of their key."""
        self._answers, self._limits = answers, limits
        self._channels: dict[Hashable, _Channel] = {}
        self.followers: Counter[str] = Counter()

    @asynccontextmanager
    async def follow(self, ask: MetricsRequest, caller: Caller) -> AsyncIterator["Follower"]:
        """Inside, the events of a question. TooBusyError, TooManyAtOnceError, what the answer would raise."""
        self._refuse_too_many(caller)
        key = (ask, caller.sight)
        self.followers[caller.name] += 1
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = _Channel(self._answers, ask, caller)
        channel.followers += 1
        try:
            await channel.begun()
            yield Follower(channel)
        finally:
            self.followers -= Counter([caller.name])
            channel.followers -= 1
            if not channel.followers and self._channels.get(key) is channel:
                del self._channels[key]
                await channel.end()

    def _refuse_too_many(self, caller: Caller) -> None:
        if self.followers.total() >= self._limits.live_followers:
            told = f"{self._limits.live_followers} follow live answers already."
            raise TooBusyError(told, do="Ask again, or ask now and then.")
        if caller.tenant is not None and self.followers[caller.name] >= self._limits.live_followers_per_key:
            told = f"{self._limits.live_followers_per_key} follow live answers with this key already."
            raise TooManyAtOnceError(told, do="Let others end first, or ask now and then.")

    def close(self) -> None:
        """Let every follower's events end: they come again to another process."""
        for channel in self._channels.values():
            channel.close()


class _Channel:
    """One question, asked again and again while somebody follows it."""

    def __init__(self, answers: QueryService, ask: MetricsRequest, caller: Caller) -> None:
        self._answers, self._ask, self._caller = answers, ask, caller
        self.followers, self.is_ended = 0, False
        self.newest: Event | None = None
        self._changed = asyncio.Event()
        self._first = asyncio.ensure_future(self._read())
        self._task: asyncio.Task[None] | None = None

    async def begun(self) -> None:
        """The first answer is there. Raises what it raises, so that a bad question is refused before any event."""
        await asyncio.shield(self._first)
        if self._task is None:
            self._task = asyncio.ensure_future(self._go_on())
            self._task.add_done_callback(lambda _: self.close())

    async def changed(self) -> None:
        """The next event is there, or there will be none."""
        await self._changed.wait()

    def close(self) -> None:
        """There will be no more events."""
        self.is_ended = True
        self._tell()

    async def end(self) -> None:
        """Nobody follows any more."""
        for task in (self._first, self._task):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, GalateaError):
                    await task

    async def _go_on(self) -> None:
        while not self.is_ended:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                await self._read()
            except GalateaError as error:
                told = {"code": error.code, "title": error.message, "detail": error.do, "status": error.status}
                self._show(Event("", PROBLEM, orjson.dumps(told).decode()))

    async def _read(self) -> None:
        moment = await self._answers.moment(self._ask.one)
        tag = etag(("live", self._ask), self._caller.sight, moment.mark, self._answers.catalogue.fingerprint)
        if self.newest is None or self.newest.id != tag:
            body = await self._answers.metrics(self._ask, moment, self._caller)
            self._show(Event(tag, ANSWER, body.decode()))

    def _show(self, event: Event) -> None:
        if event != self.newest:
            self.newest = event
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Follower:
    """Whoever follows a question."""

    def __init__(self, channel: _Channel) -> None:
        """Made by Live."""
        self._channel = channel

    async def events(self, has: str | None) -> AsyncIterator[Event]:
        """The answer of now unless the follower `has` it, then each that comes."""
        known = has
        while not self._channel.is_ended:
            newest = self._channel.newest
            if newest is not None and newest.id != known:
                known = newest.id
                yield newest
            else:
                await self._channel.changed()
