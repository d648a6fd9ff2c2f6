"""Slows whoever sends wrong secrets: keys, passwords of SQL, cookies of sessions, and tokens of share links.

In each process on its own. Secrets have 256 random bits, so nobody guesses one however fast they try: this bounds what
wrong ones cost, in the log and in work, and shows in metrics who sends wrong keys.
"""

import math
import re
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TypeVar

from cachetools import LRUCache

from serving_layer.errors import RateLimitedError
from serving_layer.fair_semaphore import FairSemaphore
from serving_layer.keys.key import id_of

Found = TypeVar("Found")
WINDOW_SECONDS = 60.0
WRONG_KEYS_PER_MINUTE = 30
"""Default of one address, over REST and on the sign-in page together."""
MAX_COUNTED = 4096
"""Addresses, and users of addresses, whose failures are remembered: the ones that were seen last."""
MAX_NAME = 100
"""Characters of a user's name that are compared."""
LOOKUPS_AT_ONCE, LOOKUPS_WAITING = 2, 16
"""Secrets of one network that are looked up at once after too many unknown ones, and with those that wait for it."""
_IPV6_PREFIX = 64
_ID = re.compile(r"[0-9a-f]{12}", re.ASCII)


class FailureCounts:
    """Failures of the last minute, by name. Its memory is bounded: `limits` would remember each name for ever."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        """`limit`: failures per minute of one name. `clock`: monotonic seconds."""
        self._limit, self._clock = limit, clock
        self._times: LRUCache[Hashable, deque[float]] = LRUCache(MAX_COUNTED)

    def __len__(self) -> int:
        """How many names are remembered."""
        return len(self._times)

    def count(self, name: Hashable) -> None:
        """Count a failure."""
        times = self._times.get(name)
        if times is None:
            times = self._times[name] = deque(maxlen=self._limit)
        times.append(self._clock())

    def seconds_to_wait(self, name: Hashable) -> int:
        """Until one more failure is allowed; 0 if it is now."""
        times = self._times.get(name)
        if times is None or len(times) < self._limit:
            return 0
        return max(0, math.ceil(times[0] + WINDOW_SECONDS - self._clock()))


class WrongKeyThrottle:
    """Counts wrong keys by address and, if they come with one, by the user of an address."""

    def __init__(
        self,
        of_address: int = WRONG_KEYS_PER_MINUTE,
        of_user: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the limits.

        Args:
            of_address: wrong keys per minute from one address. The addresses of an IPv6 network of 64 bits are one.
            of_user: wrong keys per minute for one user from one address; None: users are not counted.
            clock: monotonic seconds.
        """
        self._addresses = FailureCounts(of_address, clock)
        self._users = None if of_user is None else FailureCounts(of_user, clock)

    def __len__(self) -> int:
        """How many addresses and users are remembered."""
        return len(self._addresses) + (0 if self._users is None else len(self._users))

    def count(self, address: str, user: str = "") -> None:
        """Count a wrong key."""
        network = network_of(address)
        self._addresses.count(network)
        if self._users is not None:
            self._users.count((network, user[:MAX_NAME]))

    def seconds_to_wait(self, address: str, user: str = "") -> int:
        """Until one more wrong key is answered as usual; 0 if it is now."""
        network = network_of(address)
        waits = [self._addresses.seconds_to_wait(network)]
        if self._users is not None:
            waits.append(self._users.seconds_to_wait((network, user[:MAX_NAME])))
        return max(waits)


class LookupThrottle:
    """Looks up secrets that may not exist, such as the cookies of sessions, and counts unknown ones by network."""

    def __init__(self, what: str, limit: int, clock: Callable[[], float]) -> None:
        """Nothing is counted yet.

        Args:
            what: what is looked up, in the plural, for the error.
            limit: unknown ones per minute of one network; then they are refused, and few are looked up at once.
            clock: monotonic seconds.
        """
        self._what, self._unknown = what, FailureCounts(limit, clock)
        self._waiting: Counter[str] = Counter()
        self._semaphore = FairSemaphore(MAX_COUNTED, LOOKUPS_AT_ONCE)

    def __len__(self) -> int:
        """How many networks are remembered."""
        return len(self._unknown)

    async def look_up(self, address: str, read: Callable[[], Awaitable[Found | None]]) -> Found | None:
        """What `read` finds; None if that is nothing.

        Args:
            address: of the client.
            read: looks up a secret from this client.

        Raises:
            RateLimitedError: nothing was found, as often in the last minute, or too many of this network wait.
        """
        network = network_of(address)
        if not self._unknown.seconds_to_wait(network):
            found = await read()
            if found is None:
                self._unknown.count(network)
            return found
        if self._waiting[network] >= LOOKUPS_WAITING:
            raise self._refusal()
        self._waiting[network] += 1
        try:
            async with self._semaphore.hold(network):
                found = await read()
        finally:
            self._waiting -= Counter([network])  # forgets who has none
        if found is None:
            raise self._refusal()
        return found

    def _refusal(self) -> RateLimitedError:
        return RateLimitedError(
            f"Too many unknown {self._what} came from this address.", do="Wait a minute, then try again."
        )


def loggable_id(authorization: str) -> str | None:
    """The id of the key in an `Authorization` header, which is no secret; None if it does not have the form of one."""
    id_ = id_of(authorization.partition(" ")[2])
    return id_ if _ID.fullmatch(id_) else None


def network_of(address: str) -> str:
    """The address, or its network if whoever has one address of it has all of them."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:MAX_NAME]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((int(parsed), _IPV6_PREFIX), strict=False))
