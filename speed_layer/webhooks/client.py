"""The HTTP calls of one endpoint: to which address, what is sent, and what the response means.

    host name -> addresses -> all allowed? -> signed POST to one of them -> Done, Retry or Reject

Only public addresses are called, and those in networks that the operator has allowed. The name is resolved once per
call, all of its addresses are checked, and the call goes to a checked one, so a name that resolves to something else a
moment later cannot redirect it.
"""

import asyncio
import hashlib
import socket
import ssl
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from typing import Any, Self

import httpx
import orjson
import structlog
from prometheus_client import Histogram

from master_dataset.kafka.consumer import ConsumerRecord, Done, HandlerResult, Reject, Retry
from master_dataset.webhooks.endpoint import Address, Endpoint, Network, is_allowed, is_public, plain
from speed_layer.webhooks.signature import signed_headers

log = structlog.get_logger()
DEADLINE_SECONDS = 10.0
"""Of a whole call: DNS, connection, response."""
MAX_RESPONSE_BYTES = 65_536
"""The content of a response is not used, and not read beyond this."""
MAX_RECEIVED_BYTES = 2 * MAX_RESPONSE_BYTES
"""Of a call, with all headers: a receiver may send any number of responses that say to wait (`100 Continue`)."""
READ_BYTES = 4096
"""At once. Thousands of short responses would be parsed together, and everything else would wait for that."""
CONNECTIONS = httpx.Limits(max_connections=16, max_keepalive_connections=8, keepalive_expiry=30.0)
"""Of one endpoint. More than the concurrent calls, as connections that are being closed count."""
CALLS = Histogram(
    "galatea_webhook_call_seconds",
    "Duration of calls to an endpoint, answered or timed out.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
RETRIED_STATUSES = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
RESOLVER_THREADS = 2
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to addresses. OSError, UnicodeError."""


class AddressRefusedError(ValueError):
    """The URL must not be called. The message names no address, as the tenant reads it."""


class NotPublicError(OSError):
    """The host does not lead to addresses that may all be called, for whatever reason.

    The tenant reads the message. An unknown name, a name without an address, one that can be none, and one with a
    private address are the same to the tenant, who could otherwise find out which names exist in the inner network.
    They are retried: whatever it is may pass, as an outage of DNS does.
    """

    def __init__(self) -> None:
        """The message is always the same."""
        super().__init__("the host of the address does not resolve to public addresses")


class Resolver:
    """DNS look-ups of one endpoint, in threads of its own, uncached.

    A name whose servers never respond blocks a thread beyond the deadline of the call, but not threads of other
    endpoints.
    """

    def __init__(self) -> None:
        """Threads start with the first name."""
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, "resolver")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """All addresses of a host. OSError without any or without a response, UnicodeError for no valid name."""
        with suppress(ValueError):
            return [str(ip_address(host))]  # an address needs no DNS query
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host, port)
        return list(dict.fromkeys(found))


def _look_up(host: str, port: int) -> list[str]:
    return [str(address[0]) for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


async def resolve_public(
    host: str, port: int, allowed: Sequence[Network], resolving: Resolve, turn: int = 0
) -> Address:
    """The address to call: the next one with each `turn`. NotPublicError if there is none or one must not be called."""
    try:
        found = await resolving(host, port)
    except (OSError, UnicodeError):
        raise NotPublicError from None
    addresses = [plain(ip_address(each.partition("%")[0])) for each in found]
    if not addresses or not all(is_allowed(each, allowed) or is_public(each) for each in addresses):
        raise NotPublicError
    return addresses[turn % len(addresses)]


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Seconds to wait by a `Retry-After` header (RFC 9110, 10.2.3), unbounded; None if missing or invalid."""
    if value is None:
        return None
    if value.isascii() and value.isdecimal():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, ArithmeticError, LookupError):  # the header is not trusted
        return None
    return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now)


class WebhookClient:
    """Calls one endpoint, without a proxy and without following redirects. A context manager: it holds connections.

    Attributes:
        status: HTTP status of the last call; None if there was no response.
        answered_at: When the last call ended, in seconds since 1970; None before the first.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        allowed: Sequence[Network],
        client: httpx.AsyncClient,
        resolving: Resolve | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`allowed`: non-public networks that may be called. `now`: seconds since 1970.

        `client` is for this endpoint alone: a connection opened under one name is not valid for another.
        """
        self._endpoint, self._allowed, self._client = endpoint, allowed, client
        self._resolving, self._now = resolving or Resolver(), now
        self._turn = 0  # moves on to the next address of the name when one has not responded
        self.status: int | None = None
        self.answered_at: float | None = None

    async def __aenter__(self) -> Self:
        """Connections are opened when they are needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def send(self, records: Sequence[ConsumerRecord], ids: Sequence[str]) -> HandlerResult:
        """Send these alerts. `ids`: of their records."""
        return await self.call(orjson.dumps({"alerts": [orjson.Fragment(each.value) for each in records]}), _key(ids))

    async def call(self, body: bytes, message_id: str) -> HandlerResult:
        """Send this body. `message_id`: the same whenever the body is sent again.

        `Retry.fewer` is set if the endpoint has received the call and failed, or did not respond.
        """
        status: int | None = None
        progress = _CallProgress()
        try:
            with CALLS.time():
                async with asyncio.timeout(DEADLINE_SECONDS):
                    status, after = await self._post(body, message_id, progress)
            return _result_of(status, after)
        except AddressRefusedError as error:
            return Reject(f"{error}")
        except httpx.InvalidURL:
            return Reject("the address cannot be called")
        except (TimeoutError, httpx.TimeoutException):
            return Retry(f"no answer in {DEADLINE_SECONDS:g} s", fewer=progress.is_sent)
        except (httpx.TransportError, OSError) as error:
            return Retry(_describe(error), fewer=progress.is_sent)
        except Exception as error:  # noqa: BLE001 - no receiver ends the process that calls the others
            return self._broken(error)
        finally:
            self.status, self.answered_at = status, self._now()
            self._turn += status is None

    def _broken(self, error: Exception) -> Retry:
        """Log the place only: the message may contain the URL, which is often a secret."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        kind, place = type(error).__name__, f"{where.filename.rpartition('/')[2]}:{where.lineno}"
        log.error("webhook.call_broke", endpoint=self._endpoint.id, kind=kind, at=place)
        return Retry(f"the connection failed: {kind}")

    async def _post(self, body: bytes, message_id: str, progress: "_CallProgress") -> tuple[int, float | None]:
        """The status, and the seconds of `Retry-After`."""
        parts, port = self._endpoint.parts, self._endpoint.port
        host = parts.hostname or ""
        address = await resolve_public(host, port, self._allowed, self._resolving, self._turn)
        if parts.scheme != "https" and not is_allowed(address, self._allowed):
            raise AddressRefusedError("the address does not use https, and is not in an allowed network")
        at = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004 - IPv6
        headers = {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "User-Agent": "Galatea",
            **signed_headers(self._endpoint.secret, message_id, int(self._now()), body),
        }
        url = parts._replace(netloc=f"{at}:{port}").geturl()
        extensions = {"sni_hostname": host, "trace": progress.on_event}
        call = self._client.stream("POST", url, content=body, headers=headers, extensions=extensions)
        async with call as response:
            read = 0
            async for part in response.aiter_raw():
                read += len(part)
                if read > MAX_RESPONSE_BYTES:
                    break
            return response.status_code, retry_after_seconds(response.headers.get("Retry-After"), self._now())


@dataclass
class _CallProgress:
    """`is_sent`: whether the endpoint may have received the call."""

    is_sent: bool = False

    async def on_event(self, event: str, _: object) -> None:
        """`event`: a step, as httpcore names it."""
        self.is_sent = self.is_sent or event.endswith(".send_request_headers.started")


class _BoundedStream:
    """A connection of httpcore that gives up on a receiver which answers a call with too much."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - httpcore is no dependency of its own
        self._stream, self._received = stream, 0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's
        if self._received > MAX_RECEIVED_BYTES:
            raise httpx.RemoteProtocolError("the response is too long")
        received: bytes = await self._stream.read(min(max_bytes, READ_BYTES), timeout)
        self._received += len(received)
        return received

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's
        self._received = 0
        await self._stream.write(buffer, timeout)

    async def start_tls(self, *arguments: Any, **options: Any) -> "_BoundedStream":  # noqa: ANN401 - likewise
        return _BoundedStream(await self._stream.start_tls(*arguments, **options))

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - likewise
        return self._stream.get_extra_info(info)


class _BoundedBackend:
    """Opens such connections."""

    def __init__(self, backend: Any) -> None:  # noqa: ANN401 - likewise
        self._backend = backend

    async def connect_tcp(self, *arguments: Any, **options: Any) -> _BoundedStream:  # noqa: ANN401 - likewise
        return _BoundedStream(await self._backend.connect_tcp(*arguments, **options))


def http_client(trust: ssl.SSLContext) -> httpx.AsyncClient:
    """A client for the calls of one endpoint. `trust`: the accepted authorities; endpoints may share it."""
    transport = httpx.AsyncHTTPTransport(verify=trust, trust_env=False, limits=CONNECTIONS)
    pool: Any = transport._pool  # noqa: SLF001 - httpx has no way to name a backend
    pool._network_backend = _BoundedBackend(pool._network_backend)  # noqa: SLF001 - likewise
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # else each response may add to what is sent
    return httpx.AsyncClient(
        transport=transport,
        follow_redirects=False,
        trust_env=False,
        timeout=DEADLINE_SECONDS,
        cookies=no_cookies,
        event_hooks={"response": [_forget_location]},
    )


async def _forget_location(response: httpx.Response) -> None:
    """Redirects are not followed. httpx reads where they lead all the same, and fails if that is no URL."""
    response.headers.pop("Location", None)


def _result_of(status: int, after: float | None) -> HandlerResult:
    """Repeating a call can help after 408, 425, 429 and 5xx, but not after other 3xx and 4xx statuses."""
    if HTTPStatus(200) <= status < HTTPStatus(300):
        return Done()
    why = f"the endpoint answered {status}"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Retry(why, after, fewer=True)
    return Retry(why, after) if status in RETRIED_STATUSES else Reject(why)


def _describe(error: BaseException) -> str:
    """What is wrong with the host or a certificate; the class of any other error."""
    if isinstance(error, NotPublicError):
        return f"{error}"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate is not valid: {cause.verify_message.rstrip('.')}"
        cause = cause.__cause__ or cause.__context__
    return f"the call failed: {type(error).__name__}"


def _key(ids: Sequence[str]) -> str:
    """The same for the same alerts."""
    return ids[0] if len(ids) == 1 else hashlib.sha256("\n".join(ids).encode()).hexdigest()
