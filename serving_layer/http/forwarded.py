"""Requests that a proxy has passed on, and whether the settings name that proxy.

Whoever puts a proxy in front of an API on loopback opens it to others. The headers that proxies add distinguish those
from clients on this machine.
"""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from serving_layer.errors import ApiKeyMissingError

_FROM_NAMED_PROXY = "galatea.from_named_proxy"
_HEADERS = frozenset({b"forwarded", b"via", b"x-real-ip"})
_HEADER_PREFIX = b"x-forwarded-"


class NamedProxies:
    """ASGI middleware that marks the requests of named proxies. Outside of what replaces the client's address."""

    def __init__(self, app: ASGIApp, proxies: Sequence[IPv4Network | IPv6Network]) -> None:
        """`app`: the inner application. `proxies`: networks of proxies."""
        self._app, self._proxies = app, proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Mark the request, and pass it on."""
        client = scope.get("client")
        if client and self._has(client[0]):
            scope[_FROM_NAMED_PROXY] = True
        await self._app(scope, receive, send)

    def _has(self, text: str) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        return any(address in network for network in self._proxies)


def refuse_anonymous_through_proxy(scope: Scope, authorization: str | None) -> None:
    """Refuse a request without a key that a proxy has passed on which the settings do not name. ApiKeyMissingError."""
    if authorization or scope.get(_FROM_NAMED_PROXY) or not _is_forwarded(scope):
        return
    raise ApiKeyMissingError(
        "The request has no key, and came through a proxy that the API does not know.",
        do="Send the header `Authorization: Bearer` with a key, or let the operator name the proxy in "
        "`GALATEA_API_PROXIES`.",
    )


def _is_forwarded(scope: Scope) -> bool:
    return any(name in _HEADERS or name.startswith(_HEADER_PREFIX) for name, _ in scope["headers"])
