"""The two clients: `Client` blocks, `AsyncClient` is for asyncio. Both have the methods of `operations` and `ingest`.

with Client(key_file=".galatea/operator.key") as galatea:
    galatea.metric("net_sales", store="1", start="2026-11-17", end="2026-11-24").to_pandas()
"""

import asyncio
import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from copy import copy
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, get_args, get_type_hints

import httpx
import stamina

from galatea.client import ingest, operations
from galatea.client.connection import (
    LOCAL_URL,
    MAX_ATTEMPTS,
    MAX_RETRY_SECONDS,
    Call,
    Endpoint,
    Pages,
    Pause,
    Steps,
    trusting,
)
from galatea.client.errors import ClientError
from galatea.client.tokens import Tokens

P = ParamSpec("P")
T = TypeVar("T")


# From an operation to a method


def _method(operation: Callable[P, Call[T]]) -> "Callable[Concatenate[Client, P], T]":
    @wraps(operation)
    def method(self: "Client", /, *args: P.args, **named: P.kwargs) -> T:
        return self.call(operation(*args, **named))

    return _with_signature(method, operation)


def _method_of_steps(operation: Callable[P, Steps[T]]) -> "Callable[Concatenate[Client, P], T]":
    @wraps(operation)
    def method(self: "Client", /, *args: P.args, **named: P.kwargs) -> T:
        return self._run(operation(*args, **named))

    return _with_signature(method, operation)


def _method_of_pages(operation: Callable[P, Pages[T]]) -> "Callable[Concatenate[Client, P], Iterator[T]]":
    @wraps(operation)
    def method(self: "Client", /, *args: P.args, **named: P.kwargs) -> Iterator[T]:
        return self._iterate(operation(*args, **named))

    return _with_signature(method, operation)


def _async_method(operation: Callable[P, Call[T]]) -> "Callable[Concatenate[AsyncClient, P], Awaitable[T]]":
    @wraps(operation)
    async def method(self: "AsyncClient", /, *args: P.args, **named: P.kwargs) -> T:
        return await self.call(operation(*args, **named))

    return _with_signature(method, operation)


def _async_method_of_steps(operation: Callable[P, Steps[T]]) -> "Callable[Concatenate[AsyncClient, P], Awaitable[T]]":
    @wraps(operation)
    async def method(self: "AsyncClient", /, *args: P.args, **named: P.kwargs) -> T:
        return await self._run(operation(*args, **named))

    return _with_signature(method, operation)


def _async_method_of_pages(
    operation: Callable[P, Pages[T]],
) -> "Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]":
    @wraps(operation)
    def method(self: "AsyncClient", /, *args: P.args, **named: P.kwargs) -> AsyncIterator[T]:
        return self._iterate(operation(*args, **named))

    return _with_signature(method, operation)


Method = TypeVar("Method", bound=Callable[..., Any])


def _with_signature(method: Method, operation: Callable[..., Any]) -> Method:
    """The signature that `help` and notebooks show: `self`, and each argument of `Unpack[MetricOptions]` by name."""
    parameters: list[inspect.Parameter] = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for parameter in inspect.signature(operation).parameters.values():
        is_unpacked = parameter.kind is inspect.Parameter.VAR_KEYWORD
        parameters += _option_parameters(parameter) if is_unpacked else [parameter]
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return method


def _option_parameters(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    [options] = get_args(parameter.annotation)
    kind = inspect.Parameter.KEYWORD_ONLY
    hints = get_type_hints(options)
    return [inspect.Parameter(name, kind, default=None, annotation=hint) for name, hint in hints.items()]


class _ReadsOwnWrites:
    """What both clients share: a memory of what was sent and seen."""

    _tokens: Tokens | None = None

    def read_your_writes(self) -> Self:
        """This client, on the same connections, but every answer contains what it has sent and seen before.

        Each has a memory of its own: what one has sent, another one need not see. An answer that cannot contain it in
        time is `UnavailableError` with the code `not_yet`, after retries. Answers of one publication (`as_of`) contain
        it or are refused. Close the original when you are done; this one has nothing of its own to close.

        Returns:
            The other client. Threads or tasks may share it: each then also reads what others wrote.
        """
        same = copy(self)
        same._tokens = Tokens()  # noqa: SLF001 - of the same class
        return same


class Client(_ReadsOwnWrites):
    """A client that blocks until the answer is there.

    It pools connections, so create one and reuse it; several threads may share it. Queries and events are retried when
    the API is busy or does not respond, at most four times; recomputes and rollbacks are not.
    """

    def __init__(  # noqa: PLR0913 - keyword arguments with defaults
        self,
        url: str = LOCAL_URL,
        key: str | None = None,
        *,
        key_file: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
        ca_file: str | os.PathLike[str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Create a client; nothing is sent yet.

        Args:
            url: address of the API.
            key: the API key; None to ask without one.
            key_file: a file that holds the key and nothing else, instead of `key`.
            timeout: seconds to connect, and between two parts of a response.
            ca_file: authorities to trust for an https URL, PEM; None for those of the package `certifi`.
            transport: what sends the requests, such as an httpx transport with other limits; None for httpx's own.

        Raises:
            ValueError: the address or the key is not valid, or both `key` and `key_file` are given.
            OSError: `key_file` or `ca_file` cannot be read.
        """
        self._endpoint = Endpoint(url, key, key_file)
        self._http = httpx.Client(
            base_url=url,
            headers=self._endpoint.headers,
            timeout=timeout,
            verify=trusting(ca_file),
            transport=transport,
            follow_redirects=False,
        )

    metrics = _method(operations.metrics)
    metric = _method_of_steps(operations.metric)
    several = _method_of_steps(operations.several)
    stores = _method(operations.stores)
    sensors = _method_of_pages(operations.sensors)
    cells = _method(operations.cells)
    raw_receipts = _method_of_pages(operations.raw_receipts)
    freshness = _method(operations.freshness)
    publications = _method_of_pages(operations.publications)
    recompute = _method(operations.recompute)
    recompute_state = _method(operations.recompute_state)
    wait = _method_of_steps(operations.wait)
    rollback = _method(operations.rollback)
    corrections = _method_of_pages(operations.corrections)
    load_products = _method(operations.load_products)
    load_targets = _method(operations.load_targets)
    ingest = _method_of_steps(ingest.ingest)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        """For `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def __repr__(self) -> str:
        """Without the key."""
        return f"Client({self._endpoint!r})"

    def call(self, call: Call[T]) -> T:
        """The answer to a call, with retries: what every method does, and for operations that have no method."""
        retries = stamina.retry_context(on=call.retry_delay, attempts=MAX_ATTEMPTS, timeout=MAX_RETRY_SECONDS)
        for attempt in retries:
            with attempt:
                return call.answer(self._send(call))
        raise AssertionError("the last attempt returns or raises")

    def _run(self, steps: Steps[T]) -> T:
        """The answer that several steps make."""
        try:
            step = next(steps)
            while True:
                try:
                    result = self._do(step)
                except ClientError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            answer: T = end.value
            return answer

    def _iterate(self, pages: Pages[T]) -> Iterator[T]:
        """The items of all pages."""
        page = self.call(pages.call(None))
        yield from page.items
        while page.next is not None:
            page = self.call(pages.call(page.next))
            yield from page.items

    def _do(self, step: Call[Any] | Pause) -> object:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        return self.call(step)

    def _send(self, call: Call[Any]) -> httpx.Response:
        tokens = self._tokens if call.has_token else None
        try:
            response = self._http.send(call.request(self._http, tokens.header if tokens else {}))
        except httpx.RequestError as error:
            raise call.transport_error(error) from error
        if tokens and response.status_code in call.success:
            tokens.note(response)
        return response


class AsyncClient(_ReadsOwnWrites):
    """A client for asyncio: the methods of `Client` as coroutines, and pages for `async for`.

    Create one per event loop and reuse it, because it pools connections.
    """

    def __init__(  # noqa: PLR0913 - keyword arguments with defaults
        self,
        url: str = LOCAL_URL,
        key: str | None = None,
        *,
        key_file: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
        ca_file: str | os.PathLike[str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Create a client; nothing is sent yet. `key_file` is read now, blocking.

        Args:
            url: address of the API.
            key: the API key; None to ask without one.
            key_file: a file that holds the key and nothing else, instead of `key`.
            timeout: seconds to connect, and between two parts of a response.
            ca_file: authorities to trust for an https URL, PEM; None for those of the package `certifi`.
            transport: what sends the requests, such as an httpx transport with other limits; None for httpx's own.

        Raises:
            ValueError: the address or the key is not valid, or both `key` and `key_file` are given.
            OSError: `key_file` or `ca_file` cannot be read.
        """
        self._endpoint = Endpoint(url, key, key_file)
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=self._endpoint.headers,
            timeout=timeout,
            verify=trusting(ca_file),
            transport=transport,
            follow_redirects=False,
        )

    metrics = _async_method(operations.metrics)
    metric = _async_method_of_steps(operations.metric)
    several = _async_method_of_steps(operations.several)
    stores = _async_method(operations.stores)
    sensors = _async_method_of_pages(operations.sensors)
    cells = _async_method(operations.cells)
    raw_receipts = _async_method_of_pages(operations.raw_receipts)
    freshness = _async_method(operations.freshness)
    publications = _async_method_of_pages(operations.publications)
    recompute = _async_method(operations.recompute)
    recompute_state = _async_method(operations.recompute_state)
    wait = _async_method_of_steps(operations.wait)
    rollback = _async_method(operations.rollback)
    corrections = _async_method_of_pages(operations.corrections)
    load_products = _async_method(operations.load_products)
    load_targets = _async_method(operations.load_targets)
    ingest = _async_method_of_steps(ingest.ingest)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        """For `async with`."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    def __repr__(self) -> str:
        """Without the key."""
        return f"AsyncClient({self._endpoint!r})"

    async def call(self, call: Call[T]) -> T:
        """The answer to a call, with retries: what every method does, and for operations that have no method."""
        retries = stamina.retry_context(on=call.retry_delay, attempts=MAX_ATTEMPTS, timeout=MAX_RETRY_SECONDS)
        async for attempt in retries:
            with attempt:
                return call.answer(await self._send(call))
        raise AssertionError("the last attempt returns or raises")

    async def _run(self, steps: Steps[T]) -> T:
        """The answer that several steps make."""
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._do(step)
                except ClientError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            answer: T = end.value
            return answer

    async def _iterate(self, pages: Pages[T]) -> AsyncIterator[T]:
        """The items of all pages."""
        page = await self.call(pages.call(None))
        for item in page.items:
            yield item
        while page.next is not None:
            page = await self.call(pages.call(page.next))
            for item in page.items:
                yield item

    async def _do(self, step: Call[Any] | Pause) -> object:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        return await self.call(step)

    async def _send(self, call: Call[Any]) -> httpx.Response:
        tokens = self._tokens if call.has_token else None
        try:
            response = await self._http.send(call.request(self._http, tokens.header if tokens else {}))
        except httpx.RequestError as error:
            raise call.transport_error(error) from error
        if tokens and response.status_code in call.success:
            tokens.note(response)
        return response
