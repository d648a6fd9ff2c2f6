"""Answers of webhook endpoints: a local receiver sends the input, and the call has one of the documented results."""

import asyncio
import math
import re
import ssl
from collections.abc import Sequence
from ipaddress import ip_network
from typing import ClassVar, Self

from master_dataset.kafka.consumer import Done, HandlerResult, Reject, Retry
from master_dataset.kafka.consumer.key_queue import backoff_seconds
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks.client import RETRIED_STATUSES, WebhookClient, http_client
from tests.system.fuzz.target import Outcome, PromiseBrokenError, Target, logged_failures

LOOPBACK = (ip_network("127.0.0.1/32"),)
MOST_WAITING_SECONDS = 3600.0
BODY = b'{"alerts": []}'
_ANSWERED = re.compile(r"the endpoint answered (\d+)")
_STATUS_LINE = re.compile(rb"HTTP/\d\.\d (\d{3})")
_SIMPLE = re.compile(
    rb"HTTP/1\.1 ([2-5]\d\d)(?: [A-Za-z ]*)?\r\nContent-Length: 0\r\n((?:[A-Za-z-]+: [A-Za-z0-9 ,:]*\r\n)*)\r\n"
)
_FRAMING = re.compile(rb"^(?:content-length|transfer-encoding|connection|upgrade)", re.IGNORECASE | re.MULTILINE)
HEADERS = (
    *(
        b"Retry-After: 7",
        b"Retry-After: -1",
        b"Retry-After: " + b"9" * 400,
        b"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT",
    ),
    *(b"Retry-After: Mon, 01 Jan 0001 00:00:00 +9999", b"Retry-After: \xc2\xb2", b"Retry-After: 1\r\nRetry-After: 2"),
    *(
        b"Location: http://169.254.169.254/",
        b"Location: /",
        b"Set-Cookie: a=b; Domain=shop.example",
        b"X: " + b"y" * 20_000,
    ),
    *(
        b"Content-Encoding: gzip",
        b"Content-Encoding: br, zstd, x",
        b"Content-Type: text/html; charset=nothing",
        b"\xff: 1",
    ),
    *(
        b"Connection: keep-alive",
        b"Connection: upgrade\r\nUpgrade: h2c",
        b"Trailer: X",
        b"X:\0",
        b" folded: 1",
        b": 1",
        b"X",
    ),
    *(b"Content-Length: 0", b"Content-Length: 1", b"Content-Length: -1", b"Content-Length: " + b"9" * 5000),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Content-Length: 3, 3", b"Date: x"),
)
STATUSES = (
    *(100, 101, 103, 199, 200, 201, 204, 206, 299, 300, 301, 302, 304, 307, 308, 400, 401, 404, 408, 410, 418, 422),
    *(425, 429, 451, 499, 500, 502, 503, 504, 511, 599, 600, 700, 999, 0, 99),
)


class WebhookAnswers(Target):
    """`webhook_answers`: 2xx is done; 408, 425, 429, 5xx and no answer are tried again; the rest are dead letters."""

    name: ClassVar[str] = "webhook_answers"
    words: ClassVar[Sequence[bytes]] = (
        *(
            b"\r\n",
            b"\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"0\r\n\r\n",
            b"ffffffff\r\n",
        ),
        *(header + b"\r\n" for header in HEADERS),
    )

    def __enter__(self) -> Self:
        self._loop = asyncio.Runner()
        self._trust = ssl.create_default_context()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.close()

    def examples(self) -> Sequence[bytes]:
        plain = [b"HTTP/1.1 %d Said\r\nContent-Length: 0\r\n\r\n" % status for status in STATUSES]
        headed = [
            b"HTTP/1.1 %d Said\r\nContent-Length: 0\r\n%s\r\n\r\n" % (status, header)
            for header in HEADERS
            for status in (200, 503)
        ]
        bodies = [
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nabc",
            b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000,
            b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 70_000,
            b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            *(
                b"HTTP/1.1 200 OK\n\n",
                b"HTTP/2 200\r\n\r\n",
                b"HTTP/1.1 2000 OK\r\n\r\n",
                b"",
                b"\r\n\r\n",
                b"220 smtp\r\n",
            ),
        ]
        return [*plain, *headed, *bodies]

    def check(self, value: bytes) -> Outcome:
        with logged_failures() as failures:
            result, connections = self._loop.run(self._call(value))
        if failures:
            raise PromiseBrokenError(failures[0])
        if connections != 1:
            raise PromiseBrokenError(f"one call opened {connections} connections")
        return self._outcome(value, result)

    async def _call(self, answer: bytes) -> tuple[HandlerResult, int]:
        """The result of one call, and how many connections it opened."""
        connections = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            try:
                await reader.readuntil(BODY)
                writer.write(answer)
                await writer.drain()
            except (ConnectionError, asyncio.IncompleteReadError):
                return  # the client has read enough
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        endpoint = Endpoint("e1", "acme", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", "secret")
        try:
            async with WebhookClient(endpoint, LOOPBACK, http_client(self._trust)) as client:
                return await client.call(BODY, "a1"), connections
        finally:
            server.close()
            await server.wait_closed()

    @staticmethod
    def _outcome(value: bytes, result: HandlerResult) -> Outcome:
        said = {int(status) for status in _STATUS_LINE.findall(value)}
        if isinstance(result, Retry) and result.after is not None:
            waits = backoff_seconds(1, 60.0, result.after)
            if not (math.isfinite(result.after) and 0 <= waits <= MOST_WAITING_SECONDS):
                raise PromiseBrokenError(f"the next attempt waits {result.after} s")
        why = result.why if isinstance(result, Reject | Retry) else "the endpoint answered 200"
        found = _ANSWERED.fullmatch(why)
        simple = _SIMPLE.fullmatch(value)
        if simple and not _FRAMING.search(simple[2]) and not found:
            raise PromiseBrokenError(f"a complete answer counts as none: {why}")
        if isinstance(result, Done):
            if not any(200 <= status < 300 for status in said):
                raise PromiseBrokenError("an alert counts as delivered without an answer that says so")
            return Outcome("", "done")
        status = int(found[1]) if found else None
        if status is not None and (status not in said or 200 <= status < 300):
            raise PromiseBrokenError(f"{why}, which it did not")
        is_again = status is None or status >= 500 or status in RETRIED_STATUSES
        if is_again != isinstance(result, Retry):
            raise PromiseBrokenError(f"{type(result).__name__} after {why}")
        return Outcome("retry" if is_again else "dead_letter", why)
