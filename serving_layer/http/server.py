"""uvicorn with limited connections and callbacks for start and shutdown."""

import asyncio
import resource
from collections.abc import Callable
from contextlib import suppress
from socket import socket
from typing import Any

import uvicorn

from serving_layer.http.connection import Connection
from serving_layer.http.connections import ConnectionLimits, Connections


def raise_open_file_limit(most: int) -> None:
    """Let this process have so many files open, as far as the system lets it."""
    now, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if highest == resource.RLIM_INFINITY else min(most, highest)
    if now != resource.RLIM_INFINITY and now < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, highest))


OTHER_FILES = 512
"""What the process opens beside connections."""


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration of a process that speaks HTTP/1.1 alone."""

    def __init__(self, app: Any, limits: ConnectionLimits, **more: Any) -> None:  # noqa: ANN401 - uvicorn's own
        """`app`: the ASGI application. `more`: as uvicorn has it."""
        self.open = Connections(limits)
        super().__init__(
            app,
            http=Connection,
            ws="none",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            log_level="warning",
            backlog=limits.connections,
            timeout_keep_alive=int(limits.idle_seconds),
            **more,
        )


class Server(uvicorn.Server):
    """`config` is a ServerConfig."""

    def __init__(
        self,
        config: ServerConfig,
        listening: Callable[[], None] = lambda: None,
        ending: Callable[[], None] = lambda: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """`listening` is called once, when questions are taken, `ending` when no more are, `ended` after the last."""
        super().__init__(config)
        self._open = config.open
        self._listening, self._ending, self._ended = listening, ending, ended
        self._looking: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Listen, then say so."""
        raise_open_file_limit(self._open.limits.connections + OTHER_FILES)
        await super().startup(sockets)
        self._looking = asyncio.ensure_future(self._open.look_for_ever())
        self._listening()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Answer what was asked, then say so."""
        self._ending()
        await super().shutdown(sockets)
        if self._looking is not None:
            self._looking.cancel()
        self._ended()
