"""Two api processes that share a port: a browser needs not know, and the loss of one costs no wrong answer."""

import http.client
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import httpx
import psutil
import pytest

from deploy.cassandra import session_of
from deploy.local.ports import free_ports
from deploy.settings import Settings
from serving_layer.pages.sessions import COOKIE, ENCRYPTED_COOKIE
from tests.integration.conftest import PATIENCE_SECONDS, Stack
from tests.support import receipt
from tests.support.world_clients import TOKEN

STORE = "processes-1"
CLIENTS, ANSWERS_AFTERWARDS = 6, 200


@dataclass
class Pair:
    """The two processes, by their pids, and their port."""

    settings: Settings
    port: int
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return (self.settings.home / "operator.key").read_text()

    def connection(self, pid: int) -> http.client.HTTPConnection:
        """A connection to this one of them: the kernel chooses, so connect until it has chosen that one."""
        for _ in range(1000):
            made = self._connection()
            made.request("GET", "/healthz")
            made.getresponse().read()
            own = made.sock.getsockname()
            if any(each.raddr == own for each in psutil.Process(pid).net_connections()):
                return made
            made.close()
        raise AssertionError(f"process {pid} gets no connection")

    def _connection(self) -> http.client.HTTPConnection:
        if self.settings.api.ca_file:
            context = ssl.create_default_context(cafile=self.settings.api.ca_file)
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS, context=context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)

    @property
    def address(self) -> str:
        """Where they listen."""
        return self.settings.url_of("127.0.0.1", self.port)


@pytest.fixture
def pair(stack: Stack) -> Iterator[Pair]:
    with started(stack) as made:
        yield made


@contextmanager
def started(stack: Stack) -> Iterator[Pair]:
    (port,) = free_ports(1)
    made = Pair(stack.settings, port)
    more = {
        "GALATEA_API_PORT": str(port),
        "GALATEA_API_PROCESSES": "3",  # `api` is the one of the stack
        "GALATEA_IDLE_SECONDS": str(PATIENCE_SECONDS),  # no connection moves to the other process by itself
    }
    try:
        for name in ("api-2", "api-3"):
            ready = stack.settings.home / "run" / f"{name}.ready"
            ready.unlink(missing_ok=True)
            process = subprocess.Popen(
                [sys.executable, "-m", "deploy.services.api", name], env=stack.environment | more
            )
            made.processes[process.pid] = process
            until = time.monotonic() + PATIENCE_SECONDS
            while not ready.exists():
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.1)
        yield made
    finally:
        for process in made.processes.values():
            process.kill()
            process.wait()


def page(connection: http.client.HTTPConnection, path: str, cookie: str = "") -> str:
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    response = connection.getresponse()
    text = response.read().decode()
    assert response.status in {200, 401}, text
    return text


def form(
    connection: http.client.HTTPConnection, path: str, cookie: str = "", **fields: str
) -> http.client.HTTPResponse:
    scheme = "https" if isinstance(connection, http.client.HTTPSConnection) else "http"
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": f"{scheme}://127.0.0.1:{connection.port}",
        **({"Cookie": cookie} if cookie else {}),
    }
    connection.request("POST", path, urlencode(fields), headers)
    response = connection.getresponse()
    response.read()
    return response


def test_a_session_of_one_process_is_one_of_the_other_until_it_ends(pair: Pair) -> None:
    with ExitStack() as connections:
        one, other = (connections.enter_context(closing(pair.connection(pid))) for pid in pair.processes)
        moves_between(pair, one, other)


def moves_between(pair: Pair, one: http.client.HTTPConnection, other: http.client.HTTPConnection) -> None:
    response = form(one, "/login", key=pair.key, following="/")
    cookie = response.headers["Set-Cookie"].partition(";")[0]

    name = ENCRYPTED_COOKIE if isinstance(one, http.client.HTTPSConnection) else COOKIE
    assert (response.status, cookie.partition("=")[0]) == (303, name)
    token = TOKEN.search(page(other, "/", cookie))
    assert token
    rows = list(session_of(pair.settings.cassandra.address).execute("SELECT id, sealed FROM page_sessions"))
    assert rows
    for row in rows:
        assert pair.key.encode() not in row.id + row.sealed
        assert cookie.partition("=")[2].encode() not in row.id + row.sealed

    assert form(other, "/logout", cookie, token=token[1]).status == 303
    assert not TOKEN.search(page(other, "/", cookie))
    until = time.monotonic() + PATIENCE_SECONDS
    while TOKEN.search(page(one, "/", cookie)):  # within two seconds
        assert time.monotonic() < until
        time.sleep(0.1)


def test_the_loss_of_one_process_under_load_costs_no_wrong_answer(stack: Stack, pair: Pair) -> None:
    day = datetime.now(UTC) - timedelta(hours=2)  # no older than what the speed layer counts
    stack.ingest(
        "pos_transactions",
        [receipt(day.isoformat(timespec="milliseconds"), minor=100, number=n, store=STORE) for n in range(5)],
    )
    question = {
        "store": STORE,
        "from": f"{day - timedelta(days=1):%Y-%m-%d}",
        "to": f"{day + timedelta(days=2):%Y-%m-%d}",
        "grain": "total",
    }
    until = time.monotonic() + PATIENCE_SECONDS
    while (answer := stack.request("GET", "/v1/metrics/net_sales", params=question)).is_error or (
        value_of(answer.json()) != 5
    ):  # also refused as long as the speed layer of a new stack has not begun
        assert time.monotonic() < until, answer.text
        time.sleep(0.1)
    load = Load(pair, f"/v1/metrics/net_sales?{urlencode(question)}")

    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(load.ask) for _ in range(CLIENTS)]
        load.wait_for(ANSWERS_AFTERWARDS)
        lost, kept = pair.processes
        os.kill(lost, signal.SIGKILL)
        pair.processes[lost].wait()
        before = load.answers.total()
        load.wait_for(before + ANSWERS_AFTERWARDS)
        load.stop.set()
        for each in clients:
            each.result()

    assert load.answers == {5: load.answers.total()}
    assert load.statuses == {200: load.answers.total()}
    assert psutil.pid_exists(kept)


def value_of(body: dict[str, Any]) -> Any:
    [series] = body["series"]
    return series["points"][0]["value"]


class Load:
    """Clients that ask again and again, each with a connection of its own, which they open again when it breaks."""

    def __init__(self, pair: Pair, path: str) -> None:
        self.url, self.key, self.trust = f"{pair.address}{path}", pair.key, pair.settings.api_trust
        self.answers: Counter[object] = Counter()
        self.statuses: Counter[int] = Counter()
        self.broken = 0
        self.stop, self._lock = threading.Event(), threading.Lock()

    def ask(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}"}
        with httpx.Client(trust_env=False, timeout=PATIENCE_SECONDS, headers=headers, verify=self.trust) as client:
            while not self.stop.is_set():
                try:
                    response = client.get(self.url)
                except httpx.TransportError:
                    with self._lock:
                        self.broken += 1
                    continue
                with self._lock:
                    self.statuses[response.status_code] += 1
                    self.answers[value_of(response.json())] += 1

    def wait_for(self, answers: int) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while self.answers.total() < answers:
            assert time.monotonic() < until
            time.sleep(0.05)
