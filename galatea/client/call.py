"""One question to the API as a value: what is sent, and how its answer is read. Pure: the two clients send it."""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from http import HTTPStatus
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from galatea.client.errors import PROBLEM, Unreadable, refusal

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
