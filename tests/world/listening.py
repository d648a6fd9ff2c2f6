"""The application over a World on a free port of this machine, for what cannot be asked without a socket."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.listening.connection_limits import ConnectionLimits
from deploy.listening.server import Listening, Server
from tests.world.asking import Asking


@contextmanager
def served(asking: Asking, limits: ConnectionLimits | None = None) -> Iterator[str]:
    """The application on a free port of this machine, listening as the product does; its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = Server(Listening(asking.app, limits or ConnectionLimits(), lifespan="off"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        serving.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            serving.join()
