"""Entity tags: the name of what an answer rests on, and whether a caller has that answer already (RFC 9110).

Tags are weak. Speed writes rows first and its positions after them, so two answers of one moment may differ by a row
that neither of them promised: they say the same as of their `as_of`, but need not be equal byte by byte.

A bounded memory of things that never change, by weight: what was used longest ago goes first.

Bodies of answers, kept while everything that they rest on stands still, and made once for all who ask meanwhile.

Many requests, one read: requests that arrive together share a read that began after all of them arrived.

Joining a read already under way would answer from before the question was asked, so a request waits for the next one.
Nothing is kept after the read: this is no cache.

A value of a moment ago: many questions a second rest on few reads of it.

Whoever asks gets what was read at most so many seconds before. While it is asked for it is read ahead, so that hardly
anybody waits. Whoever must know what is so from now on asks `at_once`.
"""

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import msgspec

ANY = "*"
_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_LIST = re.compile(rf"[ \t,]*{_TAG.pattern}(?:[ \t]*,[ \t,]*{_TAG.pattern})*[ \t,]*")
_BYTES = 16


def etag(question: tuple[object, ...], scope: str, mark: Hashable, made_with: str) -> str:
    """The tag of the answer to a question. Nothing of it can be read back.

    `question`: of which kind it is, all of it, and in which form the answer is wanted. `scope`: who asks, as far as the
    answer depends on that. `mark`: see `Moment`. `made_with`: the fingerprint of the code that answers.
    """
    said = msgspec.json.encode((question, scope, mark, made_with))
    return f'W/"{hashlib.blake2b(said, digest_size=_BYTES).hexdigest()}"'


def has(sent: Sequence[str], tag: str) -> bool:
    """Whether the fields `If-None-Match` of a request name the tag. Weak comparison; `*` names none in particular."""
    if [tag] == sent:  # nearly always: the caller says what it was told
        return True
    field = ",".join(sent)
    return bool(_LIST.fullmatch(field)) and opaque(tag) in _TAG.findall(field)


def has_any(sent: Iterable[str]) -> bool:
    """Whether they say `*`: whatever there is, the caller has it."""
    return [each.strip() for each in sent] == [ANY]


def opaque(tag: str) -> str:
    """What stands between the quotes."""
    return tag.removeprefix("W/").strip('"')


Value = TypeVar("Value")


class Lru(Generic[Value]):
    """Holds at most `capacity` of weight. A thing heavier than that is not kept at all."""

    def __init__(self, capacity: int) -> None:
        """`capacity` in the unit of the weights."""
        self._capacity = capacity
        self._held: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._weight = 0

    def get(self, key: Hashable) -> Value | None:
        """The thing, or None."""
        entry = self._held.get(key)
        if entry is None:
            return None
        self._held.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: Value, weight: int = 1) -> None:
        """Keep the thing, and let go of others until it fits."""
        if key in self._held:
            self._weight -= self._held.pop(key)[1]
        if weight > self._capacity:
            return
        self._held[key] = (value, weight)
        self._weight += weight
        while self._weight > self._capacity:
            _, (_, released) = self._held.popitem(last=False)
            self._weight -= released


class BodyCache:
    """Belongs to one event loop."""

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes`: of the bodies that are kept; those that were asked for longest ago go first."""
        self._bodies: Lru[bytes] = Lru(most_bytes)
        self._making: dict[Hashable, asyncio.Task[bytes]] = {}

    async def body(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The body of a key, which names the question, whose it is, and the moment. What `make` raises, all are told.

        Whoever comes while it is made may join: it is made of what was read after that very moment.
        """
        body = self._bodies.get(key)
        if body is not None:
            return body
        task = self._making.get(key)
        if task is None:
            task = self._making[key] = asyncio.ensure_future(self._made(key, make))
        return await asyncio.shield(task)  # a caller that gives up must not end the making for the others

    async def _made(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            body = await make()
        finally:
            del self._making[key]
        self._bodies.put(key, body, len(body))
        return body


class SingleFlight(Generic[Value]):
    """At most one read of a key runs and at most one waits, however many requests ask."""

    def __init__(self) -> None:
        """Belongs to one event loop."""
        self._running: dict[Hashable, asyncio.Task[Value]] = {}
        self._next: dict[Hashable, asyncio.Task[Value]] = {}

    async def read(self, key: Hashable, start: Callable[[], Awaitable[Value]]) -> Value:
        """The value of a read that begins no earlier than this call. What it raises, every sharer raises."""
        running = self._running.get(key)
        if running is None or running.done():
            task = self._running[key] = asyncio.ensure_future(self._run(key, start, None))
        elif (waiting := self._next.get(key)) is not None:
            task = waiting
        else:
            task = self._next[key] = asyncio.ensure_future(self._run(key, start, running))
        return await asyncio.shield(task)  # a caller that gives up must not end the read of the others

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


class RefreshAheadCache(Generic[Value]):
    """Belongs to one event loop."""

    def __init__(self, start: Callable[[], Awaitable[Value]], seconds: float, clock: Callable[[], float]) -> None:
        """`start` reads. `seconds`: how old the value may be; 0: every question has a read that begins after it."""
        self._start, self._seconds, self._clock = start, seconds, clock
        self._shared: SingleFlight[Value] = SingleFlight()
        self._kept: tuple[float, Value] | None = None
        self._forgotten = 0
        self._ahead: asyncio.Task[Value] | None = None

    async def read(self, *, at_once: bool = False) -> Value:
        """The value, or what its read raises."""
        if self._kept is None or at_once or not self._seconds:
            return await self._newest()
        began, value = self._kept
        age = self._clock() - began
        if age > self._seconds:
            return await self._newest()
        if age > self._seconds / 2 and (self._ahead is None or self._ahead.done()):
            self._ahead = asyncio.ensure_future(self._newest())
            self._ahead.add_done_callback(_look_at)
        return value

    def forget(self) -> None:
        """Whoever asks next is told what is so from now on."""
        self._kept = None
        self._forgotten += 1  # what is being read just now may be of before

    async def _newest(self) -> Value:
        return await self._shared.read(None, self._read)

    async def _read(self) -> Value:
        began, forgotten = self._clock(), self._forgotten
        value = await self._start()
        if forgotten == self._forgotten:
            self._kept = began, value
        return value


def _look_at(task: asyncio.Task[Value]) -> None:
    """Whoever asks once the value is too old reads it again, and is told what that raises."""
    if not task.cancelled():
        task.exception()
