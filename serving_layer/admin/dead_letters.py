"""Dead letters for the REST API: listed and replayed outside of the event loop, a few requests at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from prometheus_client import Counter

from master_dataset.dead_letters.dead_letter import DeadLetterCursor, DeadLetterQuery, StoredDeadLetter
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.queries import DeadLetterFields, DeadLetterListing, DeadLetterQueries
from master_dataset.dead_letters.replay import DeadLetterResult, Replayer, ReplayRequest
from master_dataset.kafka.record import RecordPosition
from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms
from serving_layer.errors import TooBusyError

MAX_WAITING = 16
"""Requests about dead letters in progress: one reads, one replays, the others wait for them."""
MAX_REPLAYED = 500
"""Dead letters replayed by one request."""
REPLAYED = Counter(
    "galatea_replayed_letters", "Dead letters that were to be sent again over HTTP.", ("topic", "outcome")
)

Registry = Callable[[], Awaitable[tuple[str, Mapping[str, Store]]]]
Found = TypeVar("Found")


@dataclass(frozen=True)
class DeadLetterReplayRequest:
    """The dead letters at these places, or the oldest `limit` after `after` that match and were never replayed."""

    positions: tuple[RecordPosition, ...] = ()
    query: DeadLetterQuery | None = None
    limit: int = MAX_REPLAYED
    after: DeadLetterCursor | None = None
    patch: Patch = field(default_factory=Patch)
    dry_run: bool = False


class DeadLetterService:
    """One per process and event loop. Reads and replays have a thread each, so lists work while the broker is down."""

    def __init__(self, queries: DeadLetterQueries, replaying: Replayer, registry: Registry) -> None:
        """`registry`: reads the version of the store registry and its stores."""
        self._queries, self._replaying, self._registry = queries, replaying, registry
        self._reader, self._sender = ThreadPoolExecutor(1, "dead-letters"), ThreadPoolExecutor(1, "replays")
        self._waiting = 0

    async def listed(self, query: DeadLetterQuery, limit: int, after: DeadLetterCursor | None) -> DeadLetterListing:
        """As `DeadLetterQueries.list_page`. TooBusyError."""
        return await self._in_thread(self._reader, lambda: self._queries.list_page(query, limit, after))

    async def shown(self, position: RecordPosition) -> tuple[StoredDeadLetter, DeadLetterFields]:
        """As `DeadLetterQueries.get`. UnknownNameError, TooBusyError."""
        return await self._in_thread(self._reader, lambda: self._queries.get(position))

    async def replay(
        self, request: DeadLetterReplayRequest, by: str
    ) -> tuple[list[DeadLetterResult], DeadLetterCursor | None]:
        """Replay dead letters.

        Args:
            request: which ones, and how to patch them.
            by: the name of the caller, for the record.

        Returns:
            The result of each, and the cursor after which more match; None if none does.

        Raises:
            UnknownNameError: there is no such dead letter.
            BrokerUnavailableError: the broker does not respond.
            TooBusyError: too many requests wait.
        """
        _, stores = await self._registry()

        def terms_of(store: str) -> Terms:
            return stores[store].terms if store in stores else DEFAULT_TERMS

        def run() -> tuple[list[DeadLetterResult], DeadLetterCursor | None]:
            replays, following = ReplayRequest(request.positions, request.patch, by, request.dry_run), None
            if request.query is not None:
                page = self._queries.list_replayable(request.query, request.limit, request.after)
                positions, following = [each.position for each in page.dead_letters], page.following
                replays = ReplayRequest(positions, request.patch, by, request.dry_run, page.dead_letters)
            return self._replaying.run(replays, terms_of, lambda *_: None), following

        items, following = await self._in_thread(self._sender, run)
        for item in () if request.dry_run else items:
            REPLAYED.labels(item.position.topic, item.outcome.value).inc()
        return items, following

    async def _in_thread(self, thread: ThreadPoolExecutor, work: Callable[[], Found]) -> Found:
        if self._waiting >= MAX_WAITING:
            message = f"{MAX_WAITING} requests about dead letters are already in progress."
            raise TooBusyError(message, do="Try again.")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, work)
        finally:
            self._waiting -= 1
