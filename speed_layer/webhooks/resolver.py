"""Names to addresses, beside the event loop and in threads of one endpoint alone.

A name whose servers never answer holds such a thread for a long time, whatever the call's own deadline. Names of other
endpoints are looked up in others.
"""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import ip_address

from speed_layer.webhooks.address import AddressRefused

THREADS = 2


class Resolver:
    """Of one endpoint. Asks the system each time, so that a name that has moved is found."""

    def __init__(self) -> None:
        """Threads begin with the first name."""
        self._threads = ThreadPoolExecutor(THREADS, "resolver")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Every address of a name. OSError if it has none, or nobody answers; AddressRefused if it can be no name."""
        with suppress(ValueError):
            return [str(ip_address(host))]  # is one already, and costs no thread
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _asked, host, port)
        return list(dict.fromkeys(found))


def _asked(host: str, port: int) -> list[str]:
    try:
        return [str(address[0]) for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except UnicodeError as error:
        raise AddressRefused("the address has a host that can be no name") from error
