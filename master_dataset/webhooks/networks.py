"""Which addresses of the internet are anybody's, and which are this machine's, its networks' or a cloud's own."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_EMBEDDING = ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.88.99.0/24")
"""Ranges in which an IPv4 address is hidden, NAT64, 6to4 and Teredo, and the relay of 6to4."""
_METADATA = ("168.63.129.16/32", "192.0.0.192/32")
"""Of Azure and Oracle: public by their numbers, and answered within a cloud alone."""
_SPECIAL = ("192.0.0.0/24", "fec0::/10", "3fff::/20", "5f00::/16")
"""Protocols' own, sites' of old, examples, segments: none is on the internet, and not every Python says so."""
_REFUSED = tuple(ip_network(each) for each in (*_EMBEDDING, *_METADATA, *_SPECIAL))


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether the operator has named a network that it lies in."""
    return any(address in network for network in allowed)


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could be asked for it: not this machine, its networks, or a cloud's metadata."""
    refused = any(address in network for network in _REFUSED)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified or refused)


def plain(address: Address) -> Address:
    """An IPv4 address in the clothes of an IPv6 one is what it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
