"""One question to the API as a value: what is sent, and how its answer is read. Pure: the two clients send it.

How the API is reached: its address, the key, and how often a question is repeated. Shared by both clients.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from galatea.client.errors import PROBLEM, NotAnswered, TooOften, Unavailable, Unreachable, Unreadable, refusal

if TYPE_CHECKING:
    import os

T = TypeVar("T")
When = str | date | datetime
"""ISO 8601, a local date, or an instant with its offset."""
Names = str | Iterable[str]


@dataclass(frozen=True)
class Call(Generic[T]):
    """`read`: from the body to the answer. `is_repeatable`: whether it means the same when it arrives twice."""

    path: str
    read: Callable[[bytes], T]
    query: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    answered: frozenset[int] = frozenset({HTTPStatus.OK})

    def answer(self, response: httpx.Response) -> T:
        """The answer in a response. Refused, Unreadable."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code not in self.answered or kind == PROBLEM:
            raise refusal(response)
        try:
            return self.read(response.content)
        except msgspec.MsgspecError as error:
            message = f"The answer of `{self.path}` cannot be read: {error}. Is this the address of Galatea's API?"
            raise Unreadable(message) from error


@dataclass(frozen=True)
class Pause:
    """Nothing is sent for so many seconds."""

    seconds: float


Steps = Generator[Call[Any] | Pause, Any, T]
"""Several calls that make one answer: what it yields is done, and what came of it is sent back in."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """`next` asks for the page after this one; None on the last."""

    items: tuple[T, ...]
    next: str | None


@dataclass(frozen=True)
class Pages(Generic[T]):
    """An answer in pages. `ask`: the call for the page after a `next`, None for the first."""

    ask: Callable[[str | None], Call[Page[T]]]


def once(call: Call[T]) -> Generator[Call[T], T, T]:
    """One call among several, with the type of its answer."""
    return (yield call)


def reader(kind: type[T]) -> Callable[[bytes], T]:
    """Reads a body as this type. Numbers with a decimal point are `Decimal`, so that no digit is lost."""
    return msgspec.json.Decoder(kind, float_hook=Decimal).decode


def path(*parts: str | int) -> str:
    """A path below `/v1`; a part is one segment, whatever stands in it."""
    return "/".join(["/v1", *(quote(str(part), safe=",") for part in parts)])


def query(**arguments: object) -> tuple[tuple[str, str], ...]:
    """Arguments that were given, as they are sent: lists repeated; `from_` stands for `from`."""
    return tuple(
        (name.rstrip("_"), text)
        for name, value in arguments.items()
        if value is not None and value is not False
        for text in _texts(value)
    )


def written(at: When) -> str:
    """An instant or date as the API reads it. ValueError for an instant without an offset: it could be any."""
    if isinstance(at, datetime) and at.utcoffset() is None:
        raise ValueError(f"`{at}` has no time zone: give it one, or ask by date")
    return at if isinstance(at, str) else at.isoformat()


def listed(names: Names) -> list[str]:
    """One name or several."""
    return [names] if isinstance(names, str) else list(names)


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, list):
        return value
    return ["true" if value is True else written(value) if isinstance(value, str | date) else str(value)]


LOCAL = "http://127.0.0.1:8000"
ATTEMPTS = 4
"""Of one call, with the first."""
MOST_WAITED_SECONDS = 30.0
"""Who is told to wait longer is told so by the error, instead of standing still."""
MOST_SECONDS = 120.0
"""Of one call with all its attempts, before the last of them begins."""


class Address:
    """Where the API is, and the key that opens it. The key is in the header alone: never in a text of this object."""

    def __init__(self, url: str, key: str | None, key_file: "str | os.PathLike[str] | None") -> None:
        """`key_file`: read now; white space around the key does not count.

        ValueError for what can be no address or no key.
        """
        self.url = httpx.URL(url)
        if self.url.scheme not in {"http", "https"} or not self.url.host:
            raise ValueError(f"`{self.url!r}` is no address: it begins with http:// or https://, and names a host")
        if key is not None and key_file is not None:
            raise ValueError("`key` and `key_file` are given at once: leave one out")
        if key_file is not None:
            key = Path(key_file).read_text(encoding="utf-8").strip()
        if key is not None and not (key and key.isascii() and key.isprintable()):  # else it ends up in httpx's words
            raise ValueError("the key is empty, or has characters in it that no key has")
        self.headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def __repr__(self) -> str:
        """Without the key, and without the password of an address that has one."""
        return f"{self.url!r}"


def request(client: "httpx.Client | httpx.AsyncClient", call: Call[Any]) -> httpx.Request:
    """What is sent."""
    return client.build_request(call.method, call.path, params=call.query, content=call.body, headers=call.headers)


def unreachable(call: Call[Any], error: httpx.RequestError) -> Unreachable:
    """What a failure of the transport means; its cause has the words of httpx."""
    return Unreachable(f"`{call.method} {call.path}` got no answer: {type(error).__name__}. Is the API there?")


def pause_after(call: Call[Any]) -> Callable[[Exception], bool | float]:
    """Whether an error of this call is one that passes, and how many seconds to wait if the API says so."""

    def pause(error: Exception) -> bool | float:
        if not call.is_repeatable or not isinstance(error, NotAnswered):
            return False
        if isinstance(error, Unreachable):
            return True
        if not isinstance(error, TooOften | Unavailable):
            return False
        if error.retry_after is None:
            return True
        return error.retry_after if error.retry_after <= MOST_WAITED_SECONDS else False

    return pause
