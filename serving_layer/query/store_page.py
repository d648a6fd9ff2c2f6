"""Stores in pages, by id: many more may be registered than one answer holds."""

import base64
import binascii
from typing import NamedTuple

import orjson

from master_dataset.registry.stores import Store
from serving_layer.errors import BadQuestion


class Page(NamedTuple):
    """Which part of the stores was asked for. `after`: the id that the page before ended with."""

    limit: int | None = None
    after: str | None = None

    @property
    def is_asked(self) -> bool:
        """Whether pages were asked for at all."""
        return self != Page()


class StorePage(NamedTuple):
    """`following`: the id that the page ends with if more stores follow; None on the last page."""

    stores: tuple[Store, ...]
    following: str | None


def write_token(store: str) -> str:
    """Where the next page begins, for the caller to hand back unread. Not a number: stores may come and go."""
    return base64.urlsafe_b64encode(orjson.dumps([store])).decode()


def read_token(token: str) -> str:
    """The inverse. BadQuestion for anything that `write_token` did not write."""
    try:
        [store] = orjson.loads(base64.urlsafe_b64decode(token.encode()))
    except (binascii.Error, ValueError, TypeError) as error:
        raise _no_token() from error
    if not isinstance(store, str):
        raise _no_token()
    return store


def _no_token() -> BadQuestion:
    message = "`after` is no token of this interface."
    return BadQuestion(message, do="Use `next` of the page before, or leave it out.")
