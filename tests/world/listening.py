"""The application over a World on a free port of this machine, for what cannot be asked without a socket."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tests.world.asking import Asking


@contextmanager
def served(asking: Asking) -> Iterator[str]:
    """The application on a free port of this machine; its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(asking.app, log_level="critical", lifespan="off"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        serving.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            serving.join()
