"""Merged answers per second, compared with an app of the same framework that always returns the same bytes.

Also the p99 of an answer, compared with a point read of one block, while receipts arrive. The clients query again as
soon as they are answered, and use as little CPU as possible, because they share the machine.
"""

import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from benchmarks import local
from benchmarks.constant_server import listens
from benchmarks.report import Measured, percentile
from benchmarks.traffic import ReceiptStream, in_background
from deploy.local.ports import free_ports
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

CALLERS = 8
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
_HEAD_ENDS = b"\r\n\r\n"


class HttpQuery(NamedTuple):
    """`known`: the entity tag that the caller has already."""

    port: int
    path: str
    key: str
    known: str = ""

    @property
    def request(self) -> bytes:
        """As it is sent."""
        known = f"If-None-Match: {self.known}\r\n" if self.known else ""
        head = f"GET {self.path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.key}\r\n{known}\r\n"
        return head.encode()

    @property
    def status(self) -> bytes:
        """What the answer has to begin with."""
        return b"HTTP/1.1 304" if self.known else b"HTTP/1.1 200"


class Latencies(NamedTuple):
    """Answers a second, and how many seconds each took."""

    rate: float
    seconds: list[float]


def ask(question: HttpQuery, seconds: float, callers: int = CALLERS) -> Latencies:
    """Send requests for that long. RuntimeError for any response but the requested answer."""
    each = [_Caller(question) for _ in range(callers)]
    by_number = {caller.socket.fileno(): caller for caller in each}
    ready = select.epoll()
    for number in by_number:
        ready.register(number, select.EPOLLIN)
    taken: list[float] = []
    began = time.perf_counter()
    for caller in each:
        caller.send()
    while time.perf_counter() < began + seconds:
        for number, _ in ready.poll(1):
            if (took := by_number[number].receive()) is not None:
                taken.append(took)
                by_number[number].send()
    for caller in each:
        caller.socket.close()
    return Latencies(len(taken) / seconds, taken)


def response(question: HttpQuery) -> tuple[str, int]:
    """The entity tag of the answer, if it has one, and the bytes of its body."""
    caller = _Caller(question)
    caller.send()
    while caller.receive() is None:
        pass
    caller.socket.close()
    tag = re.search(rb"(?i)\r\netag: ([^\r]+)", caller.head)
    length = _LENGTH.search(caller.head)
    return tag[1].decode() if tag else "", int(length[1]) if length else 0


class _Caller:
    """One connection."""

    def __init__(self, question: HttpQuery) -> None:
        self._request, self._status = question.request, question.status
        self.socket = socket.create_connection(("127.0.0.1", question.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sent_at, self._got, self.head = 0.0, b"", b""

    def send(self) -> None:
        self._got, self._sent_at = b"", time.perf_counter()
        self.socket.sendall(self._request)

    def receive(self) -> float | None:
        """Seconds since it was sent, once the answer is whole."""
        part = self.socket.recv(1 << 20)
        self._got += part
        head_ends = self._got.find(_HEAD_ENDS)
        if not part or (head_ends >= 0 and not self._got.startswith(self._status)):
            raise RuntimeError(self._got.decode(errors="replace"))
        if head_ends < 0:
            return None
        self.head = self._got[:head_ends]
        length = _LENGTH.search(self.head)
        whole = head_ends + len(_HEAD_ENDS) + (int(length[1]) if length else 0)
        return time.perf_counter() - self._sent_at if len(self._got) >= whole else None


SECONDS, WARM_SECONDS = 2.0, 1.0
ROUNDS = 5
STORE = "1"
PER_SECOND = 100
"""Receipts that arrive during the requests, so that the answer changes several times a second."""
OF_CONSTANT, NOT_MODIFIED, OF_POINT_READ = 0.35, 0.8, 1.5
DAY = timedelta(days=1)


def answered(settings: "Settings") -> Iterator[Measured]:
    """Answers about one store, by eight callers: while nothing comes in, then while receipts do."""
    today = datetime.now(UTC).date()
    day = HttpQuery(settings.api.port, net_sales_of(today - DAY), key_of(settings))
    yield _beside_constant("answers, a store's day", day, OF_CONSTANT)
    yield _beside_constant("answers, cells of a day", day._replace(path=_cells(today - DAY)), None)
    tag, _ = response(day)
    yield _beside_constant("answers, not modified", day._replace(known=tag), NOT_MODIFIED)
    with in_background(ReceiptStream(settings, POS_TRANSACTIONS.topic, PER_SECOND)):
        now = day._replace(path=net_sales_of(today))
        yield _beside_constant("answers, today while receipts come in", now, OF_CONSTANT)
        yield _slowest(settings, now)


def seconds_of_answers(settings: "Settings", seconds: float) -> list[float]:
    """Of each merged answer that one caller gets, who asks again and again for so long, after a short warm-up."""
    question = HttpQuery(settings.api.port, _cells(datetime.now(UTC).date()), key_of(settings))
    ask(question, WARM_SECONDS, callers=1)
    return ask(question, seconds, callers=1).seconds


def net_sales_of(day: date) -> str:
    """The path of a query about a day of one store, by quarter hour."""
    arguments = {"store": STORE, "from": day, "to": day + DAY, "grain": "15m", "timezone": "UTC"}
    return f"/v1/metrics/net_sales?{urlencode(arguments)}"


def _cells(day: date) -> str:
    return f"/v1/views/sales/cells?{urlencode({'store': STORE, 'from': day, 'to': day + DAY})}"


def key_of(settings: "Settings") -> str:
    """The key of the operator."""
    return (settings.home / "operator.key").read_text().strip()


def _beside_constant(name: str, question: HttpQuery, limit: float | None) -> Measured:
    """In turns, so that whatever else the machine does meets both; the median round counts."""
    _, size = response(question._replace(known=""))
    with _constant(size) as port:
        other = HttpQuery(port, "/constant", question.key)
        ask(question, WARM_SECONDS)
        ask(other, WARM_SECONDS)
        rounds = [(ask(question, SECONDS), ask(other, SECONDS)) for _ in range(ROUNDS)]
    ours, beside_ = (median(each[of].rate for each in rounds) for of in (0, 1))
    ratios = sorted(round(one.rate / two.rate, 3) for one, two in rounds)
    p99 = [round(percentile([second for each in rounds for second in each[of].seconds], 0.99), 5) for of in (0, 1)]
    details = {"bytes": size, "callers": CALLERS, "ratios": ratios, "p99": p99[0], "p99_beside": p99[1]}
    return Measured(name, ours, beside_, "answers/s", "constant answer", limit=limit, details=details)


def _slowest(settings: "Settings", question: HttpQuery) -> Measured:
    """As many callers for both, in turns."""
    read = _PointRead(local.cassandra(settings))
    ask(question, WARM_SECONDS)
    read(WARM_SECONDS)
    ours: list[float] = []
    reads: list[float] = []
    for _ in range(ROUNDS):
        ours += ask(question, SECONDS).seconds
        reads += read(SECONDS)
    p50 = {"p50": round(median(ours), 5), "p50_beside": round(median(reads), 5)}
    details = {**p50, "callers": CALLERS, "answers": len(ours), "reads": len(reads)}
    both = percentile(ours, 0.99), percentile(reads, 0.99)
    limit, name = OF_POINT_READ, "answers p99 while receipts come in"
    return Measured(name, *both, "s", "bare point read", better="low", limit=limit, details=details)


class _PointRead:
    """Reads of one block by its whole key, prepared, by as many callers as ask for answers."""

    def __init__(self, session: "Session") -> None:
        names = "view_name, store, month, run, day"
        self._values = tuple(session.execute(f"SELECT {names} FROM batch_cells LIMIT 1").one())  # noqa: S608 - names of columns
        where = " AND ".join(f"{name} = ?" for name in names.split(", "))
        self._select = session.prepare(f"SELECT block FROM batch_cells WHERE {where}")  # noqa: S608 - names of columns
        self._session = session

    def __call__(self, seconds: float) -> list[float]:
        """Seconds of each read."""
        with ThreadPoolExecutor(CALLERS) as pool:
            return [took for each in pool.map(self._again, [seconds] * CALLERS) for took in each]

    def _again(self, seconds: float) -> list[float]:
        taken, until = [], time.perf_counter() + seconds
        while (began := time.perf_counter()) < until:
            self._session.execute(self._select, self._values).one()
            taken.append(time.perf_counter() - began)
        return taken


@contextmanager
def _constant(size: int) -> Iterator[int]:
    (port,) = free_ports(1)
    with subprocess.Popen([sys.executable, "-m", "benchmarks.constant_server", str(port), str(size)]) as child:
        try:
            local.until(lambda: listens(port), "the constant answer")
            yield port
        finally:
            child.terminate()
