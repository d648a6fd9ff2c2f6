"""Webhook endpoints of tenants: their URL and secret, which URLs may be called, and the state of delivery."""

import secrets
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from master_dataset.errors import BadEndpointError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_EMBEDDING = ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.88.99.0/24")
"""Ranges that embed an IPv4 address: NAT64, 6to4 and Teredo, and the 6to4 relay."""
_METADATA = ("168.63.129.16/32", "192.0.0.192/32")
"""Metadata services of Azure and Oracle: public addresses that answer only within the cloud."""
_SPECIAL = ("192.0.0.0/24", "fec0::/10", "3fff::/20", "5f00::/16")
"""Ranges reserved for protocols, old site-local addresses and examples, which not every Python version knows."""
_REFUSED = tuple(ip_network(each) for each in (*_EMBEDDING, *_METADATA, *_SPECIAL))


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Return whether the address is in a network that the operator allows."""
    return any(address in network for network in allowed)


def is_public(address: Address) -> bool:
    """Return whether the address is on the internet: not this machine, its networks, or a cloud's metadata."""
    refused = any(address in network for network in _REFUSED)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified or refused)


def plain(address: Address) -> Address:
    """Return the IPv4 address of an IPv4-mapped IPv6 one; others unchanged."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


MOST_URL = 2000
"""Characters."""
LOOPBACK = "127.0.0.1"
"""The address of `localhost`."""


@dataclass(frozen=True)
class Endpoint:
    """A webhook endpoint of a tenant.

    `id` is the id of the consumer group, too. `secret` is shown once, when it is made; empty if it cannot be decrypted,
    and the endpoint must not be called then. `batch`: alerts per call.

    `made_ms`: when it was made, milliseconds since 1970; alerts since then are delivered.
    """

    id: str
    tenant: str
    url: str
    secret: str = field(repr=False)
    batch: int = 100
    made_ms: int = field(default=0, compare=False)

    @property
    def made_at(self) -> datetime:
        """`made_ms` as an instant in UTC."""
        return datetime.fromtimestamp(self.made_ms / 1000, UTC)

    @property
    def parts(self) -> SplitResult:
        """The parts of the URL."""
        return urlsplit(self.url)

    @property
    def port(self) -> int:
        """The port of the URL, or the default of its scheme."""
        return self.parts.port or (443 if self.parts.scheme == "https" else 80)


def new_id() -> str:
    """Return a new id of 12 hexadecimal digits."""
    return secrets.token_hex(6)


def new_secret() -> str:
    """Return a new signing secret of 256 bits."""
    return f"whsec_{b64encode(secrets.token_bytes(32)).decode()}"


def check_url(url: str, allowed: Sequence[Network]) -> None:
    """Check that a URL can be called: https, a host, no credentials, no fragment, no private address.

    Host names are resolved and checked when they are called.

    Args:
        url: The URL.
        allowed: Networks that the operator allows; with any, http is accepted too.

    Raises:
        BadEndpointError: It cannot be called; says why.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadEndpointError("url", "`url` is no address of the web.", do="https://host/path") from error
    schemes = ("https", "http") if allowed else ("https",)
    wrong = {
        f"`url` must begin with {' or '.join(f'{each}://' for each in schemes)}": parts.scheme not in schemes,
        "`url` has no host, or one that can be no name": not _is_name(parts.hostname or ""),
        "`url` is an address that is not public": _is_private(parts.hostname or "", allowed),
        "`url` has a name or password in it": "@" in parts.netloc,
        "`url` has a fragment": bool(parts.fragment),
        f"`url` is longer than {MOST_URL} characters": len(url) > MOST_URL,
        "`url` has a character that no address has": any(char <= " " or char > "~" for char in url),
        "`url` has the port 0": port == 0,
    }
    for sentence, is_so in wrong.items():
        if is_so:
            raise BadEndpointError("url", f"{sentence}.", do="https://host/path")


def _is_private(host: str, allowed: Sequence[Network]) -> bool:
    try:
        address = plain(ip_address(LOOPBACK if host == "localhost" or host.endswith(".localhost") else host))
    except ValueError:
        return False  # a name
    return not (is_allowed(address, allowed) or is_public(address))


def _is_name(host: str) -> bool:
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


WorkerStatus = Literal["ok", "refusing", "retrying"]
EndpointStatus = WorkerStatus | Literal["suspended"]
MOST_BLOCKED = 20
"""How many blocked stores are reported, those that wait longest."""


class BlockedRecord(NamedTuple):
    """A record that is retried and blocks the alerts of its store. `why`: the reason of the last failure."""

    topic: str
    partition: int
    offset: int
    store: str
    since: datetime
    why: str

    @property
    def id(self) -> str:
        """The position as text: `topic/partition/offset`."""
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True)
class EndpointState:
    """How deliveries to an endpoint are going. All None: it was not called yet.

    `status`: of the last response; None with `answered_at`: there was no response. `records`: not delivered yet, other
    tenants' records included. `oldest_at`: when the oldest record was received that was read and waits.
    `refusing_since`: since when nothing was delivered and everything that was settled was rejected.
    """

    failing_since: datetime | None = None
    status: int | None = None
    answered_at: datetime | None = None
    delivered_at: datetime | None = None
    records: int = 0
    oldest_at: datetime | None = None
    blocking: Sequence[BlockedRecord] = ()
    seen_at: datetime | None = None
    refusing_since: datetime | None = None

    @property
    def word(self) -> WorkerStatus:
        """The state in one word, of an endpoint that is not suspended."""
        return "retrying" if self.failing_since else "refusing" if self.refusing_since else "ok"


class RegisteredEndpoint(NamedTuple):
    """An endpoint with its state. `has_begun`: its consumer group has committed a position.

    `is_in_clear`: a former release has stored its secret, without encryption.
    """

    endpoint: Endpoint
    suspended_at: datetime | None = None
    state: EndpointState = EndpointState()
    has_begun: bool = False
    is_in_clear: bool = False

    @property
    def word(self) -> EndpointStatus:
        """The state in one word."""
        return "suspended" if self.suspended_at else self.state.word

    @property
    def since(self) -> datetime | None:
        """Since when it is in that state; None for `ok`."""
        return self.suspended_at or self.state.failing_since or self.state.refusing_since
