"""The p99 of answers while somebody tries a thousand wrong keys a second on the sign-in page.

Calm rounds, rounds of the flood, and rounds of a flood that goes elsewhere alternate. 20 clients of one address try
fifty keys a second each, as a browser sends them. The flood comes from a process of its own,
`python -m benchmarks.login_flood PORT SECONDS`, which prints how many requests were answered, by status; with port 0,
it answers them itself: what it moves then is the work of sending them, on the processors of the stack.
"""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.at_least import HOST
from benchmarks.report import Measured, percentile

if TYPE_CHECKING:
    from deploy.settings import Settings

ROUNDS, SECONDS = 4, 10.0
PER_SECOND, CONNECTIONS = 1_000, 20
ANSWERS_PER_SECOND = 50
LIMIT = 1.5
ELSEWHERE = 0
"""In place of a port: the flood's own process answers."""
ANSWER = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"
LOWEST_PRIORITY = 19
"""Of the flood: elsewhere, it would not use the processors of the stack."""
GATHERING_SECONDS = 1.0
QUESTION = "/v1/metrics/net_sales?store=1&range=last_7_days&grain=hour"
BODY = b"key=wrong&following=/"
LOGIN = (
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)
REFUSED = {"401", "429", "closed"}


def flooded(settings: "Settings") -> Measured:
    """The p99 of all rounds, and the medians among the details. A request waits from when it was due."""
    key = (settings.home / "operator.key").read_text().strip()
    port = settings.api.port
    taken: dict[int | None, list[float]] = {None: [], port: [], ELSEWHERE: []}
    statuses: Counter[str] = Counter()
    for to in (*taken,) * ROUNDS:
        flood = None if to is None else _flood(to)
        taken[to] += _answers(port, key)
        if flood:
            said = json.loads(flood.communicate()[0])
            statuses.update(said if to == port else {})
    assert statuses.keys() <= REFUSED, statuses  # noqa: S101 - a benchmark
    details = {
        "offered_per_second": PER_SECOND,
        "answered_per_second": round(sum(statuses.values()) / ROUNDS / (SECONDS + GATHERING_SECONDS)),
        "statuses": dict(statuses),
        "p50_ms": round(percentile(taken[port], 0.5) * 1000, 2),
        "p50_calm_ms": round(percentile(taken[None], 0.5) * 1000, 2),
        "p99_flood_elsewhere_ms": round(percentile(taken[ELSEWHERE], 0.99) * 1000, 2),
        "answers": len(taken[port]),
    }
    both = percentile(taken[port], 0.99), percentile(taken[None], 0.99)
    name = "login_flood, answers p99"
    return Measured(name, *both, "s", "without a flood", better="low", limit=LIMIT, details=details)


def _flood(port: int) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "benchmarks.login_flood", str(port), str(SECONDS + GATHERING_SECONDS)]
    # In a session of its own, so that it does not wait where Linux has others of this one wait for each other.
    started = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(GATHERING_SECONDS)
    return started


def _answers(port: int, key: str) -> list[float]:
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    taken: list[float] = []
    due = began = time.monotonic()
    while due < began + SECONDS:
        time.sleep(max(0.0, due - time.monotonic()))
        connection.request("GET", QUESTION, headers={"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        said = response.read()
        assert response.status == http.client.OK, said  # noqa: S101 - a benchmark
        taken.append(time.monotonic() - due)
        due += 1 / ANSWERS_PER_SECOND
    connection.close()
    return taken


async def _logins(port: int, number: int, until: float, statuses: Counter[str]) -> None:
    due = time.monotonic() + number / PER_SECOND
    await asyncio.sleep(number / PER_SECOND)  # not all in one moment
    reader, writer = await asyncio.open_connection(HOST, port)
    while max(due, time.monotonic()) < until:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        try:
            writer.write(LOGIN)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r")[0]))
            statuses[head[9:12].decode()] += 1
        except (OSError, asyncio.IncompleteReadError):
            statuses["closed"] += 1
            reader, writer = await asyncio.open_connection(HOST, port)
        due += CONNECTIONS / PER_SECOND


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(len(LOGIN)):
        writer.write(ANSWER)
    writer.close()


async def _all_logins(port: int, seconds: float) -> Counter[str]:
    statuses: Counter[str] = Counter()
    until = time.monotonic() + seconds
    if port == ELSEWHERE:
        server = await asyncio.start_server(_answer, HOST, 0)
        port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(_logins(port, number, until, statuses) for number in range(CONNECTIONS)))
    return statuses


if __name__ == "__main__":
    os.nice(LOWEST_PRIORITY)
    print(json.dumps(asyncio.run(_all_logins(int(sys.argv[1]), float(sys.argv[2])))))
