"""Which addresses are called: public ones alone, or those that the operator has allowed by name.

A name is resolved once for a call, every address that it stands for is looked at, and the call goes to the one that
was looked at: a name that says something else a moment later cannot lead it elsewhere.

Names to addresses, beside the event loop and in threads of one endpoint alone.

A name whose servers never answer holds such a thread for a long time, whatever the call's own deadline. Names of other
endpoints are looked up in others.

When a receiver wants to be asked again, as it says in `Retry-After` (RFC 9110, 10.2.3).

One endpoint's calls: what is sent, and what its answer means.

Another answer in the 400s, a redirect or an address that may not be called would come again: an error. A time-out, a
lost connection, 408, 425, 429 and the 500s may pass: a failure.
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
from typing import Self

import httpx
import orjson
import structlog
from prometheus_client import Histogram

from master_dataset.kafka.consumer import ConsumerRecord, Done, HandlerResult, Reject, Retry
from master_dataset.webhooks.endpoint import Address, Endpoint, Network, is_allowed, is_public, plain
from speed_layer.webhooks.signature import HEADER, signed

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class AddressRefusedError(ValueError):
    """The sentence says why; it names no address, which is none of the tenant's business."""


async def resolve_public(
    host: str, port: int, allowed: Sequence[Network], resolving: Resolve, turn: int = 0
) -> Address:
    """The address to call, of several another one with each turn. AddressRefused if any may not be called; OSError."""
    addresses = [plain(ip_address(each.partition("%")[0])) for each in await resolving(host, port)]
    if not addresses:
        raise OSError("the name has no address")
    if not all(is_allowed(each, allowed) or is_public(each) for each in addresses):
        raise AddressRefusedError("the name stands for an address that is not public")
    return addresses[turn % len(addresses)]


THREADS = 2


class Resolver:
    """Of one endpoint. Asks the system each time, so that a name that has moved is found."""

    def __init__(self) -> None:
        """Threads begin with the first name."""
        self._threads = ThreadPoolExecutor(THREADS, "resolver")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Every address of a name. OSError if it has none, or nobody answers; AddressRefused if it can be no name."""
        with suppress(ValueError):
            return [str(ip_address(host))]  # is one already, and costs no thread
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _asked, host, port)
        return list(dict.fromkeys(found))


def _asked(host: str, port: int) -> list[str]:
    try:
        return [str(address[0]) for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except UnicodeError as error:
        raise AddressRefusedError("the address has a host that can be no name") from error


def retry_after_seconds(said: str | None, now: float) -> float | None:
    """Seconds from now, which is in seconds since 1970; None where nothing is said that can be understood.

    However many: who waits has a bound of its own.
    """
    if said is None:
        return None
    if said.isascii() and said.isdecimal():
        return float(said[:9])
    try:
        at = parsedate_to_datetime(said)
    except (ValueError, TypeError, ArithmeticError, LookupError):  # what its numbers come to is up to a stranger
        return None
    return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now)


log = structlog.get_logger()
DEADLINE_SECONDS = 10.0
"""Of a whole call: name, connection, answer."""
MOST_ANSWER = 65_536
"""Bytes that are read of an answer, which nobody looks at."""
CONNECTIONS = httpx.Limits(max_connections=16, max_keepalive_connections=8, keepalive_expiry=30.0)
"""Of one endpoint. More than there are calls at once: those that are being closed count, too."""
CALLS = Histogram(
    "galatea_webhook_call_seconds",
    "How long a call of an endpoint took that was answered, or was not in time.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class WebhookClient:
    """Asks no proxy and follows no redirect. Inside, it has connections; those of another endpoint are never used.

    `status`: of the last answer; None with `answered_at`, in seconds since 1970, if there was none.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        allowed: Sequence[Network],
        client: httpx.AsyncClient,
        resolving: Resolve | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`allowed`: networks that may be called though they are not public. `now`: seconds since 1970.

        `client` is for this endpoint alone: a connection that was opened under one name is good for no other one.
        """
        self._endpoint, self._allowed, self._client = endpoint, allowed, client
        self._resolving, self._now = resolving or Resolver(), now
        self._turn = 0  # goes on to a name's next address when the one before has not answered
        self.status: int | None = None
        self.answered_at: float | None = None

    async def __aenter__(self) -> Self:
        """Connections are made when they are needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """No connection is left."""
        await self._client.aclose()

    async def send(self, records: Sequence[ConsumerRecord], ids: Sequence[str]) -> HandlerResult:
        """Call the endpoint with these alerts, whose records have these ids."""
        return await self.call(orjson.dumps({"alerts": [orjson.Fragment(each.value) for each in records]}), _key(ids))

    async def call(self, body: bytes, key: str) -> HandlerResult:
        """Call it with this body. `key`: the same for the same body, however often it is sent.

        `Again.fewer`: of an endpoint that was sent it, and could not cope or was not heard of.
        """
        status: int | None = None
        way = _Way()
        try:
            with CALLS.time():
                async with asyncio.timeout(DEADLINE_SECONDS):
                    status, after = await self._call(body, key, way)
            return _meant(status, after)
        except AddressRefusedError as error:
            return Reject(f"{error}")
        except httpx.InvalidURL:
            return Reject("the address cannot be called")
        except (TimeoutError, httpx.TimeoutException):
            return Retry(f"no answer in {DEADLINE_SECONDS:g} s", fewer=way.is_sent)
        except (httpx.TransportError, OSError) as error:
            return Retry(_fault(error), fewer=way.is_sent)
        except Exception as error:  # noqa: BLE001 - no receiver ends what calls the others
            return self._broken(error)
        finally:
            self.status, self.answered_at = status, self._now()
            self._turn += status is None

    def _broken(self, error: Exception) -> Retry:
        """The log says where. What the error itself says may hold the address, which is often a secret."""
        where = traceback.extract_tb(error.__traceback__)[-1]
        kind, place = type(error).__name__, f"{where.filename.rpartition('/')[2]}:{where.lineno}"
        log.error("webhook.call_broke", endpoint=self._endpoint.id, kind=kind, at=place)
        return Retry(f"the call broke: {kind}")

    async def _call(self, body: bytes, key: str, way: "_Way") -> tuple[int, float | None]:
        """The status, and after how many seconds it wants to be asked again, if it says so."""
        parts, port = self._endpoint.parts, self._endpoint.port
        host = parts.hostname or ""
        address = await resolve_public(host, port, self._allowed, self._resolving, self._turn)
        if parts.scheme != "https" and not is_allowed(address, self._allowed):
            raise AddressRefusedError("the address is not encrypted, and lies in no network that is allowed")
        at = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004 - IPv6
        headers = {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "Idempotency-Key": key,
            HEADER: signed(self._endpoint.secret, int(self._now()), body),
            "User-Agent": "Galatea",
        }
        path = parts._replace(netloc=f"{at}:{port}").geturl()
        extensions = {"sni_hostname": host, "trace": way.hear}
        called = self._client.stream("POST", path, content=body, headers=headers, extensions=extensions)
        async with called as answer:
            read = 0
            async for part in answer.aiter_raw():
                read += len(part)
                if read > MOST_ANSWER:
                    break
            return answer.status_code, retry_after_seconds(answer.headers.get("Retry-After"), self._now())


@dataclass
class _Way:
    """How far a call came. `is_sent`: whether the endpoint may have it."""

    is_sent: bool = False

    async def hear(self, event: str, _: object) -> None:
        """Of each step, as httpcore names it."""
        self.is_sent = self.is_sent or event.endswith(".send_request_headers.started")


def http_client(trust: ssl.SSLContext) -> httpx.AsyncClient:
    """The settings of every call of one endpoint. `trust`: whose certificates are good; several may share it."""
    forgetful = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # else each answer may add to what is kept and sent
    return httpx.AsyncClient(
        verify=trust,
        follow_redirects=False,
        trust_env=False,
        timeout=DEADLINE_SECONDS,
        limits=CONNECTIONS,
        cookies=forgetful,
    )


def _meant(status: int, after: float | None) -> HandlerResult:
    if HTTPStatus(200) <= status < HTTPStatus(300):
        return Done()
    said = f"the endpoint answered {status}"
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Retry(said, after, fewer=True)
    return Retry(said, after) if status in AGAIN else Reject(said)


def _fault(error: BaseException) -> str:
    """Of a certificate it is told what is wrong with it; of all else its kind."""
    under: BaseException | None = error
    while under is not None:
        if isinstance(under, ssl.SSLCertVerificationError):
            return f"the certificate is not good: {under.verify_message.rstrip('.')}"
        under = under.__cause__ or under.__context__
    return f"the call failed: {type(error).__name__}"


def _key(ids: Sequence[str]) -> str:
    """The same for the same alerts, however often they are sent."""
    return ids[0] if len(ids) == 1 else hashlib.sha256("\n".join(ids).encode()).hexdigest()
