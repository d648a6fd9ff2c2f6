"""Slows whoever sends wrong keys, over REST, on the sign-in page and as passwords of SQL. In each process on its own.

Keys have 256 random bits, so nobody guesses one however fast they try: this bounds what wrong keys cost, in the log and
in work, and shows in metrics who sends them.
"""

import math
import re
import time
from collections import deque
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address, ip_network

from cachetools import LRUCache

from serving_layer.keys.key import id_of

WINDOW_SECONDS = 60.0
WRONG_KEYS_PER_MINUTE = 30
"""Default of one address, over REST and on the sign-in page together."""
MAX_COUNTED = 4096
"""Addresses, and users of addresses, whose failures are remembered: the ones that were seen last."""
MAX_NAME = 100
"""Characters of a user's name that are compared."""
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
        network = _network(address)
        self._addresses.count(network)
        if self._users is not None:
            self._users.count((network, user[:MAX_NAME]))

    def seconds_to_wait(self, address: str, user: str = "") -> int:
        """Until one more wrong key is answered as usual; 0 if it is now."""
        network = _network(address)
        waits = [self._addresses.seconds_to_wait(network)]
        if self._users is not None:
            waits.append(self._users.seconds_to_wait((network, user[:MAX_NAME])))
        return max(waits)


def loggable_id(authorization: str) -> str | None:
    """The id of the key in an `Authorization` header, which is no secret; None if it does not have the form of one."""
    id_ = id_of(authorization.partition(" ")[2])
    return id_ if _ID.fullmatch(id_) else None


def _network(address: str) -> str:
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
