"""Addresses of pages that people keep: a path and a query of this application, and nothing that leads elsewhere."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote, unquote_to_bytes

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from master_dataset.registry.hidden_characters import hidden_character
from serving_layer.errors import BadAddressError, BadQuestionError

MAX_ADDRESS = 2000
"""Characters of an address."""
SHARED_PATH = "/shared/"
_NEVER_KEPT = ("/login", "/static/", SHARED_PATH)
_ADDRESS = re.compile(r"/[!-~]*")
_EXAMPLE = "Send the path and query of a page, such as `/stores/12?day=2026-11-21`."


class PageAddress(NamedTuple):
    """`path`: percent-encoded, as a browser sends it. `query`: without the question mark."""

    path: str
    query: str

    @property
    def text(self) -> str:
        """The address as a link has it: the path and the query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def decoded_path(self) -> str:
        """The path as routes match it."""
        return unquote(self.path)


def parse_address(text: str) -> PageAddress:
    """Parse an address that somebody sent. Whether there is such a page, `require_page` says.

    Raises:
        BadAddressError: it is not a path with a query, or browsers would read it as something else.
    """
    if len(text) > MAX_ADDRESS:
        raise BadAddressError(f"The address is longer than {MAX_ADDRESS:,} characters.", do=_EXAMPLE)
    is_local = _ADDRESS.fullmatch(text) and not text.startswith("//")
    if not is_local or "#" in text or "\\" in text:
        raise BadAddressError("The address is not a path of this application.", do=_EXAMPLE)
    path, _, query = text.partition("?")
    try:
        decoded = unquote_to_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise BadAddressError("The path of the address is not UTF-8.", do=_EXAMPLE) from error
    if hidden_character(decoded, "any") or "\\" in decoded or decoded.startswith("//"):
        raise BadAddressError("The path of the address has characters that a page cannot have.", do=_EXAMPLE)
    if not {".", ".."}.isdisjoint(decoded.split("/")):
        raise BadAddressError("The path of the address has `.` or `..` in it.", do=_EXAMPLE)
    return PageAddress(path, query)


def require_page(address: PageAddress, routes: Iterable[BaseRoute]) -> None:
    """Require that a page has this address.

    Args:
        address: of `parse_address`.
        routes: of the application.

    Raises:
        BadAddressError: no page has it, or one that is not for keeping, such as `/login`.
    """
    path = address.decoded_path
    if path.startswith(_NEVER_KEPT) or not has_page(path, routes):
        raise BadAddressError(f"There is no page `{address.path[:100]}` to keep.", do=_EXAMPLE)


def has_page(path: str, routes: Iterable[BaseRoute]) -> bool:
    """Whether a page answers at this path, which is not percent-encoded."""
    return any(_is_page(route, path) for route in routes)


def _is_page(route: BaseRoute, path: str) -> bool:
    if not isinstance(route, APIRoute) or route.include_in_schema or "GET" not in route.methods:
        return False
    return route.path_regex.fullmatch(path) is not None


StoresShown = Callable[[PageAddress], frozenset[str] | None]
"""The stores that a page shows; None for all of the tenant."""


def _all_stores(_: PageAddress) -> None:
    return None


def _store_in_path(address: PageAddress) -> frozenset[str]:
    return frozenset([address.decoded_path.removeprefix("/stores/")])


SHAREABLE: Mapping[str, StoresShown] = {"/": _all_stores, "/stores/.+": _store_in_path}
"""The pages that a link can share, by a pattern of their decoded paths. Whoever adds a page with numbers adds it here,
with the stores that it shows; pages of operators, and lists that name other things, stay out."""


def shown_stores(address: PageAddress) -> frozenset[str] | None:
    """The stores that a page shows; None for all of the tenant. Raises BadAddressError if it cannot be shared."""
    shown = _shown_by(address.decoded_path)
    if shown is None:
        do = "Share the overview or the page of a store."
        raise BadAddressError(f"The page `{address.path[:100]}` cannot be shared.", do=do)
    return shown(address)


def is_shareable(path: str) -> bool:
    """Whether a link can share the page of this decoded path."""
    return _shown_by(path) is not None


def _shown_by(path: str) -> StoresShown | None:
    return next((shown for pattern, shown in SHAREABLE.items() if re.fullmatch(pattern, path)), None)


def readable(text: str, field: str, most: int) -> str:
    """A text that people type and others read, without blanks around it.

    Args:
        text: as it was sent.
        field: its name, for errors.
        most: characters that it may have.

    Raises:
        BadQuestionError: it is empty or too long, or has characters that nobody sees, such as those that reorder text.
    """
    stripped = text.strip()
    if not stripped:
        raise BadQuestionError(f"`{field}` is empty.", do=f"Send 1 to {most} characters.")
    if len(stripped) > most:
        raise BadQuestionError(f"`{field}` has {len(stripped):,} characters.", do=f"Send at most {most}.")
    if hidden := hidden_character(stripped, "any"):
        message = f"`{field}` has a character that is not visible, {hidden}."
        raise BadQuestionError(message, do="Leave it out.")
    return stripped
