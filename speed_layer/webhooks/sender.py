"""One endpoint's calls: what is sent, and what its answer means.

Another answer in the 400s, a redirect or an address that may not be called would come again: an error. A time-out, a
lost connection, 408, 425, 429 and the 500s may pass: a failure.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx
import orjson

from master_dataset.consuming import Again, Done, Record, Refused, Verdict
from master_dataset.endpoint import Endpoint
from speed_layer.webhooks.address import AddressRefused, Network, Resolve, is_allowed, pinned, resolve
from speed_layer.webhooks.signature import HEADER, signed

DEADLINE_SECONDS = 10.0
"""Of a whole call: name, connection, answer."""
MOST_ANSWER = 65_536
"""Bytes that are read of an answer, which nobody looks at."""
AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class Sender:
    """Asks no proxy and follows no redirect."""

    def __init__(
        self, endpoint: Endpoint, allowed: Sequence[Network], client: httpx.AsyncClient,
        resolving: Resolve = resolve, now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        """`allowed`: networks that may be called though they are not public. `now`: seconds since 1970."""
        self._endpoint, self._allowed, self._client = endpoint, allowed, client
        self._resolving, self._now = resolving, now

    async def send(self, records: Sequence[Record], ids: Sequence[str]) -> Verdict:
        """Call the endpoint with these alerts, whose records have these ids."""
        body = orjson.dumps({"alerts": [orjson.Fragment(record.value) for record in records]})
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                status, after = await self._call(body, _key(ids))
        except AddressRefused as error:
            return Refused(f"{error}")
        except (TimeoutError, httpx.TimeoutException):
            return Again(f"no answer in {DEADLINE_SECONDS:g} s")
        except (httpx.TransportError, OSError) as error:
            return Again(f"the call failed: {type(error).__name__}")
        if HTTPStatus(200) <= status < HTTPStatus(300):
            return Done()
        said = f"the endpoint answered {status}"
        return Again(said, after) if status in AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR else Refused(said)

    async def _call(self, body: bytes, key: str) -> tuple[int, float | None]:
        """The status, and after how many seconds it wants to be asked again, if it says so."""
        parts, port = self._endpoint.parts, self._endpoint.port
        host = parts.hostname or ""
        address = await pinned(host, port, self._allowed, self._resolving)
        if parts.scheme != "https" and not is_allowed(address, self._allowed):
            raise AddressRefused("the address is not encrypted, and lies in no network that is allowed")
        at = f"[{address}]" if address.version == 6 else str(address)  # noqa: PLR2004 - IPv6
        headers = {
            "Host": parts.netloc,
            "Content-Type": "application/json",
            "Idempotency-Key": key,
            HEADER: signed(self._endpoint.secret, int(self._now()), body),
            "User-Agent": "Galatea",
        }
        path = parts._replace(netloc=f"{at}:{port}").geturl()
        called = self._client.stream("POST", path, content=body, headers=headers, extensions={"sni_hostname": host})
        async with called as answer:
            read = 0
            async for part in answer.aiter_raw():
                read += len(part)
                if read > MOST_ANSWER:
                    break
            return answer.status_code, _after(answer.headers.get("Retry-After"), self._now())


def client() -> httpx.AsyncClient:
    """The settings of every call."""
    return httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=DEADLINE_SECONDS)


def _key(ids: Sequence[str]) -> str:
    """The same for the same alerts, however often they are sent."""
    return ids[0] if len(ids) == 1 else hashlib.sha256("\n".join(ids).encode()).hexdigest()


def _after(said: str | None, now: float) -> float | None:
    """Seconds; None where nothing is said that can be understood (RFC 9110, 10.2.3)."""
    if said is None:
        return None
    if said.isascii() and said.isdecimal():
        return float(said[:9])
    try:
        at = parsedate_to_datetime(said)
    except ValueError:
        return None
    return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now)
