"""The two clients: one waits for answers, the other awaits them. What can be asked is said once, for both.

with Client(key_file=".galatea/operator.key") as galatea:
    galatea.metric("net_sales", store="1", start="2026-11-17", end="2026-11-24").to_pandas()
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self, TypeVar

import httpx
import stamina

from galatea.client import ingest, methods, operations, questions
from galatea.client.call import Call, Pages, Pause, Steps
from galatea.client.connection import ATTEMPTS, LOCAL, MOST_SECONDS, Address, pause_after, request, unreachable
from galatea.client.errors import NotAnswered

T = TypeVar("T")


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

    metrics = methods.called(questions.metrics)
    metric = methods.called(questions.metric)
    several = methods.called(questions.several)
    stores = methods.called(questions.stores)
    cells = methods.called(questions.cells)
    raw_receipts = methods.called_each(questions.raw_receipts)
    freshness = methods.called(questions.freshness)
    publications = methods.called_each(questions.publications)
    recompute = methods.called(operations.recompute)
    recompute_state = methods.called(operations.recompute_state)
    wait = methods.called_steps(operations.wait)
    rollback = methods.called(operations.rollback)
    corrections = methods.called_each(operations.corrections)
    ingest = methods.called_steps(ingest.ingest)

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

    metrics = methods.awaited(questions.metrics)
    metric = methods.awaited(questions.metric)
    several = methods.awaited(questions.several)
    stores = methods.awaited(questions.stores)
    cells = methods.awaited(questions.cells)
    raw_receipts = methods.awaited_each(questions.raw_receipts)
    freshness = methods.awaited(questions.freshness)
    publications = methods.awaited_each(questions.publications)
    recompute = methods.awaited(operations.recompute)
    recompute_state = methods.awaited(operations.recompute_state)
    wait = methods.awaited_steps(operations.wait)
    rollback = methods.awaited(operations.rollback)
    corrections = methods.awaited_each(operations.corrections)
    ingest = methods.awaited_steps(ingest.ingest)

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
