"""A receiver that fails in every way there is, and keeps each alert once by its `alert_id`."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from typing import Any, Self

TAKES, HANGS, TAKES_AND_HANGS, DROPS, TAKES_AND_DROPS, AWAY = (
    "takes",
    "hangs",
    "takes, and hangs",
    "drops",
    "takes, and drops",
    "away",
)
EACH = (TAKES, HANGS, TAKES_AND_HANGS, DROPS, TAKES, TAKES_AND_DROPS, AWAY)
"""What becomes of the calls of a store, one after the other, and then from the beginning."""
REDIRECTS, ELSEWHERE = "redirects", "/elsewhere"


class BadReceiver:
    """Listens on this machine while inside. Calls with a number of `redirected` it sends elsewhere, always.

    `kept`: (store, number) by `alert_id`, in the order in which they came. `did`: how often it did what.
    """

    def __init__(self, redirected: Sequence[int]) -> None:
        self.kept: dict[str, tuple[str, int]] = {}
        self.did: Counter[str] = Counter()
        self.again = 0
        self._redirected, self._plans = set(redirected), dict[str, Any]()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}/alerts"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def numbers(self, store: str) -> list[int]:
        """Of a store's alerts, in the order in which each came for the first time."""
        return [number for of, number in self.kept.values() if of == store]

    def called(self, path: str, alerts: Sequence[dict[str, Any]]) -> str:
        """What it does about that call."""
        with self._lock:
            does = self._does(path, alerts)
            self.did[does] += 1
            if does.startswith(TAKES):
                self.again += sum(each["alert_id"] in self.kept for each in alerts)
                for each in alerts:
                    self.kept.setdefault(each["alert_id"], (each["store"], each["value"]))
        return does

    def _does(self, path: str, alerts: Sequence[dict[str, Any]]) -> str:
        if path == ELSEWHERE:
            return ELSEWHERE
        if self._redirected & {each["value"] for each in alerts}:
            return REDIRECTS
        return str(next(self._plans.setdefault(alerts[0]["store"], cycle(EACH))))


def _handler(receiver: BadReceiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            does = receiver.called(self.path, json.loads(body)["alerts"])
            if does in {HANGS, TAKES_AND_HANGS}:
                self.connection.recv(1)  # until the other side gives up
                self.close_connection = True
            elif does in {DROPS, TAKES_AND_DROPS}:
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            else:
                self.send_response({AWAY: 503, REDIRECTS: 307}.get(does, 204))
                if does == REDIRECTS:
                    self.send_header("Location", ELSEWHERE)
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    return Handler
