"""How the API is reached: its address, the key, and how often a question is repeated. Shared by both clients."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from galatea.client.call import Call
from galatea.client.errors import NotAnswered, TooOften, Unavailable, Unreachable

if TYPE_CHECKING:
    import os

LOCAL = "http://127.0.0.1:8000"
ATTEMPTS = 4
"""Of one call, with the first."""
MOST_WAITED_SECONDS = 30.0
"""Who is told to wait longer is told so by the error, instead of standing still."""
MOST_SECONDS = 120.0
"""Of one call with all its attempts, before the last of them begins."""


class Address:
    """Where the API is, and the key that opens it. The key is in the header alone: never in a text of this object."""

    def __init__(self, url: str, key: str | None, key_file: "str | os.PathLike[str] | None") -> None:
        """`key_file`: read now; white space around the key does not count.

        ValueError for what can be no address or no key.
        """
        self.url = httpx.URL(url)
        if self.url.scheme not in {"http", "https"} or not self.url.host:
            raise ValueError(f"`{self.url!r}` is no address: it begins with http:// or https://, and names a host")
        if key is not None and key_file is not None:
            raise ValueError("`key` and `key_file` are given at once: leave one out")
        if key_file is not None:
            key = Path(key_file).read_text(encoding="utf-8").strip()
        if key is not None and not (key and key.isascii() and key.isprintable()):  # else it ends up in httpx's words
            raise ValueError("the key is empty, or has characters in it that no key has")
        self.headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def __repr__(self) -> str:
        """Without the key, and without the password of an address that has one."""
        return f"{self.url!r}"


def request(client: "httpx.Client | httpx.AsyncClient", call: Call[Any]) -> httpx.Request:
    """What is sent."""
    return client.build_request(call.method, call.path, params=call.query, content=call.body, headers=call.headers)


def unreachable(call: Call[Any], error: httpx.RequestError) -> Unreachable:
    """What a failure of the transport means; its cause has the words of httpx."""
    return Unreachable(f"`{call.method} {call.path}` got no answer: {type(error).__name__}. Is the API there?")


def pause_after(call: Call[Any]) -> Callable[[Exception], bool | float]:
    """Whether an error of this call is one that passes, and how many seconds to wait if the API says so."""

    def pause(error: Exception) -> bool | float:
        if not call.is_repeatable or not isinstance(error, NotAnswered):
            return False
        if isinstance(error, Unreachable):
            return True
        if not isinstance(error, TooOften | Unavailable):
            return False
        if error.retry_after is None:
            return True
        return error.retry_after if error.retry_after <= MOST_WAITED_SECONDS else False

    return pause
