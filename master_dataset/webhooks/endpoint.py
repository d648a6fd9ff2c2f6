"""Where a tenant wants to be told: an address of the web, and the secret by which it knows who tells."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from master_dataset.errors import BadEndpoint
from master_dataset.webhooks.networks import Network, is_allowed, is_public, plain

MOST_URL = 2000
"""Characters."""
LOOPBACK = "127.0.0.1"
"""What `localhost` stands for wherever it is asked."""


@dataclass(frozen=True)
class Endpoint:
    """`id` is the consumer group's, too. `secret` is told once, when it is made. `batch`: alerts of one call.

    `made_ms`: when, in milliseconds since 1970: it is told of what came afterwards.
    """

    id: str
    tenant: str
    url: str
    secret: str = field(repr=False)
    batch: int = 100
    made_ms: int = field(default=0, compare=False)

    @property
    def made_at(self) -> datetime:
        """The same as an instant in UTC."""
        return datetime.fromtimestamp(self.made_ms / 1000, UTC)

    @property
    def parts(self) -> SplitResult:
        """The address, taken apart."""
        return urlsplit(self.url)

    @property
    def port(self) -> int:
        """The one that is named, or the scheme's."""
        return self.parts.port or (443 if self.parts.scheme == "https" else 80)


def new_id() -> str:
    """12 hexadecimal digits."""
    return secrets.token_hex(6)


def new_secret() -> str:
    """256 bits."""
    return f"whsec_{secrets.token_urlsafe(32)}"


def refuse_uncallable(url: str, allowed: Sequence[Network]) -> None:
    """BadEndpoint unless it can be called: https, a host, no name or password, no fragment, no private address.

    `allowed`: networks that the operator has named, within which a call need not be encrypted. What a name stands for
    is looked at when it is called.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadEndpoint("url", "`url` is no address of the web.", do="https://host/path") from error
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
            raise BadEndpoint("url", f"{sentence}.", do="https://host/path")


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
