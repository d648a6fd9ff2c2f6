"""An app that always returns the same bytes: `python -m benchmarks.constant_server PORT BYTES`."""

import socket
import sys

import uvicorn
from fastapi import FastAPI, Response


def main(port: int, size: int) -> None:
    """Serve until stopped, with the settings of the REST API."""
    body = b"x" * size
    app = FastAPI()

    @app.get("/constant")
    async def constant() -> Response:
        return Response(body, media_type="application/json")

    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )


def listens(port: int) -> bool:
    """Whether something does."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
