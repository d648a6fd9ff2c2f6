"""Which keys are good, as every process knows it within seconds."""

import asyncio
import hmac
from collections.abc import Callable, Mapping
from datetime import datetime

from master_dataset.errors import StoreUnavailable
from serving_layer.errors import KeyMissing, KeyWrong
from serving_layer.keys.caller import OPERATOR, Caller
from serving_layer.keys.key import Key, KeyReader, Scope, id_of

REFRESH_SECONDS = 2.0
STALE_SECONDS = 5.0
"""Keys that could not be read for so long open nothing: one of them may have been revoked."""
_READ: frozenset[Scope] = frozenset({"read"})
_HEADER = "Send the header `Authorization: Bearer` and a key."


class KnownKeys:
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
        """Who sends that header. KeyMissing, KeyWrong, StoreUnavailable."""
        if not authorization:
            if self._anonymous is None:
                raise KeyMissing("The request has no key.", do=_HEADER)
            return self._anonymous
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise KeyWrong("The header `Authorization` is no bearer's.", do=_HEADER)
        if self._operator_key and hmac.compare_digest(text.encode(), self._operator_key.encode()):
            return OPERATOR
        id_ = id_of(text)
        key = (await self._known()).get(id_) if id_ else None
        if key is None or not key.is_said_by(text) or not key.opens(self._now()):
            raise KeyWrong("The key of the request is unknown, expired or revoked.", do="Ask for another one.")
        return Caller.of(key)

    async def _known(self) -> Mapping[str, Key]:
        async with self._reading:  # whoever comes while they are read for the first time waits for them
            if (began := self._clock()) - self._read_at >= REFRESH_SECONDS:
                try:
                    self._keys = {key.id: key for key in await self._reader.keys()}
                    self._read_at = began
                except StoreUnavailable:
                    if self._clock() - self._read_at >= STALE_SECONDS:
                        raise
            return self._keys
