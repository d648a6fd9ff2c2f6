"""Which addresses are called: public ones alone, or those that the operator has allowed by name.

A name is resolved once for a call, every address that it stands for is looked at, and the call goes to the one that
was looked at: a name that says something else a moment later cannot lead it elsewhere.
"""

from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

from master_dataset.webhooks.networks import Address, Network, is_allowed, is_public, plain

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class AddressRefused(ValueError):
    """The sentence says why; it names no address, which is none of the tenant's business."""


async def pinned(host: str, port: int, allowed: Sequence[Network], resolving: Resolve, turn: int = 0) -> Address:
    """The address to call, of several another one with each turn. AddressRefused if any may not be called; OSError."""
    addresses = [plain(ip_address(each.partition("%")[0])) for each in await resolving(host, port)]
    if not addresses:
        raise OSError("the name has no address")
    if not all(is_allowed(each, allowed) or is_public(each) for each in addresses):
        raise AddressRefused("the name stands for an address that is not public")
    return addresses[turn % len(addresses)]
