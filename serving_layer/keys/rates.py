"""Requests per second of each key: one limit for all processes, without asking anybody when a request arrives.

Every second, each process says how often each key asks it, and reads what the others say. A key that asks several
processes has its limit divided among them: each may answer as much as the others leave, and at least an equal share.

    RateLimiter    counts requests, and refuses those beyond the share of this process
    RateExchange   says and reads, once a second
    ByteLimiter    counts the bytes of events, and refuses more while a key has sent too many

What the others say is up to two seconds old. So a key that begins to ask several processes at once may for that long
get its limit from each.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from limits.storage import MemoryStorage

from master_dataset.errors import CassandraUnavailableError
from serving_layer.errors import RateLimitedError
from serving_layer.keys.key import Caller, Scope
from serving_layer.limits import INGEST_BYTES_PER_MINUTE

WINDOW_SECONDS = 1
EXCHANGE_SECONDS = 1.0
REPORT_SECONDS = 5
"""How long a report counts if its process writes no other one: it has ended, or has nothing to say."""
SHARED_READS = 100
"""Default limit of a share link: a page that is looked at asks about once a second."""
_MINUTE_SECONDS = 60
_LEAST = 0.1
"""Requests per second below which a key is not reported."""

Rates = Mapping[str, float]
"""Requests per second, refused ones too, by scope and name of a key."""


class RateLimiter:
    """Requests per second of each tenant key, over all processes. Keys of all tenants are not limited."""

    def __init__(self, reads: int, ingests: int, shared: int = SHARED_READS) -> None:
        """Set the limits of one key.

        Args:
            reads: requests per second with the scope `read` or `configure`.
            ingests: requests per second with the scope `ingest`.
            shared: requests per second of one share link, of everybody who has it.
        """
        self._shared = shared
        self._storage = MemoryStorage()
        self._limits: Mapping[Scope, int] = {"read": reads, "configure": reads, "ingest": ingests}
        self._asked: Counter[str] = Counter()
        self._rates: dict[str, float] = {}
        self.others: Sequence[Rates] = ()
        """What the other processes say."""

    def count(self, caller: Caller, scope: Scope) -> None:
        """Count one request. Raises RateLimitedError above the limit of the scope."""
        limit = self._shared if caller.share else self._limits.get(scope)
        if caller.tenant is None or limit is None:
            return
        name = f"{scope} {caller.name}"
        self._asked[name] += 1
        allowed = share(limit, [rates[name] for rates in self.others if name in rates])
        if not self._storage.acquire_entry(name, allowed, WINDOW_SECONDS):
            who = "share link" if caller.share else "key"
            message = f"This {who} may send {limit} requests per second with the scope `{scope}`."
            raise RateLimitedError(message, do="Wait a second, then try again.")

    def measured(self, seconds: float) -> Rates:
        """How often each key has asked this process. Averaged, because requests come unevenly.

        Args:
            seconds: since the last call.
        """
        asked, self._asked = self._asked, Counter()
        averages = {
            name: round((self._rates.get(name, 0.0) + asked[name] / seconds) / 2, 2)
            for name in self._rates.keys() | asked.keys()
        }
        self._rates = {name: rate for name, rate in averages.items() if rate >= _LEAST}
        return self._rates


def share(limit: int, others: Iterable[float]) -> int:
    """How much of a limit is left for this process.

    The limit is divided equally, and what a process does not use is divided equally among the rest.

    Args:
        limit: requests per second of all processes.
        others: requests per second that the others get.

    Returns:
        Requests per second; the limit if the others get none, and at least one.
    """
    rest = sorted(others)
    left = float(limit)
    for place, rate in enumerate(rest):
        equal = left / (len(rest) - place + 1)
        if rate >= equal:
            return max(1, math.ceil(equal))
        left -= rate
    return max(1, math.ceil(left))


class ByteLimiter:
    """Bytes of events of each tenant key, in this process. Keys of all tenants are not limited.

    A large event needs several times its bytes of whoever parses it, so what a key may send is limited by more than
    requests. A key may send a minute's bytes at once.
    """

    def __init__(self, per_minute: int = INGEST_BYTES_PER_MINUTE, clock: Callable[[], float] = time.monotonic) -> None:
        """`per_minute`: bytes of one key, decompressed. `clock`: monotonic seconds."""
        self._per_minute, self._clock = per_minute, clock
        self._owed: dict[str, tuple[float, float]] = {}  # bytes by name of a key, and when that was so

    def refuse(self, caller: Caller) -> None:
        """Refuse what brings more events. Raises RateLimitedError while the key has sent too many bytes."""
        if caller.tenant is None:
            return
        too_many = self._left(caller.name) - self._per_minute
        if too_many >= 0:
            message = f"This key may send {self._per_minute // 1_000_000:,} MB of events per minute."
            error = RateLimitedError(
                message, do="Wait as many seconds as `Retry-After` says, then send the same again."
            )
            error.retry_after = math.ceil((too_many + 1) * _MINUTE_SECONDS / self._per_minute)
            raise error

    def count(self, caller: Caller, size: int) -> None:
        """Count bytes that arrived: those of a request are known only when it has been read."""
        if caller.tenant is not None:
            self._owed = {name: owed for name, owed in self._owed.items() if self._left(name)}
            self._owed[caller.name] = (self._left(caller.name) + size, self._clock())

    def _left(self, name: str) -> float:
        """What a key has sent beyond what it could have sent evenly."""
        owed, since = self._owed.get(name, (0.0, 0.0))
        return max(0.0, owed - (self._clock() - since) * self._per_minute / _MINUTE_SECONDS)


class RateReports(Protocol):
    """Where processes say how often keys ask them. Every method raises CassandraUnavailableError."""

    async def report(self, process: str, rates: Rates, seconds: int) -> None:
        """Say it for one process; it ends after so many seconds."""

    async def reports(self) -> Mapping[str, Rates]:
        """What all processes say, by process."""


class RateExchange:
    """Tells the other processes how often keys ask this one, and its limiter what they say."""

    def __init__(
        self, limiter: RateLimiter, reports: RateReports, process: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`process`: identifies this one among all that run and ran. `clock`: monotonic seconds."""
        self._limiter, self._reports, self._process, self._clock = limiter, reports, process, clock
        self._measured_at = self._read_at = clock()
        self._says_something = False

    async def run_forever(self) -> None:
        """Exchange once a second. If it cannot go on, the whole limit of a key is for this process."""
        try:
            while True:
                await asyncio.sleep(EXCHANGE_SECONDS)
                await self.exchange()
        finally:
            self._limiter.others = ()

    async def exchange(self) -> None:
        """Say and read once. While Cassandra does not answer, what the others said last counts until it ends."""
        now = self._clock()
        rates = self._limiter.measured(max(now - self._measured_at, _LEAST))
        self._measured_at = now
        try:
            if rates or self._says_something:  # a process that nobody asks writes nothing
                await self._reports.report(self._process, rates, REPORT_SECONDS)
                self._says_something = bool(rates)
            found = await self._reports.reports()
        except CassandraUnavailableError:
            if self._clock() - self._read_at >= REPORT_SECONDS:
                self._limiter.others = ()
            return
        self._read_at = now
        self._limiter.others = [said for process, said in found.items() if process != self._process]
