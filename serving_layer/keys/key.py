"""API keys, their scopes, and the callers that they identify. Only a digest of a key is stored."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol, Self, get_args

from master_dataset.errors import RequestError, UnknownNameError
from master_dataset.registry.hidden_characters import hidden_character
from master_dataset.registry.stores import Store
from master_dataset.registry.tenants import ALL_TENANTS, checked_tenant

Scope = Literal["ingest", "read", "configure", "operate"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "galatea"
_SECRET_BYTES = 32
_ID_BYTES = 6
_NAME_CHARACTERS = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Key:
    """A stored key. `id` is its public part, `digest` the SHA-256 of its whole text, which has 256 random bits.

    It is not accepted from `expires_at` or `revoked_at` on; None for never. `is_signed`: whether this deployment has
    written the row. One that somebody else has written is no key.
    """

    id: str
    digest: bytes
    tenant: str
    scopes: frozenset[Scope]
    name: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    is_signed: bool = True

    @classmethod
    def new(
        cls, tenant: str, scopes: Iterable[Scope], name: str, now: datetime, expires_at: datetime | None
    ) -> tuple[str, Self]:
        """Make a key: its text, which is shown only once, and the record to store."""
        id_ = secrets.token_hex(_ID_BYTES)
        secret = base64.urlsafe_b64encode(secrets.token_bytes(_SECRET_BYTES)).decode().rstrip("=")
        text = f"{PREFIX}_{id_}_{secret}"
        return text, cls(id_, _digest(text), tenant, frozenset(scopes), name, now, expires_at)

    def matches(self, text: str) -> bool:
        """Whether the text is this key, compared in constant time."""
        return hmac.compare_digest(self.digest, _digest(text))

    def is_valid(self, now: datetime) -> bool:
        """Whether it is signed, and neither expired nor revoked."""
        return self.is_signed and all(end is None or now < end for end in (self.expires_at, self.revoked_at))

    def revoked(self, now: datetime) -> Self:
        """The key as it is once it is revoked; one that was revoked before stays as it is."""
        return replace(self, revoked_at=self.revoked_at or now)

    @property
    def signed_parts(self) -> Sequence[bytes]:
        """What the signature of its row is about: every column."""
        instants = (self.created_at, self.expires_at, self.revoked_at)
        texts = (self.id, self.tenant, self.name, *map(_milliseconds, instants), *sorted(self.scopes))
        return [self.digest, *(text.encode() for text in texts)]


def checked_tenant_of_key(name: str) -> str:
    """The tenant of a new key; `*` for the stores of all tenants. Raises RequestError as `checked_tenant`."""
    return name if name == ALL_TENANTS else checked_tenant(name)


def checked_name_of_key(name: str) -> str:
    """The name of a new key, which lists and logs show. RequestError if it is long, or has what nobody sees."""
    if hidden := hidden_character(name, "in_scripts"):
        message = f"The name of the key has a character that is not visible, {hidden}."
        raise RequestError(message, do="Leave it out.")
    if len(name) > _NAME_CHARACTERS:
        message = f"The name of the key has more than {_NAME_CHARACTERS} characters."
        raise RequestError(message, do="Choose a shorter one.")
    return name


def checked_scopes(tenant: str, names: Iterable[str]) -> list[Scope]:
    """The scopes of a new key, each once.

    Raises:
        UnknownNameError: there is no such scope.
        RequestError: an operator of one tenant, although a recompute concerns all.
    """
    wanted = list(names)
    for each in wanted:
        if each not in SCOPES:
            raise UnknownNameError("scope", each, SCOPES)
    if "operate" in wanted and tenant != ALL_TENANTS:
        message = "`operate` changes what every tenant sees, so a key for one tenant cannot have it."
        raise RequestError(message, do="Use the tenant `*`, or leave the scope out.")
    return [scope for scope in SCOPES if scope in wanted]


class KeyReader(Protocol):
    """Where keys are stored. Raises CassandraUnavailableError."""

    async def keys(self) -> Iterable[Key]:
        """All keys, also expired and revoked ones."""


class KeyStore(KeyReader, Protocol):
    """Where keys are stored, and can be changed."""

    async def keep(self, key: Key) -> None:
        """Write a new key."""

    async def end(self, id_: str, how: Callable[[Key], Key]) -> Key:
        """Change when a key ends, without undoing what somebody else changes at the same time.

        Args:
            id_: of the key.
            how: the key as it should be, from what it is.

        Returns:
            The key as it is now.

        Raises:
            UnknownNameError: there is no such key.
        """


def id_of(text: str) -> str:
    """The public part of a key's text; empty if the text does not have the form of a key."""
    parts = text.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == PREFIX else ""  # noqa: PLR2004 - prefix, id, secret


def _milliseconds(at: datetime | None) -> str:
    """As exact as Cassandra keeps it; empty for None."""
    return "" if at is None else str((at - _EPOCH) // timedelta(milliseconds=1))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


ANONYMOUS = "anonymous"
"""The name of callers without a key."""


@dataclass(frozen=True)
class Caller:
    """The sender of a request. `name` is the id of the key, or `anonymous` or `operator`, or names a share link.

    `tenant`: whose stores the caller sees; None for the stores of all tenants, registered or not. `stores`: the only
    ones of them that the caller sees; None for all. `share`: the id of the share link that stands for the caller; empty
    for everybody else.
    """

    name: str
    tenant: str | None
    scopes: frozenset[Scope]
    stores: frozenset[str] | None = None
    share: str = ""

    @classmethod
    def of(cls, key: Key) -> Self:
        """The caller that a key identifies."""
        return cls(key.id, None if key.tenant == ALL_TENANTS else key.tenant, key.scopes)

    @property
    def sees_all(self) -> bool:
        """Whether the caller sees the stores of all tenants, and unregistered ones."""
        return self.tenant is None

    @property
    def visibility_scope(self) -> str:
        """The tenant, or `*`: responses cached or tagged for one visibility scope are never used for another.

        That of a caller who sees some stores only names them, on lines of their own: no tenant has a line break.
        """
        tenant = ALL_TENANTS if self.tenant is None else self.tenant
        return tenant if self.stores is None else "\n".join((tenant, "", *sorted(self.stores)))

    def sees(self, store: Store) -> bool:
        """Whether the caller may see the store."""
        is_own = self.tenant is None or store.tenant == self.tenant
        return is_own and (self.stores is None or store.id in self.stores)

    @property
    def is_anonymous(self) -> bool:
        """Whether the caller has no key."""
        return self.name == ANONYMOUS

    @property
    def is_operator(self) -> bool:
        """Whether the caller may do what is for operators alone."""
        return "operate" in self.scopes and self.sees_all

    @property
    def may_configure(self) -> bool:
        """Whether the caller can change what belongs to the tenant, such as alert rules."""
        return "configure" in self.scopes or self.is_operator


OPERATOR = Caller("operator", None, frozenset(SCOPES))
"""The holder of the key of the stack itself."""
