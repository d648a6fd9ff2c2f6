"""Questions as methods of the two clients: same arguments, same words; only who waits differs.

The two clients: one waits for answers, the other awaits them. What can be asked is said once, for both.

with Client(key_file=".galatea/operator.key") as galatea:
    galatea.metric("net_sales", store="1", start="2026-11-17", end="2026-11-24").to_pandas()
"""

import asyncio
import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, get_args, get_type_hints

import httpx
import stamina

from galatea.client import ingest, operations
from galatea.client.connection import (
    ATTEMPTS,
    LOCAL,
    MOST_SECONDS,
    Address,
    Call,
    Pages,
    Pause,
    Steps,
    pause_after,
    request,
    unreachable,
)
from galatea.client.errors import NotAnswered

P = ParamSpec("P")
T = TypeVar("T")


def called(ask: Callable[P, Call[T]]) -> "Callable[Concatenate[Client, P], T]":
    """A method that waits for the answer."""

    @wraps(ask)
    def method(self: "Client", /, *args: P.args, **named: P.kwargs) -> T:
        return self.call(ask(*args, **named))

    return _shown(method, ask)


def called_steps(ask: Callable[P, Steps[T]]) -> "Callable[Concatenate[Client, P], T]":
    """A method that waits for the answer of several calls."""

    @wraps(ask)
    def method(self: "Client", /, *args: P.args, **named: P.kwargs) -> T:
        return self.follow(ask(*args, **named))

    return _shown(method, ask)


def called_each(ask: Callable[P, Pages[T]]) -> "Callable[Concatenate[Client, P], Iterator[T]]":
    """A method that gives what is on all pages."""

    @wraps(ask)
    def method(self: "Client", /, *args: P.args, **named: P.kwargs) -> Iterator[T]:
        return self.each(ask(*args, **named))

    return _shown(method, ask)


def awaited(ask: Callable[P, Call[T]]) -> "Callable[Concatenate[AsyncClient, P], Awaitable[T]]":
    """A method whose answer is awaited."""

    @wraps(ask)
    async def method(self: "AsyncClient", /, *args: P.args, **named: P.kwargs) -> T:
        return await self.call(ask(*args, **named))

    return _shown(method, ask)


def awaited_steps(ask: Callable[P, Steps[T]]) -> "Callable[Concatenate[AsyncClient, P], Awaitable[T]]":
    """A method whose answer, of several calls, is awaited."""

    @wraps(ask)
    async def method(self: "AsyncClient", /, *args: P.args, **named: P.kwargs) -> T:
        return await self.follow(ask(*args, **named))

    return _shown(method, ask)


def awaited_each(ask: Callable[P, Pages[T]]) -> "Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]":
    """A method that gives what is on all pages, for `async for`."""

    @wraps(ask)
    def method(self: "AsyncClient", /, *args: P.args, **named: P.kwargs) -> AsyncIterator[T]:
        return self.each(ask(*args, **named))

    return _shown(method, ask)


Method = TypeVar("Method", bound=Callable[..., Any])


def _shown(method: Method, ask: Callable[..., Any]) -> Method:
    """With the signature that `help` and a notebook show: `self`, and each argument by its name."""
    arguments: list[inspect.Parameter] = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for each in inspect.signature(ask).parameters.values():
        arguments += _unpacked(each) if each.kind is inspect.Parameter.VAR_KEYWORD else [each]
    method.__signature__ = inspect.Signature(arguments)  # type: ignore[attr-defined]
    return method


def _unpacked(named: inspect.Parameter) -> list[inspect.Parameter]:
    """The arguments that `**named: Unpack[...]` stands for."""
    [of] = get_args(named.annotation)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [inspect.Parameter(name, kind, default=None, annotation=hint) for name, hint in get_type_hints(of).items()]


class Client:
    """Asks and waits. Its connection is used again, so make one and keep it; may be used by several threads."""

    def __init__(
        self,
        url: str = LOCAL,
        key: str | None = None,
        *,
        key_file: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`key`, or a file with nothing else in it. `timeout`: seconds to connect, and between parts of an answer.

        `transport`: another way to reach the API than the network, such as one of httpx's own with other limits.
        """
        self._address = Address(url, key, key_file)
        self._http = httpx.Client(
            base_url=url, headers=self._address.headers, timeout=timeout, transport=transport, follow_redirects=False
        )

    metrics = called(operations.metrics)
    metric = called(operations.metric)
    several = called(operations.several)
    stores = called(operations.stores)
    cells = called(operations.cells)
    raw_receipts = called_each(operations.raw_receipts)
    freshness = called(operations.freshness)
    publications = called_each(operations.publications)
    recompute = called(operations.recompute)
    recompute_state = called(operations.recompute_state)
    wait = called_steps(operations.wait)
    rollback = called(operations.rollback)
    corrections = called_each(operations.corrections)
    ingest = called_steps(ingest.ingest)

    def call(self, call: Call[T]) -> T:
        """The answer to one call; asked again while that is safe and may help. NotAnswered."""
        for attempt in stamina.retry_context(on=pause_after(call), attempts=ATTEMPTS, timeout=MOST_SECONDS):
            with attempt:
                return call.answer(self._send(call))
        raise AssertionError("the last attempt gives an answer or raises")

    def follow(self, steps: Steps[T]) -> T:
        """The answer that several calls make."""
        try:
            step = next(steps)
            while True:
                try:
                    told = self._do(step)
                except NotAnswered as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(told)
        except StopIteration as end:
            answer: T = end.value
            return answer

    def each(self, pages: Pages[T]) -> Iterator[T]:
        """Everything on all pages; a page is asked for when it is needed."""
        page = self.call(pages.ask(None))
        yield from page.items
        while page.next is not None:
            page = self.call(pages.ask(page.next))
            yield from page.items

    def _do(self, step: Call[Any] | Pause) -> object:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        return self.call(step)

    def _send(self, call: Call[Any]) -> httpx.Response:
        try:
            return self._http.send(request(self._http, call))
        except httpx.RequestError as error:
            raise unreachable(call, error) from error

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def __enter__(self) -> Self:
        """For `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """Without the key."""
        return f"Client({self._address!r})"


class AsyncClient:
    """Asks and awaits; otherwise as `Client`. Of one event loop."""

    def __init__(
        self,
        url: str = LOCAL,
        key: str | None = None,
        *,
        key_file: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """As of `Client`."""
        self._address = Address(url, key, key_file)
        self._http = httpx.AsyncClient(
            base_url=url, headers=self._address.headers, timeout=timeout, transport=transport, follow_redirects=False
        )

    metrics = awaited(operations.metrics)
    metric = awaited(operations.metric)
    several = awaited(operations.several)
    stores = awaited(operations.stores)
    cells = awaited(operations.cells)
    raw_receipts = awaited_each(operations.raw_receipts)
    freshness = awaited(operations.freshness)
    publications = awaited_each(operations.publications)
    recompute = awaited(operations.recompute)
    recompute_state = awaited(operations.recompute_state)
    wait = awaited_steps(operations.wait)
    rollback = awaited(operations.rollback)
    corrections = awaited_each(operations.corrections)
    ingest = awaited_steps(ingest.ingest)

    async def call(self, call: Call[T]) -> T:
        """The answer to one call; asked again while that is safe and may help. NotAnswered."""
        async for attempt in stamina.retry_context(on=pause_after(call), attempts=ATTEMPTS, timeout=MOST_SECONDS):
            with attempt:
                return call.answer(await self._send(call))
        raise AssertionError("the last attempt gives an answer or raises")

    async def follow(self, steps: Steps[T]) -> T:
        """The answer that several calls make."""
        try:
            step = next(steps)
            while True:
                try:
                    told = await self._do(step)
                except NotAnswered as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(told)
        except StopIteration as end:
            answer: T = end.value
            return answer

    async def each(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Everything on all pages; a page is asked for when it is needed."""
        page = await self.call(pages.ask(None))
        for item in page.items:
            yield item
        while page.next is not None:
            page = await self.call(pages.ask(page.next))
            for item in page.items:
                yield item

    async def _do(self, step: Call[Any] | Pause) -> object:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        return await self.call(step)

    async def _send(self, call: Call[Any]) -> httpx.Response:
        try:
            return await self._http.send(request(self._http, call))
        except httpx.RequestError as error:
            raise unreachable(call, error) from error

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """For `async with`."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    def __repr__(self) -> str:
        """Without the key."""
        return f"AsyncClient({self._address!r})"
