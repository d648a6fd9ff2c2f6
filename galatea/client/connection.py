"""Calls to the API as values, and how they are sent: the address, the key, and which errors are retried.

A `Call` says what is sent and how the response is decoded. Nothing here does input or output: both clients send the
same calls, one blocking and one with asyncio.
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from galatea.client.errors import (
    PROBLEM_TYPE,
    ClientError,
    InvalidResponseError,
    RateLimitedError,
    UnavailableError,
    UnreachableError,
    response_error,
)

if TYPE_CHECKING:
    import os
    import ssl

T = TypeVar("T")
When = str | date | datetime
"""ISO 8601 text, a local date of the store, or an instant with its offset."""
Names = str | Iterable[str]
"""One name or several."""
Ids = int | str | Iterable[int | str]
"""One id of a store or several; whole numbers are taken as text."""

LOCAL_URL = "http://127.0.0.1:8000"
MAX_ATTEMPTS = 4
"""Per call, including the first attempt."""
MAX_RETRY_AFTER_SECONDS = 30.0
"""If `Retry-After` is longer, the caller gets the error instead of waiting."""
MAX_RETRY_SECONDS = 120.0
"""Per call: no attempt begins later than this after the first."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request and how its response is read.

    `decode`: from the body to the answer. `success`: statuses that have an answer. `is_repeatable`: whether sending it
    twice has the same effect as sending it once. `has_token`: whether the API says which events it sent or contains.
    """

    path: str
    decode: Callable[[bytes], T]
    query: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    success: frozenset[int] = frozenset({HTTPStatus.OK})
    has_token: bool = False

    def request(
        self, client: "httpx.Client | httpx.AsyncClient", more: Mapping[str, str] = MappingProxyType({})
    ) -> httpx.Request:
        """The HTTP request of this call. `more`: headers beside its own."""
        headers = {**self.headers, **more}
        return client.build_request(self.method, self.path, params=self.query, content=self.body, headers=headers)

    def answer(self, response: httpx.Response) -> T:
        """The answer in a response.

        Raises:
            ResponseError: the API answered with an error.
            InvalidResponseError: the body is not an answer to this call.
        """
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code not in self.success or media_type == PROBLEM_TYPE:
            raise response_error(response)
        try:
            return self.decode(response.content)
        except msgspec.MsgspecError as error:
            message = f"The response of `{self.path}` cannot be read: {error}. Is this the address of Galatea's API?"
            raise InvalidResponseError(message) from error

    def transport_error(self, error: httpx.RequestError) -> UnreachableError:
        """The error for a call that got no response."""
        message = f"`{self.method} {self.path}` got no response: {type(error).__name__}. Is the API running?"
        return UnreachableError(message)

    def retry_delay(self, error: Exception) -> bool | float:
        """What stamina should do about an error: not retry, retry with its own backoff, or wait for so many seconds."""
        if not self.is_repeatable or not isinstance(error, ClientError):
            return False
        if isinstance(error, UnreachableError):
            return True
        if not isinstance(error, RateLimitedError | UnavailableError):
            return False
        if error.retry_after is None:
            return True
        return error.retry_after if error.retry_after <= MAX_RETRY_AFTER_SECONDS else False


@dataclass(frozen=True)
class Pause:
    """A step that sends nothing for so many seconds."""

    seconds: float


Steps = Generator[Call[Any] | Pause, Any, T]
"""Several calls that make one answer: a client does each step that it yields, and sends the result back in."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """`next` asks for the following page; None on the last."""

    items: tuple[T, ...]
    next: str | None


@dataclass(frozen=True)
class Pages(Generic[T]):
    """An answer in pages. `call`: the call for the page after a `next`, or for the first page if that is None."""

    call: Callable[[str | None], Call[Page[T]]]


class Endpoint:
    """The address of the API and the headers that open it. The key is in the header only, never in a text."""

    def __init__(self, url: str, key: str | None, key_file: "str | os.PathLike[str] | None") -> None:
        """The endpoint at `url`, with `key`, or with the key in `key_file`, which is read now and stripped.

        Raises:
            ValueError: `url` is not an http or https URL with a host, both a key and a file are given, or the key is
                empty or not printable ASCII.
            OSError: `key_file` cannot be read.
        """
        self.url = httpx.URL(url)
        if self.url.scheme not in {"http", "https"} or not self.url.host:
            raise ValueError(f"`{self.url!r}` is no address: it begins with http:// or https://, and names a host")
        if key is not None and key_file is not None:
            raise ValueError("both `key` and `key_file` are given: leave one out")
        if key_file is not None:
            key = Path(key_file).read_text(encoding="utf-8").strip()
        if key is not None and not (
            key and key.isascii() and key.isprintable()
        ):  # otherwise httpx would quote the key in an error
            raise ValueError("the key is empty, or has characters in it that no key has")
        self.headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def __repr__(self) -> str:
        """Without the key, and without a password in the URL."""
        return f"{self.url!r}"


def trusting(ca_file: "str | os.PathLike[str] | None") -> "ssl.SSLContext | bool":
    """Return httpx's `verify` for these authorities. OSError if the file cannot be used."""
    if ca_file is None:
        return True
    import ssl  # noqa: PLC0415 - slow to import, and rarely needed

    return ssl.create_default_context(cafile=ca_file)


def send(call: Call[T]) -> Generator[Call[T], T, T]:
    """One call among several steps. With `yield from`, the result has the type of its answer."""
    return (yield call)


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """Decodes a JSON body as this type. Numbers with a decimal point become `Decimal`, so that no digit is lost."""
    return msgspec.json.Decoder(kind, float_hook=Decimal).decode


def path(*segments: str | int) -> str:
    """Build a path below `/v1`. Each argument is one segment, whatever characters it has.

    Raises:
        ValueError: one has a lone surrogate, which is no character.
    """
    named = zip(segments, ("path", *(f"name after `{segment}`" for segment in segments)), strict=False)
    return "/".join(["/v1", *(quote(checked_text(name, str(segment)), safe=",") for segment, name in named)])


def checked_text(name: str, text: str) -> str:
    """Return the text if it can be sent. ValueError with the name of its field if it has a lone surrogate."""
    if _SURROGATE.search(text):
        raise ValueError(
            f"the {name} has a lone surrogate, which is no character: correct the text, or decode it again"
        )
    return text


def query(**arguments: object) -> tuple[tuple[str, str], ...]:
    """Query parameters. None and False are left out, lists are repeated, and `from_` stands for `from`.

    Raises:
        ValueError: a datetime has no time zone, or a text has a lone surrogate, which is no character.
    """
    return tuple(
        (name.rstrip("_"), checked_text(f"argument `{name}`", text))
        for name, value in arguments.items()
        if value is not None and value is not False
        for text in _texts(value)
    )


def as_list(names: Names) -> list[str]:
    """One name or several, as a list."""
    return [names] if isinstance(names, str) else list(names)


def store_ids(ids: Ids) -> list[str]:
    """One id of a store or several, as the API reads them: a comma separates ids unless a backslash precedes it."""
    several = [ids] if isinstance(ids, int | str) else ids
    return [re.sub(r"\\(?=[\\,]|$)|,", r"\\\g<0>", str(each)) for each in several]


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, list):
        return value
    return ["true" if value is True else _iso_text(value) if isinstance(value, str | date) else str(value)]


def _iso_text(at: When) -> str:
    if isinstance(at, datetime) and at.utcoffset() is None:
        raise ValueError(f"`{at}` has no time zone: add one, or pass a date")
    return at if isinstance(at, str) else at.isoformat()
