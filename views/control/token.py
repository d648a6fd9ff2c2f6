"""Event tokens: which events an answer must contain, as a text that goes from ingest to a query.

A token names events by how far they reach in each partition: everything before an offset. Where an answer got its
events from is its own matter, so two facts go along that let a published cut stand in for positions, and must not:

    1 ~ cut ~ first ~ last ~ topic ~ tag ~ ends ~ topic ~ tag ~ ends ...

    cut     of the publication that is needed at least: for events that only batch counts. Empty: any
    first   when the first of the events was received. Empty: unknown
    last    when the last of them was received; a cut after it contains all of them
    tag     of the topic's id: one that is created again has another
    ends    by partition from 0 on, separated by dots: the offset that is reached. Empty: none

Numbers are hexadecimal, instants milliseconds since 1970. `docs/how-to/read-your-writes.md` explains what is promised.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from hashlib import blake2b
from typing import NamedTuple, Self

from master_dataset.fields.times import AFTER_LAST_MS

MOST_CHARACTERS = 8_192
"""Of a token: about 900 partitions. By default, all headers of a request are twice as long at most."""
_VERSION = "1"
_HEX = r"(?:0|[1-9a-f][0-9a-f]{0,14})"
_TOPIC = r"[A-Za-z0-9._-]{1,249}~[0-9a-f]{8}~(?:" + _HEX + r")?(?:\.(?:" + _HEX + r")?)*"
_TOKEN = re.compile(rf"{_VERSION}~({_HEX})?~({_HEX})?~({_HEX})?((?:~{_TOPIC})*)")


class InvalidTokenError(ValueError):
    """A text that is no token. `str(error)` completes a sentence that begins with the name of the argument."""


class TopicEnds(NamedTuple):
    """How far the events of a token reach in one topic.

    Attributes:
        tag: Of the topic's id; see `topic_tag`.
        ends: Partition to the offset behind the last event there.
    """

    tag: str
    ends: Mapping[int, int]


@dataclass(frozen=True)
class EventToken:
    """Events that were acknowledged, or that an answer contained.

    Attributes:
        topics: How far they reach.
        first_ms: When the first of them was received; None if that is unknown, or there is none.
        last_ms: When the last of them was received; None if that is unknown, or there is none.
        cut_ms: Only a publication with this cut or a later one contains all of them; 0: any does.
    """

    topics: Mapping[str, TopicEnds] = field(default_factory=dict)
    first_ms: int | None = None
    last_ms: int | None = None
    cut_ms: int = 0

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Read a token. The empty text is the token that names nothing. InvalidTokenError."""
        if not text:
            return cls()
        if len(text) > MOST_CHARACTERS:
            raise InvalidTokenError(f"is longer than {MOST_CHARACTERS:,} characters")
        found = _TOKEN.fullmatch(text)
        if found is None:
            raise InvalidTokenError("is no token of this interface")
        cut, first, last = (int(each, 16) if each else None for each in found.groups()[:3])
        if max(filter(None, (cut, first, last)), default=0) >= AFTER_LAST_MS:
            raise InvalidTokenError("names an instant in the far future")
        topics: dict[str, TopicEnds] = {}
        parts = found[4].split("~")[1:]
        for topic, tag, ends in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            if topic in topics:
                raise InvalidTokenError(f"names the topic `{topic}` twice")
            numbered = {number: int(end, 16) for number, end in enumerate(ends.split(".")) if end}
            topics[topic] = TopicEnds(tag, numbered)
        return cls(topics, first, last, cut or 0)

    def text(self) -> str:
        """The token as a text of letters, digits and `.`, `_`, `-`, `~`, which a URL takes as they are."""
        times = (f"{at:x}" if at is not None else "" for at in (self.cut_ms or None, self.first_ms, self.last_ms))
        parts = [
            part for topic, (tag, ends) in sorted(self.topics.items()) if ends for part in (topic, tag, _dotted(ends))
        ]
        return "~".join([_VERSION, *times, *parts])

    def joined(self, later: "EventToken") -> "EventToken":
        """The events of both. Of a topic that was created again in between, those of `later` alone."""
        topics = dict(self.topics)
        for topic, (tag, ends) in later.topics.items():
            known = topics.get(topic)
            if known is not None and known.tag == tag:
                every = {**known.ends, **ends}
                topics[topic] = TopicEnds(tag, {at: max(known.ends.get(at, 0), ends.get(at, 0)) for at in every})
            else:
                topics[topic] = TopicEnds(tag, ends)
        first = [each.first_ms for each in (self, later) if each.first_ms is not None]
        named = [each.last_ms for each in (self, later) if each.topics]
        last = None if None in named else max((each for each in named if each is not None), default=None)
        return EventToken(topics, min(first, default=None), last, max(self.cut_ms, later.cut_ms))

    @property
    def partitions(self) -> Iterator[tuple[str, int, int]]:
        """Topic, partition and the offset that is reached."""
        return (
            (topic, number, end) for topic, (_, ends) in sorted(self.topics.items()) for number, end in ends.items()
        )


def joined(tokens: Iterable[EventToken]) -> EventToken:
    """The events of all of them."""
    return reduce(EventToken.joined, tokens, EventToken())


def topic_tag(topic_id: str) -> str:
    """Of the id that Kafka gave to a topic: eight hexadecimal digits."""
    return blake2b(topic_id.encode(), digest_size=4).hexdigest()


def _dotted(ends: Mapping[int, int]) -> str:
    return ".".join(f"{ends[number]:x}" if number in ends else "" for number in range(max(ends) + 1))
