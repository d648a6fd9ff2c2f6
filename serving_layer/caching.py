"""Caching: what the serving layer keeps between requests. docs/explanation/caching.md says why none of it is stale.

    SharedCache         values that stay as they are once they are made, such as bodies of answers and what runs wrote
    RefreshAheadCache   one value that may be slightly old, such as the snapshot
    SingleFlight        no cache: concurrent requests share one read that began after they arrived
    SharedRuns          likewise, and a run ends when nobody waits for it
    keep                puts a value into an LRU cache of `cachetools`
    digest              a short key that stands for much
    etag, has, matches_any  entity tags of answers (RFC 9110)

Entity tags are weak. The speed layer writes rows first and its positions after them, so two answers with the same
version, and therefore the same `as_of`, may differ by a row that `as_of` does not cover yet.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from cachetools import LRUCache

Key = TypeVar("Key")
Value = TypeVar("Value")

Result_co = TypeVar("Result_co", covariant=True)


class Start(Protocol[Result_co]):
    """Begins a run of `SharedRuns`."""

    def __call__(self, *, waited: bool) -> Awaitable[Result_co]:
        """`waited`: whether it had to wait for another one."""


ANY = "*"
_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_LIST = re.compile(rf"[ \t,]*{_TAG.pattern}(?:[ \t]*,[ \t,]*{_TAG.pattern})*[ \t,]*")
_DIGEST_BYTES = 16


def keep(cache: LRUCache[Key, Value], key: Key, value: Value) -> None:
    """Put a value into the cache, unless it alone is larger than the whole cache."""
    with suppress(ValueError):
        cache[key] = value


class SharedCache(Generic[Key, Value]):
    """Values that depend on their keys alone, within bounds. Concurrent requests for one value make it once.

    Belongs to one event loop.
    """

    def __init__(self, most: int, size: Callable[[Value], int] = lambda _: 1) -> None:
        """Nothing is kept yet.

        Args:
            most: the size of all values together; the least recently used are evicted first.
            size: of a value.
        """
        self._kept: LRUCache[Key, Value] = LRUCache(most, getsizeof=size)
        self._in_progress: dict[Key, asyncio.Task[Value]] = {}

    async def get(self, key: Key, make: Callable[[], Awaitable[Value]]) -> Value:
        """The value of a key.

        Args:
            key: everything that the value depends on. So a request that arrives while the value is being made can share
                it. The key of an answer has the request, the visibility scope, and the ReadVersion.
            make: makes the value. If it raises, all waiting requests get the exception, and nothing is kept.
        """
        with suppress(KeyError):
            return self._kept[key]
        task = self._in_progress.get(key)
        if task is None:
            task = self._in_progress[key] = asyncio.ensure_future(self._make(key, make))
        return await asyncio.shield(task)  # a caller that is cancelled must not cancel it for the others

    async def _make(self, key: Key, make: Callable[[], Awaitable[Value]]) -> Value:
        try:
            value = await make()
        finally:
            del self._in_progress[key]
        keep(self._kept, key, value)
        return value


class SingleFlight(Generic[Value]):
    """Requests that arrive together share one read, which began after all of them arrived.

    The result of a read that is already under way may be older than the request, so a request waits for the next one.
    At most one read of a key runs and at most one waits. Nothing is kept after the read. Belongs to one event loop.
    """

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._running: dict[Hashable, asyncio.Task[Value]] = {}
        self._next: dict[Hashable, asyncio.Task[Value]] = {}

    async def read(self, key: Hashable, start: Callable[[], Awaitable[Value]]) -> Value:
        """The value of a read that begins no earlier than this call.

        If it raises, all who share it get the exception.
        """
        running = self._running.get(key)
        if running is None or running.done():
            task = self._running[key] = asyncio.ensure_future(self._run(key, start, None))
        elif (waiting := self._next.get(key)) is not None:
            task = waiting
        else:
            task = self._next[key] = asyncio.ensure_future(self._run(key, start, running))
        return await asyncio.shield(task)  # a caller that is cancelled must not cancel it for the others

    async def _run(
        self, key: Hashable, start: Callable[[], Awaitable[Value]], before: asyncio.Task[Value] | None
    ) -> Value:
        own = asyncio.current_task()
        if before is not None:
            await asyncio.wait([before])
            self._running[key] = self._next.pop(key)
        try:
            return await start()
        finally:
            if self._running.get(key) is own:
                del self._running[key]


class _Run(Generic[Value]):
    def __init__(self, start: "Start[Value]", before: "_Run[Value] | None") -> None:
        self.waiters, self.has_begun = 0, False
        self.task = asyncio.ensure_future(self._run(start, before))

    async def _run(self, start: "Start[Value]", before: "_Run[Value] | None") -> Value:
        if before is not None:
            await asyncio.wait([before.task])
        self.has_begun = True
        return await start(waited=before is not None)


class SharedRuns(Generic[Value]):
    """As `SingleFlight`, but a run is cancelled as soon as nobody waits for it. Belongs to one event loop."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._last: dict[Hashable, _Run[Value]] = {}

    async def read(self, key: Hashable, start: "Start[Value]") -> Value:
        """The result of a run that begins no earlier than this call.

        Args:
            key: equal for calls that may share a run.
            start: begins a run. `waited`: whether it had to wait for another one of this key.

        Returns:
            The result. If the run raises, all who share it get the exception.
        """
        run = self._last.get(key)
        if run is None or run.has_begun:
            run = self._last[key] = _Run(start, None if run is None or run.task.done() else run)
        run.waiters += 1
        try:
            return await asyncio.shield(run.task)
        finally:
            run.waiters -= 1
            if not run.waiters:
                run.task.cancel()  # has no effect once it is done
                if self._last.get(key) is run:
                    del self._last[key]


class RefreshAheadCache(Generic[Value]):
    """One value that may be slightly old. It is refreshed ahead while in use, so that few requests wait.

    Belongs to one event loop.
    """

    def __init__(self, start: Callable[[], Awaitable[Value]], seconds: float, clock: Callable[[], float]) -> None:
        """Nothing is read yet.

        Args:
            start: reads the value.
            seconds: how old it may be; 0: each request gets a read that begins after it arrived.
            clock: monotonic seconds.
        """
        self._start, self._seconds, self._clock = start, seconds, clock
        self._reads: SingleFlight[Value] = SingleFlight()
        self._kept: tuple[float, Value] | None = None
        self._expired = 0
        self._ahead: asyncio.Task[Value] | None = None

    async def read(self, *, fresh: bool = False) -> Value:
        """The value, or what its read raises. `fresh`: read after this call began."""
        if self._kept is None or fresh or not self._seconds:
            return await self._newest()
        began, value = self._kept
        age = self._clock() - began
        if age > self._seconds:
            return await self._newest()
        if age > self._seconds / 2 and (self._ahead is None or self._ahead.done()):
            self._ahead = asyncio.ensure_future(self._newest())
            self._ahead.add_done_callback(retrieve_exception)
        return value

    def expire(self) -> None:
        """Make the next request read the value again."""
        self._kept = None
        self._expired += 1  # the read in progress may return an older value

    async def _newest(self) -> Value:
        return await self._reads.read(None, self._read)

    async def _read(self) -> Value:
        began, expired = self._clock(), self._expired
        value = await self._start()
        if expired == self._expired:
            self._kept = began, value
        return value


def retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Let a task fail without a log line: whoever needs its result begins it again, and gets the error."""
    if not task.cancelled():
        task.exception()


def digest(*parts: object) -> str:
    """A short text that stands for all parts, for keys of caches: these count their values, and not what keys hold.

    A request may name thousands of SKUs, and the version of an answer has the progress of every store.
    """
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=_DIGEST_BYTES).hexdigest()


def etag(request: tuple[object, ...], scope: str, version: Hashable, fingerprint: str) -> str:
    """The entity tag of the answer to a request. It is a hash.

    Args:
        request: its kind, all of it, and the format of the answer.
        scope: the visibility scope of the caller.
        version: what the answer is computed from; see `ReadVersion.key`.
        fingerprint: of the code that answers; see `Catalogue.fingerprint`.
    """
    return f'W/"{digest(request, scope, version, fingerprint)}"'


def if_none_match(sent: Sequence[str], tag: str) -> bool:
    """Whether the `If-None-Match` fields of a request name the tag. Weak comparison; `*` names none in particular."""
    if [tag] == sent:  # the usual case: the caller sends back the tag it received
        return True
    field = ",".join(sent)
    return bool(_LIST.fullmatch(field)) and _opaque(tag) in _TAG.findall(field)


def matches_any(sent: Iterable[str]) -> bool:
    """Whether they are `*`, which matches any answer."""
    return [each.strip() for each in sent] == [ANY]


def _opaque(tag: str) -> str:
    return tag.removeprefix("W/").strip('"')
