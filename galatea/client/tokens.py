"""The tokens of a client that reads its own writes.

A token says how far events reach: `version ~ cut ~ first ~ last`, then for each topic `~ topic ~ tag ~ ends`. Ends are
the offsets of partitions from 0 on, separated by dots. Numbers are hexadecimal; what is empty is unknown or none.
"""

from collections.abc import Mapping
from itertools import zip_longest
from threading import Lock

import httpx

from galatea.client.errors import InvalidResponseError

_VERSION = "1"


class Tokens:
    """What a client has sent and seen: every later answer contains it. Several threads may share it."""

    def __init__(self) -> None:
        """Nothing was sent or seen yet."""
        self._held = ""
        self._lock = Lock()

    @property
    def header(self) -> Mapping[str, str]:
        """The header of a request whose answer has to contain all of it. Empty, it only asks for a token."""
        return {"Galatea-At-Least": self._held}

    def note(self, response: httpx.Response) -> None:
        """Add what a response says that it contains, or has sent.

        Raises:
            InvalidResponseError: it says nothing, so later answers could lack it.
        """
        token = response.headers.get("galatea-token")
        if not token:
            message = "The response has no token, so later answers may lack what was sent. Send the same again."
            raise InvalidResponseError(message)
        with self._lock:
            self._held = joined(self._held, token)


def joined(held: str, token: str) -> str:
    """A token of all that two tokens name. InvalidResponseError if one is of another version of the API."""
    if not held:
        return token
    one, other = held.split("~"), token.split("~")
    if {one[0], other[0]} != {_VERSION}:
        raise InvalidResponseError("The token of the response is of another version. Use a newer client.")
    topics = dict(zip(one[4::3], zip(one[5::3], one[6::3], strict=True), strict=True))
    for topic, tag, ends in zip(other[4::3], other[5::3], other[6::3], strict=True):
        known = topics.get(topic)
        same = known is not None and known[0] == tag
        topics[topic] = tag, _greatest(known[1], ends) if known is not None and same else ends
    firsts, lasts = [each[2] for each in (one, other) if each[2]], [each[3] for each in (one, other) if each[4:]]
    times = [
        max(one[1], other[1], key=_number),
        min(firsts, key=_number, default=""),
        max(lasts, key=_number, default="") if all(lasts) else "",
    ]
    return "~".join([_VERSION, *times, *(part for topic, own in sorted(topics.items()) for part in (topic, *own))])


def _greatest(ends: str, others: str) -> str:
    return ".".join(max(pair, key=_number) for pair in zip_longest(ends.split("."), others.split("."), fillvalue=""))


def _number(text: str) -> int:
    return int(text or "0", 16)
