"""Answers that contain certain events: `at_least` names them by a token, `max_staleness` by when they were received.

What a snapshot contains is decided from what the answer itself is computed from, its cut and its positions, which were
read before any cell (docs/adr/0065-at-least-mine.md):

    published   received before the cut, so in batch
    read        before the position of the generation that counts: in its rows, or a dead letter, or a duplicate
    waiting     read, and left to batch: only a published cut contains it. Ingest knows it, so the token says it

A snapshot that lacks something is read again until it does not, for a bounded time.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from cachetools import LRUCache

from master_dataset.errors import BrokerUnavailableError
from serving_layer.caching import RefreshAheadCache, retrieve_exception
from serving_layer.errors import BadQuestionError, NotYetError, TooBusyError
from serving_layer.responses.encoding import PartitionProgress, ReadProgress, iso_instant
from serving_layer.store.snapshot import ReadSnapshot
from serving_layer.store.topic_logs import LogReading, TopicLogs
from views.control.generation import reached
from views.control.token import EventToken, TopicEnds
from views.core.cut import UNIX_EPOCH

POLL_SECONDS = 0.025
"""How often a snapshot is read again while requests wait for one. All of them share a reading."""
MOST_WAITING, MOST_WAITING_OF_TENANT = 128, 96
"""Requests that may wait at once, and those of one tenant: the others in progress go on."""
OPENINGS_SECONDS = 5.0
"""Greatest age of what is known of added partitions. They are announced earlier than this before they open."""
_MS = timedelta(milliseconds=1)


class Opening(NamedTuple):
    """Partitions that were added: `before` to `partitions` - 1. `opened_ms`: None until they are open.

    What they hold counts as received when they opened, at the earliest.
    """

    before: int
    partitions: int
    opened_ms: int | None


class TopicReader(Protocol):
    """What Cassandra knows of topics. Every method raises CassandraUnavailableError."""

    async def tags(self, generation: int) -> Mapping[str, str]:
        """The tags of the topics whose offsets the positions of a generation are. Empty if that is not recorded."""

    async def openings(self) -> Sequence[Opening]:
        """Every growth of the topics."""


@dataclass(frozen=True)
class Demand:
    """What an answer has to contain.

    Attributes:
        token: the events of `at_least`.
        staleness: seconds: everything that was received until so long before the request; None: whatever there is.
    """

    token: EventToken = field(default_factory=EventToken)
    staleness: float | None = None


class _Lack(NamedTuple):
    """What a snapshot lacks. `cut_ms`: the cut that is needed; None if a later one would not help any more."""

    positions: Sequence[PartitionProgress]
    cut_ms: int | None


ReadAgain = Callable[[], Awaitable[ReadSnapshot]]


class AtLeast:
    """Waits for snapshots that contain what is demanded. One per process and event loop."""

    def __init__(
        self,
        topics: TopicReader,
        sources: Collection[str],
        seconds: float,
        clock: Callable[[], float],
        logs: TopicLogs | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            topics: what Cassandra knows of topics.
            sources: the topics of all sources.
            seconds: how long a request may wait.
            clock: monotonic seconds.
            logs: what Kafka knows of them; None in a process without Kafka, which has no `max_staleness`.
        """
        self._topics, self._sources, self._logs = topics, frozenset(sources), logs
        self._seconds, self._clock = seconds, clock
        self._openings = RefreshAheadCache(topics.openings, OPENINGS_SECONDS, clock)
        self._tags: LRUCache[int, Mapping[str, str]] = LRUCache(16)
        self._waiting: Counter[str | None] = Counter()

    async def wait(
        self,
        demand: Demand,
        snapshot: ReadSnapshot,
        again: ReadAgain,
        sleep: Callable[[float], Awaitable[None]],
        tenant: str | None = None,
    ) -> ReadSnapshot:
        """A snapshot that contains what is demanded: the given one if it does, and else one that is read later.

        Args:
            demand: what it has to contain.
            snapshot: the one of now.
            again: reads one after it is called.
            sleep: waits so many seconds.
            tenant: who asks; None for callers who see all tenants.

        Raises:
            NotYetError: none did in time.
            BadQuestionError: the token names what is not in the topics.
            TooBusyError: too many requests wait already, in all or of the tenant.
            BrokerUnavailableError: how old an answer is cannot be known now.
            CassandraUnavailableError: likewise what it contains.
        """
        began = self._clock()
        self._refuse_foreign(demand.token)
        lack = await self._lack(demand, snapshot, began)
        if lack is None:
            if not demand.token.topics.keys() <= (await self._tags_of(snapshot)).keys():
                await self._refuse_impossible(demand.token)
            return snapshot
        checking = asyncio.ensure_future(self._refuse_impossible(demand.token))
        checking.add_done_callback(retrieve_exception)
        try:
            with self._counted(tenant):
                while self._clock() - began < self._seconds:
                    await sleep(POLL_SECONDS)
                    snapshot = await again()
                    if checking.done():
                        checking.result()
                    lack = await self._lack(demand, snapshot, began)
                    if lack is None:
                        return snapshot
        finally:
            checking.cancel()
        raise _not_yet(lack, snapshot, self._seconds)

    async def refuse_lacking(self, demand: Demand, snapshot: ReadSnapshot) -> None:
        """Raise BadQuestionError if a snapshot that never changes lacks what is demanded."""
        self._refuse_foreign(demand.token)
        await self._refuse_impossible(demand.token)
        if demand.staleness is not None:
            message = "`as_of` names a publication, which becomes older, and `max_staleness` limits how old it may be."
            raise BadQuestionError(message, do="Leave one of them out.")
        if await self._lack(demand, snapshot, self._clock()) is not None:
            number = snapshot.pointer.publication
            message = f"Publication `{number}` does not contain what `at_least` names, and never will."
            raise BadQuestionError(message, do="Name a later one, or leave `as_of` out.")

    async def token(self, snapshot: ReadSnapshot) -> EventToken:
        """What an answer from this snapshot contains: an answer that contains it lacks nothing of this one."""
        tags = await self._tags_of(snapshot) if snapshot.has_speed else {}
        ends: dict[str, dict[int, int]] = {}
        for at in snapshot.positions if snapshot.has_speed else ():
            if at.topic in tags and at.position:
                ends.setdefault(at.topic, {})[at.partition] = at.position
        topics = {topic: TopicEnds(tags[topic], own) for topic, own in ends.items()}
        return EventToken(topics, cut_ms=_ms(snapshot.pointer.cut))

    async def _tags_of(self, snapshot: ReadSnapshot) -> Mapping[str, str]:
        number = snapshot.pointer.generation
        if not number:
            return {}
        found = self._tags.get(number)
        if found is None:
            found = await self._topics.tags(number)
            if found:
                self._tags[number] = found
        return found

    @contextmanager
    def _counted(self, tenant: str | None) -> Iterator[None]:
        own, total = self._waiting[tenant], self._waiting.total()
        if own >= MOST_WAITING_OF_TENANT or total >= MOST_WAITING:
            of_one = "of this tenant" if tenant is not None else "with keys for all tenants"
            whose = f"{own} requests {of_one}" if own >= MOST_WAITING_OF_TENANT else f"{total} requests"
            message = f"{whose} already wait for events that are not counted yet."
            raise TooBusyError(message, do="Try again.")
        self._waiting[tenant] += 1
        try:
            yield
        finally:
            self._waiting -= Counter([tenant])  # forgets who has none

    async def _lack(self, demand: Demand, snapshot: ReadSnapshot, began: float) -> _Lack | None:
        lack = await self._lack_of_token(demand.token, snapshot)
        if lack is None and demand.staleness is not None:
            return await self._lack_of_time(demand.staleness, snapshot, began)
        return lack

    async def _lack_of_token(self, token: EventToken, snapshot: ReadSnapshot) -> _Lack | None:
        """Everything is proved from the snapshot. What cannot be proved is lacking."""
        tags = await self._tags_of(snapshot) if token.topics and not snapshot.is_past else {}
        for topic, (tag, _) in token.topics.items():
            if tags.get(topic, tag) != tag:
                raise _other_topic(topic)
        cut, cut_needed = _ms(snapshot.pointer.cut), token.cut_ms
        read = _positions(snapshot) if snapshot.has_speed else {}
        for opening in await self._openings_for(token, read):
            # Such an event counts as received when the partition opened, so it may have become too old for speed.
            if opening.opened_ms is None:
                return _Lack(_progress(token, read), None)
            cut_needed = max(cut_needed, opening.opened_ms + 1)
        is_published = token.last_ms is not None and cut > token.last_ms
        behind = (
            () if is_published else [each for each in _progress(token, read) if each.topic not in tags or each.lack]
        )
        if cut >= cut_needed and not behind:
            return None
        return _Lack(behind, cut_needed if cut < cut_needed else None)

    async def _openings_for(self, token: EventToken, read: Mapping[str, Mapping[int, int]]) -> Sequence[Opening]:
        """The openings of partitions that the token names, unless all of its events were received after them."""
        first, named = token.first_ms, {number for _, number, _ in token.partitions}
        if first is None:
            return ()
        is_new = any(number not in read.get(topic, {}) for topic, number, _ in token.partitions)
        return [
            each
            for each in await self._openings.read(fresh=is_new)
            if (each.opened_ms is None or each.opened_ms > first)
            and not named.isdisjoint(range(each.before, each.partitions))
        ]

    async def _lack_of_time(self, seconds: float, snapshot: ReadSnapshot, began: float) -> _Lack | None:
        if self._logs is None:
            raise BadQuestionError("This process does not measure how old an answer is.", do="Use the REST API.")
        tags, read = await self._tags_of(snapshot), _positions(snapshot)
        readings = await self._logs.since(began - seconds)
        if snapshot.has_speed and any(_is_read(each, tags, read) for each in readings):
            return None
        needed = EventToken({topic: own for topic, own in readings[0].topics.items() if topic in tags})
        return _Lack([each for each in _progress(needed, read) if each.lack], None)

    def _refuse_foreign(self, token: EventToken) -> None:
        for topic in token.topics:
            if topic not in self._sources:
                message = f"`at_least` names the topic `{topic}`, which is not that of a source."
                raise BadQuestionError(message, do="Send a token of this deployment.")

    async def _refuse_impossible(self, token: EventToken) -> None:
        """BadQuestionError if the topics do not have what the token names, so that nobody waits for it in vain.

        While Kafka does not answer, that is not known, and those who wait hear that it is not there yet.
        """
        if self._logs is None or not token.topics:
            return
        with suppress(BrokerUnavailableError):
            logs = (await self._logs.read()).topics
            for topic, (tag, ends) in token.topics.items():
                if topic not in logs or logs[topic].tag != tag:
                    raise _other_topic(topic)
                for number, end in ends.items():
                    _refuse_beyond(topic, number, end, logs[topic].ends)


def _refuse_beyond(topic: str, partition: int, end: int, ends: Mapping[int, int]) -> None:
    do = "Send a token as you got it from this deployment."
    if partition not in ends:
        message = f"`at_least` names partition {partition} of `{topic}`, which has {len(ends)} partitions."
        raise BadQuestionError(message, do=do)
    if end > ends[partition]:
        message = f"`at_least` names offset {end - 1} of `{topic}/{partition}`, which ends at {ends[partition]}."
        raise BadQuestionError(message, do=do)


def _other_topic(topic: str) -> BadQuestionError:
    message = f"`at_least` names events of another topic `{topic}`: it was created again since, or elsewhere."
    return BadQuestionError(message, do="Leave `at_least` out; events that are sent from now on get valid tokens.")


def _is_read(reading: LogReading, tags: Mapping[str, str], read: Mapping[str, Mapping[int, int]]) -> bool:
    """Whether positions of topics with these tags are at the ends of a reading."""
    return bool(tags) and all(
        topic in reading.topics
        and reading.topics[topic].tag == tag
        and reached(read, {topic: reading.topics[topic].ends})
        for topic, tag in tags.items()
    )


def _positions(snapshot: ReadSnapshot) -> Mapping[str, Mapping[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for at in snapshot.positions:
        found.setdefault(at.topic, {})[at.partition] = at.position
    return found


def _progress(token: EventToken, read: Mapping[str, Mapping[int, int]]) -> list[PartitionProgress]:
    return [
        PartitionProgress(topic, number, read.get(topic, {}).get(number, 0), end)
        for topic, number, end in token.partitions
    ]


def _not_yet(lack: _Lack, snapshot: ReadSnapshot, seconds: float) -> NotYetError:
    cut = snapshot.pointer.cut
    needed = UNIX_EPOCH + lack.cut_ms * _MS if lack.cut_ms is not None else None
    lacks = [f"`{at.topic}/{at.partition}` was read to {at.position} of {at.needed}" for at in lack.positions[:1]]
    lacks += [f"the cut is {cut:%Y-%m-%d %H:%M:%S} UTC, and {needed:%Y-%m-%d %H:%M:%S} is needed"] if needed else []
    message = f"The answer does not contain everything requested yet, after {seconds:g} s: {'; '.join(lacks)}."
    do = "Try again. `galatea status` shows whether the speed layer reads, `galatea rebuild` publishes a new cut."
    progress = ReadProgress(iso_instant(cut), iso_instant(needed), list(lack.positions))
    return NotYetError(message, do=do, progress=progress)


def _ms(at: datetime) -> int:
    return (at - UNIX_EPOCH) // _MS
