"""API keys, their scopes, and the callers that they identify. Only a digest of a key is stored."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, Self, get_args

from master_dataset.registry.stores import Store

Scope = Literal["ingest", "read", "configure", "operate"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
ALL_TENANTS = "*"
"""The tenant of a key that opens the stores of all tenants, registered or not."""
PREFIX = "galatea"
_SECRET_BYTES = 32
_ID_BYTES = 6


@dataclass(frozen=True)
class Key:
    """`id`: the part of the key that is shown. `digest`: SHA-256 of the whole key, which has 256 random bits.

    `expires_at`, `revoked_at`: from then on it opens nothing; None for never.
    """

    id: str
    digest: bytes
    tenant: str
    scopes: frozenset[Scope]
    name: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    @classmethod
    def new(
        cls, tenant: str, scopes: Iterable[Scope], name: str, now: datetime, expires_at: datetime | None
    ) -> tuple[str, Self]:
        """Draw a key: its text, which is shown once, and what is kept of it."""
        id_ = secrets.token_hex(_ID_BYTES)
        secret = base64.urlsafe_b64encode(secrets.token_bytes(_SECRET_BYTES)).decode().rstrip("=")
        text = f"{PREFIX}_{id_}_{secret}"
        return text, cls(id_, _digest(text), tenant, frozenset(scopes), name, now, expires_at)

    def is_said_by(self, text: str) -> bool:
        """Whether it is this key, compared in constant time."""
        return hmac.compare_digest(self.digest, _digest(text))

    def opens(self, now: datetime) -> bool:
        """Whether it is good now."""
        return all(end is None or now < end for end in (self.expires_at, self.revoked_at))


class KeyReader(Protocol):
    """What is known of keys. CassandraUnavailableError."""

    async def keys(self) -> Iterable[Key]:
        """All of them, good or not."""


def id_of(text: str) -> str:
    """The part of a key that is shown; empty if it is no key of this form."""
    parts = text.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == PREFIX else ""  # noqa: PLR2004 - prefix, id, secret


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True)
class Caller:
    """`name`: the key's id, or a word. `tenant`: whose stores; None for those of all tenants, registered or not."""

    name: str
    tenant: str | None
    scopes: frozenset[Scope]

    @classmethod
    def of(cls, key: Key) -> Self:
        """Whoever sends that key."""
        return cls(key.id, None if key.tenant == ALL_TENANTS else key.tenant, key.scopes)

    @property
    def sees_all(self) -> bool:
        """Whether stores of all tenants are shown, and those that nobody has registered."""
        return self.tenant is None

    @property
    def sight(self) -> str:
        """Whose stores are shown, as a name: what is remembered or tagged for one sight is never shown to another."""
        return ALL_TENANTS if self.tenant is None else self.tenant

    def sees(self, store: Store) -> bool:
        """Whether the store is theirs."""
        return self.tenant is None or store.tenant == self.tenant


OPERATOR = Caller("operator", None, frozenset(SCOPES))
"""Who holds the key of the stack itself."""
