"""Clients of the REST API over a World: Python clients, a server on a free port, and a browser without a screen."""

import html
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Network, IPv6Network
from typing import Any
from urllib.parse import urlencode

import httpx

from galatea.client import AsyncClient, Client
from serving_layer.http.certificate import ServerCertificate
from serving_layer.http.connections import ConnectionLimits
from serving_layer.http.server import Server, ServerConfig
from tests.support import event_loop
from tests.support.world_api import OPERATOR_KEY, Asking


class Waited(httpx.BaseTransport):
    """An ASGI application for a client that waits."""

    def __init__(self, asking: Asking) -> None:
        self._inner = over(asking)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def whole() -> httpx.Response:
            response = await self._inner.handle_async_request(request)
            return httpx.Response(response.status_code, headers=response.headers, content=await response.aread())

        return event_loop.run(whole())


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


@contextmanager
def listening(
    app: Any,
    limits: ConnectionLimits | None = None,
    certificate: ServerCertificate | None = None,
    proxies: Sequence[IPv4Network | IPv6Network] = (),
) -> Iterator[str]:
    """An ASGI application on a free port of this machine, listening as the product does; its address."""
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        server = Server(ServerConfig(app, limits or ConnectionLimits(), certificate, proxies, lifespan="off"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [own]})
        serving.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{own.getsockname()[1]}"
        finally:
            server.should_exit = True
            serving.join()


@contextmanager
def served(asking: Asking, limits: ConnectionLimits | None = None) -> Iterator[str]:
    """The application over a World."""
    with listening(asking.app, limits) as url:
        yield url


ORIGIN = "http://galatea"
TOKEN = re.compile(r'name="token" value="([0-9a-f]{64})"')

MARK, END = re.compile(r"<[^>]+>"), re.compile(r"</(?:p|h\d|li|d[td]|t[hdr]|a|button|title|label)>")


def words(page: str) -> str:
    """The text of a page, without its marks, in one line."""
    return " ".join(html.unescape(MARK.sub("", END.sub(" ", page))).split())


class Browsing:
    """One browser."""

    def __init__(self, asking: Asking, origin: str = ORIGIN) -> None:
        self.asking, self.origin = asking, origin
        self.cookies = httpx.Cookies()

    def get(self, path: str, status: int = 200) -> str:
        """The text of a page, which must have that status."""
        response = self.response("GET", path)
        assert response.status_code == status, response.text
        return response.text

    def words(self, path: str, status: int = 200) -> str:
        """What a page says, without its marks."""
        return words(self.get(path, status))

    def send(self, path: str, *, form_of: str, origin: str | None = ORIGIN, **fields: str) -> httpx.Response:
        """The response to a form that stands on the page `form_of`."""
        found = TOKEN.search(self.response("GET", form_of).text)
        fields = {"token": found[1] if found else "", **fields}
        return self.post(path, urlencode(fields), origin=origin)

    def post(self, path: str, body: str, *, origin: str | None = ORIGIN) -> httpx.Response:
        """The response to a form as it is."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.response("POST", path, headers=kind | ({"Origin": origin} if origin else {}), content=body)

    def sign_in(self, key: str = OPERATOR_KEY, following: str = "/") -> httpx.Response:
        """As with the form of `/login`."""
        return self.send("/login", form_of="/login", key=key, following=following)

    def response(
        self, method: str, path: str, headers: dict[str, str] | None = None, content: str = ""
    ) -> httpx.Response:
        """Redirections are not followed."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.asking.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=self.origin, cookies=self.cookies) as client:
                found = await client.request(method, path, headers=headers, content=content)
                self.cookies = client.cookies
                return found

        return event_loop.run(ask())
