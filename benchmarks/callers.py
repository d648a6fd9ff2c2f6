"""Callers who each ask again as soon as they are answered. As small as can be: they share what they measure."""

import re
import select
import socket
import time
from typing import NamedTuple

CALLERS = 8
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
_HEAD_ENDS = b"\r\n\r\n"


class Question(NamedTuple):
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


class Felt(NamedTuple):
    """Answers a second, and how many seconds each took."""

    rate: float
    seconds: list[float]


def ask(question: Question, seconds: float, callers: int = CALLERS) -> Felt:
    """Ask for so long. RuntimeError for any other answer than was asked for."""
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
    return Felt(len(taken) / seconds, taken)


def response(question: Question) -> tuple[str, int]:
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

    def __init__(self, question: Question) -> None:
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
