"""The server from which Prometheus reads the metrics of one process."""

import hmac
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from serving_layer.http.certificate import RELOAD_SECONDS

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from serving_layer.http.certificate import ServerCertificate

SCRAPE_SECONDS = 10.0
"""How long a client may take in all, even if it is never silent: each one occupies a thread."""
MOST_CLIENTS = 16
"""Open connections."""


class MetricsHandler(WSGIRequestHandler):
    """Answers one client."""

    timeout = SCRAPE_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Say nothing: Prometheus comes every few seconds."""


class MetricsServer(ThreadingMixIn, WSGIServer):
    """Serves the metrics of this process at `/metrics`, in a thread of its own."""

    daemon_threads = True

    def __init__(
        self, host: str, port: int, *, token: str = "", certificate: "ServerCertificate | None" = None
    ) -> None:
        """Listen.

        Args:
            host: Address to listen on.
            port: 0 for any free port; `server_port` is the one that was chosen.
            token: Bearer token that clients have to send; if empty, they need none.
            certificate: None for HTTP without TLS.
        """
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.BoundedSemaphore(MOST_CLIENTS)
        super().__init__((host, port), MetricsHandler)
        self._certificate, self._looked_at = certificate, time.monotonic()
        if certificate is not None:
            # A handshake in `accept` would let one silent client keep out all others.
            self.socket = certificate.context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.set_app(_with_token(make_wsgi_app(), token) if token else make_wsgi_app())

    def server_bind(self) -> None:
        """Bind, without asking for the name of the address: a slow name server would delay the start."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver has them
        """Answer in a thread, or end the connection if too many are open."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - likewise
        """Answer, in the thread."""
        late = threading.Timer(SCRAPE_SECONDS, _shut_down, (request,))
        late.daemon = True
        try:
            late.start()
            super().process_request_thread(request, client_address)
        except RuntimeError:  # no thread can be started
            self.shutdown_request(request)
        finally:
            late.cancel()
            self._free.release()

    def start(self) -> None:
        """Serve until the process ends."""
        threading.Thread(target=self.serve_forever, name="metrics", daemon=True).start()

    def service_actions(self) -> None:
        """Use a renewed certificate. Called twice a second."""
        if self._certificate is not None and time.monotonic() > self._looked_at + RELOAD_SECONDS:
            self._looked_at = time.monotonic()
            self._certificate.reload()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client was silent, left, or does not trust the certificate."""


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):  # the client has disconnected
        connection.shutdown(socket.SHUT_RDWR)


def _with_token(app: "WSGIApplication", token: str) -> "WSGIApplication":
    expected = f"Bearer {token}".encode()

    def checked(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        given = str(environ.get("HTTP_AUTHORIZATION", "")).encode("latin-1")
        if hmac.compare_digest(given, expected):
            return app(environ, start_response)
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Type", "text/plain")])
        return [b"Send the token of GALATEA_METRICS_TOKEN or its file: Authorization: Bearer TOKEN\n"]

    return checked
