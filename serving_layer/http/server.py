"""uvicorn with limited connections and callbacks for start and shutdown."""

import asyncio
import errno
import resource
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network
from socket import (
    AF_INET6,
    AI_PASSIVE,
    IPPROTO_IPV6,
    IPV6_V6ONLY,
    SO_REUSEADDR,
    SO_REUSEPORT,
    SOCK_STREAM,
    SOL_SOCKET,
    getaddrinfo,
    socket,
)
from typing import Any

import structlog
import uvicorn

from serving_layer.http.certificate import ServerCertificate
from serving_layer.http.connection import Connection
from serving_layer.http.connections import ConnectionLimits, Connections


def raise_open_file_limit(most: int) -> None:
    """Raise the limit of open files of this process, as far as the system allows: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


_NOT_HERE = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}
"""Errors of an address whose family this machine lacks, such as `::1` of `localhost`."""
_PAUSE_SECONDS = 0.1
"""Before the next connection is accepted, after one could not be."""
log = structlog.get_logger()


def bound_sockets(host: str, port: int, *, is_shared: bool) -> list[socket]:
    """Sockets for a port, one for each address of the host. They get no connections before their server listens.

    Args:
        host: name or address to listen on.
        port: its port.
        is_shared: several processes of one user listen; Linux divides new connections among those that do.

    Raises:
        OSError: the port is taken by a process that does not share it.
    """
    addresses = dict.fromkeys(getaddrinfo(host, port, type=SOCK_STREAM, flags=AI_PASSIVE))
    made, lacking = list[socket](), None
    for family, kind, protocol, _, address in addresses:
        try:
            made.append(_bound(socket(family, kind, protocol), address, is_shared=is_shared, one_of=len(addresses)))
        except OSError as error:
            lacking = error
            if error.errno not in _NOT_HERE:
                for each in made:
                    each.close()
                raise
    if not made:
        raise lacking or OSError(f"`{host}` has no address")
    return made


def _bound(made: socket, address: Any, *, is_shared: bool, one_of: int) -> socket:  # noqa: ANN401 - of any family
    try:
        made.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        if is_shared:
            made.setsockopt(SOL_SOCKET, SO_REUSEPORT, 1)
        if made.family == AF_INET6 and (one_of > 1 or not is_shared):
            made.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


OTHER_FILES = 512
"""Open files of the process other than connections."""


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration for HTTP/1.1 only, with connection limits."""

    def __init__(
        self,
        app: Any,  # noqa: ANN401 - uvicorn's own
        limits: ConnectionLimits,
        certificate: ServerCertificate | None = None,
        proxies: Sequence[IPv4Network | IPv6Network] = (),
        **more: Any,  # noqa: ANN401 - uvicorn's own
    ) -> None:
        """Configure a server.

        Args:
            app: The ASGI application.
            limits: Of its connections.
            certificate: None for HTTP without TLS.
            proxies: Networks of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` say who asks, and how.
            more: Other arguments of `uvicorn.Config`.
        """
        self.open, self.certificate = Connections(limits), certificate
        super().__init__(
            app,
            http=Connection,
            ws="none",
            access_log=False,
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=[str(each) for each in proxies],
            log_level="warning",
            backlog=limits.connections,
            timeout_keep_alive=int(limits.idle_seconds),
            **more,
        )


class Server(uvicorn.Server):
    """A uvicorn server that reports when it starts and stops to listen."""

    def __init__(
        self,
        config: ServerConfig,
        listening: Callable[[], None] = lambda: None,
        *,
        starting: Callable[[], Awaitable[None]] | None = None,
        ending: Callable[[], None] = lambda: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Set the callbacks.

        Args:
            config: with the connection limits.
            listening: called once requests are accepted.
            starting: called before; None for nothing.
            ending: called when the shutdown begins.
            ended: called after the last response.
        """
        super().__init__(config)
        self._config, self._open, self._certificate = config, config.open, config.certificate
        self._starting, self._listening, self._ending, self._ended = starting, listening, ending, ended
        self._tasks, self._accepting = list[asyncio.Task[None]](), list[asyncio.Task[None]]()
        self._handshakes = set[asyncio.Task[None]]()
        self._failure: BaseException | None = None

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Await `starting`, start to listen, then call `listening`. `sockets`: bound, at least one."""
        sockets = sockets or []
        raise_open_file_limit(self._open.limits.connections + OTHER_FILES)
        if self._starting is not None:
            await self._starting()
        for each in sockets if self._certificate else []:
            each.setblocking(False)  # noqa: FBT003 - of the standard library
            each.listen(self.config.backlog)
        await super().startup([] if self._certificate else sockets)
        self._tasks.append(asyncio.ensure_future(self._open.check_forever()))
        if self._certificate is not None:
            self._tasks.append(asyncio.ensure_future(self._certificate.follow()))
            self._accepting = [asyncio.ensure_future(self._accept(each, self._certificate)) for each in sockets]
            for task in self._accepting:
                task.add_done_callback(self._end_if_failed)
        self._listening()

    async def _accept(self, listener: socket, certificate: ServerCertificate) -> None:
        """Accept connections that begin with a TLS handshake."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:  # the client has gone, or there are too many open files
                log.warning("connection.not_accepted", error=str(error))
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            made = Connection(self._config, self.server_state, self.lifespan.state)
            self._handshakes.add(task := made.encrypt(accepted, certificate.context))
            task.add_done_callback(self._handshakes.discard)
            await asyncio.sleep(0)  # while many wait to be accepted, others have their turn

    def _end_if_failed(self, accepting: asyncio.Task[None]) -> None:
        """A process that accepts nothing any more must not seem to be well."""
        if not accepting.cancelled():
            self._failure = accepting.exception()
            self.should_exit = True

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Finish the open requests between `ending` and `ended`."""
        self._ending()
        entering = [*self._accepting, *self._handshakes]
        for task in entering:
            task.cancel()
        await asyncio.gather(*entering, return_exceptions=True)
        await super().shutdown(sockets)
        for task in self._tasks:
            task.cancel()
        self._ended()
        if self._failure is not None:
            raise self._failure
