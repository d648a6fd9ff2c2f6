"""Of several that were started one works, and the others wait until it is gone.

A lease says whose turn it is. Of a holder that was killed it is missed for SECONDS.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import structlog

from deploy.cassandra import FAILURES
from master_dataset.errors import UpkeepRuns

SECONDS = 12
"""How long the lease outlives its holder: about as long as a group of consumers misses a member that was killed."""
RENEW_SECONDS = 3.0

log = structlog.get_logger()


class Held(Protocol):
    """Lease."""

    def take(self) -> None:
        """UpkeepRuns if somebody else holds it."""

    def renew(self) -> None:
        """UpkeepRuns if it was lost."""

    def give_back(self) -> None:
        """Another may take it at once."""


class Turn:
    """Belongs to one event loop."""

    def __init__(self, lease: Held) -> None:
        """`lease` blocks."""
        self._lease = lease

    async def work(self, leaving: asyncio.Event, working: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        """Work whenever it is its turn, until told to leave. What `working` raises, which ends by its event."""
        is_told = False
        while not leaving.is_set():
            if await self._asked(self._lease.take, unknown=False):
                await self._work(leaving, working)
                is_told = False
            elif not is_told:
                log.info("turn.waits")
                is_told = True
            with suppress(TimeoutError):
                await asyncio.wait_for(leaving.wait(), RENEW_SECONDS)

    async def _work(self, leaving: asyncio.Event, working: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        ending = asyncio.Event()
        task, left = asyncio.ensure_future(working(ending)), asyncio.ensure_future(leaving.wait())
        try:
            while not (task.done() or left.done()) and await self._is_ours():
                await asyncio.wait({task, left}, timeout=RENEW_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.set()
            left.cancel()
            try:
                await task
            finally:
                await self._asked(self._lease.give_back, unknown=False)

    async def _is_ours(self) -> bool:
        """One that has lapsed is taken again. While nobody says whose it is, all goes on as it was."""
        renewed = await self._asked(self._lease.renew, unknown=True)
        return renewed or await self._asked(self._lease.take, unknown=True)

    async def _asked(self, question: Callable[[], None], *, unknown: bool) -> bool:
        try:
            await asyncio.to_thread(question)
        except UpkeepRuns:
            return False
        except FAILURES as error:
            log.warning("turn.not_known", why=type(error).__name__)
            return unknown
        return True
