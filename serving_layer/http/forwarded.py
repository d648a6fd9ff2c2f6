"""Requests that a proxy has passed on. Whoever sends them is not on this machine, wherever the proxy is.

Only this machine reads without a key. The headers that proxies add distinguish others from its clients.
"""

from starlette.types import Scope

from serving_layer.errors import ApiKeyMissingError

_HEADERS = frozenset({b"forwarded", b"via", b"x-real-ip"})
_HEADER_PREFIX = b"x-forwarded-"


def refuse_anonymous_through_proxy(scope: Scope, authorization: str | None) -> None:
    """Refuse a request without a key that a proxy has passed on. ApiKeyMissingError."""
    if authorization or not _is_forwarded(scope):
        return
    raise ApiKeyMissingError(
        "The request has no key, and came through a proxy.",
        do="Send the header `Authorization: Bearer` with a key. Without one, only this machine can read.",
    )


def _is_forwarded(scope: Scope) -> bool:
    return any(name in _HEADERS or name.startswith(_HEADER_PREFIX) for name, _ in scope["headers"])
