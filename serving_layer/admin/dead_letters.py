"""Dead letters for those who ask over HTTP: looked at and sent again beside the event loop, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from prometheus_client import Counter

from master_dataset.dead_letters.dead_letter import DeadLetterCursor, DeadLetterQuery, StoredDeadLetter
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.queries import DeadLetterListing, DeadLetterQueries, Told
from master_dataset.dead_letters.replay import DeadLetterResult, Replayer, ReplayRequest
from master_dataset.kafka.record import RecordPosition
from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms
from serving_layer.errors import TooBusyError

MAX_WAITING = 16
"""Questions about dead letters that are under way in a process: one reads, one replays, the others wait for them."""
MAX_REPLAYED = 500
"""DeadLetterService in one request."""
REPLAYED = Counter(
    "galatea_replayed_letters", "Dead letters that were to be sent again over HTTP.", ("topic", "outcome")
)

Registry = Callable[[], Awaitable[tuple[int, Mapping[str, Store]]]]
Found = TypeVar("Found")


@dataclass(frozen=True)
class DeadLetterReplayRequest:
    """DeadLetterService by their places, or the oldest `limit` behind `after` that fit the question and were never sent again."""

    places: tuple[RecordPosition, ...] = ()
    question: DeadLetterQuery | None = None
    limit: int = MAX_REPLAYED
    after: DeadLetterCursor | None = None
    mend: Patch = field(default_factory=Patch)
    dry_run: bool = False


class DeadLetterService:
    """One per process and event loop. To read and to replay have a thread each: a broker that is away stops no list."""

    def __init__(self, desk: DeadLetterQueries, replaying: Replayer, registry: Registry) -> None:
        """`registry`: its version and the stores in it."""
        self._desk, self._replaying, self._registry = desk, replaying, registry
        self._reader, self._sender = ThreadPoolExecutor(1, "letters"), ThreadPoolExecutor(1, "replays")
        self._waiting = 0

    async def listed(self, question: DeadLetterQuery, limit: int, after: DeadLetterCursor | None) -> DeadLetterListing:
        """As Desk. TooBusyError."""
        return await self._beside(self._reader, lambda: self._desk.listed(question, limit, after))

    async def shown(self, place: RecordPosition) -> tuple[StoredDeadLetter, Told]:
        """As Desk. UnknownNameError, TooBusyError."""
        return await self._beside(self._reader, lambda: self._desk.shown(place))

    async def replay(
        self, ask: DeadLetterReplayRequest, by: str
    ) -> tuple[list[DeadLetterResult], DeadLetterCursor | None]:
        """An item for each letter, and behind which one others fit. UnknownNameError, BrokerUnavailableError, TooBusyError."""
        _, stores = await self._registry()

        def terms_of(store: str) -> Terms:
            return stores[store].terms if store in stores else DEFAULT_TERMS

        def run() -> tuple[list[DeadLetterResult], DeadLetterCursor | None]:
            asked, following = ReplayRequest(ask.places, ask.mend, by, ask.dry_run), None
            if ask.question is not None:
                page = self._desk.open(ask.question, ask.limit, ask.after)
                places = [each.place for each in page.letters]
                asked, following = ReplayRequest(places, ask.mend, by, ask.dry_run, page.letters), page.following
            return self._replaying.run(asked, terms_of, lambda *_: None), following

        items, following = await self._beside(self._sender, run)
        for item in () if ask.dry_run else items:
            REPLAYED.labels(item.place.topic, item.outcome.value).inc()
        return items, following

    async def _beside(self, thread: ThreadPoolExecutor, work: Callable[[], Found]) -> Found:
        if self._waiting >= MAX_WAITING:
            raise TooBusyError(f"{MAX_WAITING} questions about dead letters are under way already.", do="Ask again.")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, work)
        finally:
            self._waiting -= 1
