"""Authentication and authorization of requests, with rate and concurrency limits per key."""

import asyncio
import hmac
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from master_dataset.errors import CassandraUnavailableError
from serving_layer.api.limits import LIMITS
from serving_layer.errors import (
    ApiKeyMissingError,
    InvalidApiKeyError,
    RateLimitedError,
    ScopeMissingError,
    TooManyAtOnceError,
)
from serving_layer.keys.key import OPERATOR, Caller, Key, KeyReader, Scope, id_of


class RateLimiter:
    """Each key of a tenant has its own; the operator's has none, and neither has whoever is on this machine."""

    def __init__(self, reads: int, ingests: int) -> None:
        """Requests a second of one key, for each purpose."""
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        few, many = RateLimitItemPerSecond(reads), RateLimitItemPerSecond(ingests)
        self._items = {"read": few, "configure": few, "ingest": many}

    def count(self, caller: Caller, scope: Scope) -> None:
        """RateLimitedError beyond what the scope allows."""
        item = self._items.get(scope)
        if caller.tenant is None or item is None:
            return
        if not self._limiter.hit(item, scope, caller.name):
            message = f"This key may ask {item.amount} times a second for `{scope}`."
            raise RateLimitedError(message, do="Wait a second, then ask again.")


class ConcurrencyLimiter:
    """Each key of a tenant has its own, and so have all together who send none; the operator's has none."""

    def __init__(self, most: int) -> None:
        """`most`: of one key."""
        self._most = most
        self._now: Counter[str] = Counter()

    def enter(self, caller: Caller) -> Callable[[int], None] | None:
        """Count one more; what is given is done when it ends, None where nothing is counted. TooManyAtOnceError."""
        if caller.tenant is None:
            return None
        name = caller.name
        if self._now[name] >= self._most:
            message = f"{self._most} requests of this key are under way already."
            raise TooManyAtOnceError(message, do="Wait for an answer, then ask again.")
        self._now[name] += 1
        return lambda _: self._leave(name)

    def _leave(self, name: str) -> None:
        self._now[name] -= 1
        if not self._now[name]:
            del self._now[name]


REFRESH_SECONDS = 2.0
STALE_SECONDS = 5.0
"""Keys that could not be read for so long open nothing: one of them may have been revoked."""
_READ: frozenset[Scope] = frozenset({"read"})
_HEADER = "Send the header `Authorization: Bearer` and a key."


class KeyCache:
    """`operator_key`: of the stack itself; empty: there is none. `anonymous`: the tenant shown without a key, or ""."""

    def __init__(
        self,
        reader: KeyReader,
        operator_key: str,
        anonymous: str,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        """`clock`: monotonic seconds."""
        self._reader, self._operator_key, self._clock, self._now = reader, operator_key, clock, now
        self._anonymous = Caller("anonymous", anonymous, _READ) if anonymous else None
        self._reading = asyncio.Lock()
        self._read_at = float("-inf")
        self._keys: Mapping[str, Key] = {}

    async def caller(self, authorization: str | None) -> Caller:
        """Who sends that header. ApiKeyMissingError, InvalidApiKeyError, CassandraUnavailableError."""
        if not authorization:
            if self._anonymous is None:
                raise ApiKeyMissingError("The request has no key.", do=_HEADER)
            return self._anonymous
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise InvalidApiKeyError("The header `Authorization` is no bearer's.", do=_HEADER)
        if self._operator_key and hmac.compare_digest(text.encode(), self._operator_key.encode()):
            return OPERATOR
        id_ = id_of(text)
        key = (await self._known()).get(id_) if id_ else None
        if key is None or not key.is_said_by(text) or not key.opens(self._now()):
            raise InvalidApiKeyError(
                "The key of the request is unknown, expired or revoked.", do="Ask for another one."
            )
        return Caller.of(key)

    async def _known(self) -> Mapping[str, Key]:
        async with self._reading:  # whoever comes while they are read for the first time waits for them
            if (began := self._clock()) - self._read_at >= REFRESH_SECONDS:
                try:
                    self._keys = {key.id: key for key in await self._reader.keys()}
                    self._read_at = began
                except CassandraUnavailableError:
                    if self._clock() - self._read_at >= STALE_SECONDS:
                        raise
            return self._keys


@dataclass(frozen=True)
class Authenticator:
    """One per process and event loop."""

    keys: KeyCache
    rates: RateLimiter
    concurrency: ConcurrencyLimiter = field(default_factory=lambda: ConcurrencyLimiter(LIMITS.requests_per_key))

    async def caller(self, authorization: str | None, scope: Scope) -> Caller:
        """Whoever sends that header. ApiKeyMissingError, InvalidApiKeyError, ScopeMissingError, RateLimitedError, CassandraUnavailableError."""
        caller = await self.known(authorization, scope)
        self.rates.count(caller, scope)
        return caller

    async def known(self, authorization: str | None, scope: Scope) -> Caller:
        """The same, uncounted."""
        caller = await self.keys.caller(authorization)
        if not _may(caller, scope):
            do = f"Send a key with the scope `{scope}`: `galatea keys create --scope {scope}` makes one."
            if not authorization:
                raise ApiKeyMissingError(f"This needs the scope `{scope}`, and the request has no key.", do=do)
            raise ScopeMissingError(f"The key of the request does not have the scope `{scope}`.", do=do)
        return caller


def _may(caller: Caller, scope: Scope) -> bool:
    """What `operate` opens is everybody's, so that it holds what a tenant may change of its own."""
    is_operator = "operate" in caller.scopes and caller.sees_all
    return is_operator if scope == "operate" else scope in caller.scopes or (scope == "configure" and is_operator)
