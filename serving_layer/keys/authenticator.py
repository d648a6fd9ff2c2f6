"""Authentication and authorization of requests, with rate and concurrency limits per key."""

import hmac
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from starlette.types import Scope as HTTPScope

from master_dataset.errors import CassandraUnavailableError
from serving_layer.caching import SingleFlight
from serving_layer.errors import (
    ApiKeyMissingError,
    InvalidApiKeyError,
    RateLimitedError,
    ScopeMissingError,
    TooManyAtOnceError,
)
from serving_layer.keys.key import ANONYMOUS, OPERATOR, Caller, Key, KeyReader, Scope, id_of
from serving_layer.keys.rates import ByteLimiter, RateLimiter
from serving_layer.keys.throttle import WrongKeyThrottle, loggable_id
from serving_layer.limits import LIMITS

log = structlog.get_logger()

_PROXY_HEADERS = frozenset({b"forwarded", b"via", b"x-real-ip"})
_PROXY_HEADER_PREFIX = b"x-forwarded-"
SHARED_AT_ONCE = 64
"""Default limit of concurrent requests of a share link, of everybody who has it: a quarter of those of a process."""


class ConcurrencyLimiter:
    """Concurrent requests of each tenant key, in this process: they protect it, so each process has as many.

    Requests without a key share one limit. Those of a share link share a limit of their own. Keys of all tenants are
    not limited.
    """

    def __init__(self, max_requests: int, max_shared: int = SHARED_AT_ONCE) -> None:
        """`max_requests`: of one key. `max_shared`: of one share link."""
        self._max, self._max_shared = max_requests, max_shared
        self._in_progress: Counter[str] = Counter()

    def enter(self, caller: Caller) -> Callable[[int], None] | None:
        """Count one more request of the caller.

        Returns:
            A function to call when the request ends; None if the caller is not limited.

        Raises:
            TooManyAtOnceError: the key or share link is at its limit.
        """
        if caller.tenant is None:
            return None
        name = caller.name
        most, who = (self._max_shared, "share link") if caller.share else (self._max, "key")
        if self._in_progress[name] >= most:
            message = f"{most} requests of this {who} are already in progress."
            raise TooManyAtOnceError(message, do="Wait for a response, then try again.")
        self._in_progress[name] += 1
        return lambda _: self._leave(name)

    def _leave(self, name: str) -> None:
        self._in_progress[name] -= 1
        if not self._in_progress[name]:
            del self._in_progress[name]


REFRESH_SECONDS = 2.0
STALE_SECONDS = 5.0
"""Keys that could not be refreshed for this long are no longer accepted: one of them may have been revoked."""
_READ: frozenset[Scope] = frozenset({"read"})
MAX_KEY_CHARACTERS = 256
"""Longer text is no key, and is not even hashed. Keys have 64 characters."""
_HEADER = "Send the header `Authorization: Bearer` with a key."


class KeyCache:
    """The known API keys, refreshed every `REFRESH_SECONDS`."""

    def __init__(
        self,
        reader: KeyReader,
        operator_key: str,
        anonymous: str,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        """Start with no keys; the first request reads them.

        Args:
            reader: where keys are stored.
            operator_key: the key of the stack itself; empty if it has none.
            anonymous: the tenant whose stores are visible without a key; empty for none.
            clock: monotonic time in seconds, for refreshes.
            now: the current time, for expiry.
        """
        self._reader, self._operator_key, self._clock, self._now = reader, operator_key, clock, now
        self._anonymous = Caller(ANONYMOUS, anonymous, _READ) if anonymous else None
        self._reads: SingleFlight[None] = SingleFlight()
        self._read_at = float("-inf")
        self._keys: Mapping[str, Key] = {}
        self._ends: dict[str, datetime] = {}

    async def caller(self, authorization: str | None) -> Caller:
        """Identify the caller by the `Authorization` header; None if the request has none.

        Raises:
            ApiKeyMissingError: there is no key, and anonymous access is off.
            InvalidApiKeyError: the key is unknown, expired or revoked.
            CassandraUnavailableError: keys could not be refreshed for `STALE_SECONDS`.
        """
        if not authorization:
            if self._anonymous is None:
                raise ApiKeyMissingError("The request has no key.", do=_HEADER)
            return self._anonymous
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise InvalidApiKeyError("The header `Authorization` has no bearer token.", do=_HEADER)
        if self._operator_key and hmac.compare_digest(text.encode(), self._operator_key.encode()):
            return OPERATOR
        id_ = id_of(text) if len(text) <= MAX_KEY_CHARACTERS else ""
        key = (await self._known()).get(id_) if id_ else None
        if key is None or not key.matches(text) or not key.is_valid(self._now()):
            raise InvalidApiKeyError(
                "The key of the request is unknown, expired or revoked.", do="Ask for another one."
            )
        return Caller.of(key)

    async def _known(self) -> Mapping[str, Key]:
        if self._clock() - self._read_at >= REFRESH_SECONDS:
            try:
                await self._reads.read(None, self._refresh)  # all who wait share a read, and its failure
            except CassandraUnavailableError:
                if self._clock() - self._read_at >= STALE_SECONDS:
                    raise
        return self._keys

    async def _refresh(self) -> None:
        """Read the keys, unless they were read since the caller began to wait."""
        if (began := self._clock()) - self._read_at >= REFRESH_SECONDS:
            self._keys = {key.id: self._ended(key) for key in await self._reader.keys()}
            self._read_at = began

    def _ended(self, key: Key) -> Key:
        """The key with the earliest end that its rows ever said: somebody may have written a former row again.

        A revocation is such an end, too: a former row has none.
        """
        if not key.is_signed:
            return key
        ends = [end for end in (key.expires_at, key.revoked_at, self._ends.get(key.id)) if end]
        if ends:
            self._ends[key.id] = min(ends)
        return replace(key, expires_at=self._ends.get(key.id))


@dataclass(frozen=True)
class Authenticator:
    """Identifies callers, checks their scopes and enforces their limits. One per process and event loop."""

    keys: KeyCache
    rates: RateLimiter
    concurrency: ConcurrencyLimiter = field(default_factory=lambda: ConcurrencyLimiter(LIMITS.requests_per_key))
    throttle: WrongKeyThrottle = field(default_factory=WrongKeyThrottle)
    sent: ByteLimiter = field(default_factory=ByteLimiter)

    async def authorize(self, authorization: str | None, scope: Scope, address: str) -> Caller:
        """Identify the caller, check the scope and count the request.

        Args:
            authorization: the header of that name; None if the request has none.
            scope: what the route requires.
            address: of the client, by which wrong keys are counted; empty if it is not known.

        Raises:
            ApiKeyMissingError: there is no key, and the scope needs one.
            InvalidApiKeyError: the key is unknown, expired or revoked.
            ScopeMissingError: the key does not have the scope.
            RateLimitedError: the key sends too many requests, or it is wrong, as were too many from this address.
            CassandraUnavailableError: keys could not be read.
        """
        caller = await self.identify(authorization, scope, address)
        self.rates.count(caller, scope)
        return caller

    async def caller(self, authorization: str | None, address: str) -> Caller:
        """Identify the caller; wrong keys are counted, logged and slowed. A valid key is never slowed by others.

        Raises:
            ApiKeyMissingError: there is no key, and anonymous access is off.
            InvalidApiKeyError: the key is unknown, expired or revoked.
            RateLimitedError: the same, after too many wrong keys from this address.
            CassandraUnavailableError: keys could not be read.
        """
        try:
            return await self.keys.caller(authorization)
        except InvalidApiKeyError:
            if error := self.too_many_wrong_keys(address):
                raise error from None
            self.throttle.count(address)
            key = loggable_id(authorization or "")
            log.info("keys.refused", address=address, key=key)
            if seconds := self.throttle.seconds_to_wait(address):
                log.warning("keys.throttled", address=address, seconds=seconds)
            raise

    def too_many_wrong_keys(self, address: str) -> RateLimitedError | None:
        """The error for one more wrong key from an address; None if it would be answered as usual."""
        seconds = self.throttle.seconds_to_wait(address)
        if not seconds:
            return None
        error = RateLimitedError(
            "The key of the request is wrong, as were too many others from this address.",
            do="Wait a minute, then send a valid key.",
        )
        error.retry_after = seconds
        return error

    async def identify(self, authorization: str | None, scope: Scope, address: str | None = None) -> Caller:
        """Like `authorize`, but without counting the request. `address`: None if wrong keys are counted elsewhere."""
        caller = await (self.keys.caller(authorization) if address is None else self.caller(authorization, address))
        if not _has_scope(caller, scope):
            do = f"Send a key with the scope `{scope}`: `galatea keys create --scope {scope}` makes one."
            if not authorization:
                raise ApiKeyMissingError(f"This needs the scope `{scope}`, and the request has no key.", do=do)
            raise ScopeMissingError(f"The key of the request does not have the scope `{scope}`.", do=do)
        return caller


def _has_scope(caller: Caller, scope: Scope) -> bool:
    """`operate` is for keys of all tenants alone, and includes `configure`."""
    if scope == "operate":
        return caller.is_operator
    return caller.may_configure if scope == "configure" else scope in caller.scopes


def refuse_anonymous_through_proxy(scope: HTTPScope, authorization: str | None) -> None:
    """Refuse a request without a key that a proxy has passed on, because only this machine reads without one.

    The headers that proxies add distinguish their clients from this machine, wherever the proxy is.

    Raises:
        ApiKeyMissingError: it has no key, and came through a proxy.
    """
    if authorization or not _is_forwarded(scope):
        return
    raise ApiKeyMissingError(
        "The request has no key, and came through a proxy.",
        do="Send the header `Authorization: Bearer` with a key. Without one, only this machine can read.",
    )


def _is_forwarded(scope: HTTPScope) -> bool:
    return any(name in _PROXY_HEADERS or name.startswith(_PROXY_HEADER_PREFIX) for name, _ in scope["headers"])
