"""The names under which the API is served. Requests for any other name are refused.

A page of another site can have its own name resolve to this machine ("DNS rebinding"). For the browser, the API is then
of that site: its scripts read every answer that needs no key. Only `Host` tells such a request from others.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from serving_layer.errors import HostNotAllowedError
from serving_layer.http.problems import REFUSALS, problem

SETTING = "GALATEA_API_HOSTS"
ANY_BELOW = "*."
LOCALHOST = "localhost"
PROBES = frozenset({"/healthz", "/readyz"})
"""Paths that answer under every name: probes use the address of a container, and no answer there is about data."""


@dataclass(frozen=True)
class AllowedHosts:
    """Names and addresses, besides those of loopback. `suffixes`: of names below a domain, such as `.shop.example`."""

    names: frozenset[str]
    suffixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Those of a setting: names, addresses, and `*.DOMAIN` for every name below a domain."""
        known = [_canonical(each) for each in entries]
        below = tuple(each.removeprefix("*") for each in known if each.startswith(ANY_BELOW))
        return cls(frozenset(each for each in known if not each.startswith(ANY_BELOW)), below)

    def allow(self, host: str) -> bool:
        """Whether requests with this `Host` are answered, whatever its port."""
        name = _canonical(name_of(host))
        return _is_loopback(name) or name in self.names or name.endswith(self.suffixes or ("\0",))


def name_of(host: str) -> str:
    """The name or address in a `Host`, without the port."""
    if host.startswith("["):
        name, end, _ = host[1:].partition("]")
        return name if end else ""
    return host.partition(":")[0]


def _canonical(name: str) -> str:
    try:
        return str(ip_address(name.strip("[]")))
    except ValueError:
        return name.lower().removesuffix(".")


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == LOCALHOST or name.endswith(f".{LOCALHOST}")


class HostCheck:
    """ASGI middleware that refuses requests for other names, with 421."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts) -> None:
        """`app`: the inner application."""
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "")
        if self._hosts.allow(host):
            await self._app(scope, receive, send)
            return
        error = HostNotAllowedError(
            f"The API is not served under the name `{name_of(host)}`.",
            do=f"Use a name that it is served under, or let the operator add this one to `{SETTING}`.",
        )
        REFUSALS.labels(error.code).inc()
        await problem(error.status, error.code, error.message, error.do)(scope, receive, send)
