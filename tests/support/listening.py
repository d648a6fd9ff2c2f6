"""The application over a World on a free port of this machine, for what cannot be asked without a socket."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from serving_layer.http.connections import ConnectionLimits
from serving_layer.http.server import Server, ServerConfig
from tests.support.asking import Asking


@contextmanager
def listening(app: Any, limits: ConnectionLimits | None = None) -> Iterator[str]:
    """An ASGI application on a free port of this machine, listening as the product does; its address."""
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        server = Server(ServerConfig(app, limits or ConnectionLimits(), lifespan="off"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [own]})
        serving.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{own.getsockname()[1]}"
        finally:
            server.should_exit = True
            serving.join()


@contextmanager
def served(asking: Asking, limits: ConnectionLimits | None = None) -> Iterator[str]:
    """The application over a World."""
    with listening(asking.app, limits) as url:
        yield url
