"""The clients over a World: the real application, without a network."""

import asyncio
from collections.abc import Callable

import httpx

from galatea.client import AsyncClient, Client
from tests.support.asking import Asking


class Waited(httpx.BaseTransport):
    """An ASGI application for a client that waits."""

    def __init__(self, asking: Asking) -> None:
        self._inner = over(asking)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def whole() -> httpx.Response:
            response = await self._inner.handle_async_request(request)
            return httpx.Response(response.status_code, headers=response.headers, content=await response.aread())

        return asyncio.run(whole())


def over(asking: Asking) -> httpx.ASGITransport:
    """The same for a client that awaits."""
    return httpx.ASGITransport(asking.app, raise_app_exceptions=False)


def client(asking: Asking, key: str | None = None) -> Client:
    return Client("http://galatea", key, transport=Waited(asking))


def async_client(asking: Asking, key: str | None = None) -> AsyncClient:
    return AsyncClient("http://galatea", key, transport=over(asking))


def answering(answer: Callable[[httpx.Request], httpx.Response], key: str | None = None) -> Client:
    """A client of whom a function answers, for what a World does not do."""
    return Client("http://galatea", key, transport=httpx.MockTransport(answer))
