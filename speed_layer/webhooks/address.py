"""Which addresses are called: public ones alone, or those that the operator has allowed by name.

A name is resolved once for a call, every address that it stands for is looked at, and the call goes to the one that
was looked at: a name that says something else a moment later cannot lead it elsewhere.
"""

from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
_EMBEDDING = ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.88.99.0/24")
"""Ranges in which an IPv4 address is hidden, NAT64, 6to4 and Teredo, and the relay of 6to4."""
_METADATA = ("168.63.129.16/32", "192.0.0.192/32")
"""Of Azure and Oracle: public by their numbers, and answered within a cloud alone."""
_SPECIAL = ("192.0.0.0/24", "fec0::/10", "3fff::/20", "5f00::/16")
"""Protocols' own, sites' of old, examples, segments: none is on the internet, and not every Python says so."""
_REFUSED = tuple(ip_network(each) for each in (*_EMBEDDING, *_METADATA, *_SPECIAL))


class AddressRefused(ValueError):
    """The sentence says why; it names no address, which is none of the tenant's business."""


async def pinned(host: str, port: int, allowed: Sequence[Network], resolving: Resolve, turn: int = 0) -> Address:
    """The address to call, of several another one with each turn. AddressRefused if any may not be called; OSError."""
    addresses = [_plain(ip_address(each.partition("%")[0])) for each in await resolving(host, port)]
    if not addresses:
        raise OSError("the name has no address")
    if not all(is_allowed(each, allowed) or is_public(each) for each in addresses):
        raise AddressRefused("the name stands for an address that is not public")
    return addresses[turn % len(addresses)]


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether the operator has named a network that it lies in."""
    return any(address in network for network in allowed)


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could be asked for it: not this machine, its networks, or a cloud's metadata."""
    refused = any(address in network for network in _REFUSED)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified or refused)


def _plain(address: Address) -> Address:
    """An IPv4 address in the clothes of an IPv6 one is what it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
