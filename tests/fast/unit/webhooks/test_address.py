"""Nothing but public addresses is called, whatever a name says, unless the operator has allowed a network."""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from speed_layer.webhooks.client import NotPublicError, resolve_public

PRIVATE = [
    "127.0.0.1",
    "127.8.9.10",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2001:0:1::1",
    "fec0::1",
    "feff::1",
    "192.0.0.8",
    "192.0.0.192",
    "168.63.129.16",
    "100.100.100.200",
    "192.88.99.1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "::7f00:1",
    "::ffff:0:7f00:1",
    "64:ff9b:1::1",
    "198.51.100.1",
    "203.0.113.1",
    "::ffff:168.63.129.16",
    "::ffff:192.0.0.192",
]
PUBLIC = [
    "93.184.216.34",
    "1.1.1.1",
    "192.0.1.1",
    "168.63.129.15",
    "168.63.129.17",
    "100.128.0.1",
    "192.89.0.1",
    "2606:4700:4700::1111",
]


def call(addresses: Sequence[str] | Exception, *allowed: str, turn: int = 0) -> str:
    async def resolving(_: str, __: int) -> Sequence[str]:
        if isinstance(addresses, Exception):
            raise addresses
        return addresses

    return str(
        asyncio.run(resolve_public("shop.example", 443, [ip_network(each) for each in allowed], resolving, turn))
    )


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(NotPublicError):
        call([address])


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_called(address: str) -> None:
    assert call([address]) == address


def test_one_address_of_a_name_that_is_not_public_is_enough_to_refuse_it() -> None:
    with pytest.raises(NotPublicError):
        call(["93.184.216.34", "127.0.0.1"])


def test_of_several_addresses_each_has_its_turn() -> None:
    assert [call(["93.184.216.34", "1.1.1.1"], turn=turn) for turn in range(3)] == PUBLIC[:2] + PUBLIC[:1]


def test_a_network_that_the_operator_has_allowed_is_called() -> None:
    assert call(["10.1.2.3"], "10.1.0.0/16") == "10.1.2.3"
    assert call(["::ffff:10.1.2.3"], "10.1.0.0/16") == "10.1.2.3"
    with pytest.raises(NotPublicError):
        call(["10.2.2.3"], "10.1.0.0/16")


@pytest.mark.parametrize(
    "found",
    [
        ["10.1.2.3"],
        ["93.184.216.34", "10.1.2.3"],
        [],
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        UnicodeError("label too long"),
    ],
    ids=["private", "one of them private", "none", "unknown", "no response", "no name"],
)
def test_a_tenant_cannot_find_out_whether_a_name_exists_in_the_inner_network(found: Sequence[str] | Exception) -> None:
    with pytest.raises(NotPublicError) as refused:
        call(found)

    assert str(refused.value) == "the host of the address does not resolve to public addresses"
    assert refused.value.__cause__ is None
