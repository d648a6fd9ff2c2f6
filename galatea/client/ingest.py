"""Bringing events: in requests that the API takes, and what became of each event.

Sending an event again is safe: its identity is in its own fields, and what arrives twice counts once.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

import msgspec

from galatea.client.connection import Call, Pause, Steps, once, path, reader
from galatea.client.errors import NotAnswered, Unreadable

Event = Mapping[str, object] | bytes
MOST_EVENTS, MOST_BYTES = 1_000, 1_000_000
"""In one request; the bytes are those before compression."""
MOST_UNFOLDING = 20
"""A body that unfolds to more than so many times its size is refused, because that is how bombs are made."""
PAUSE_SECONDS = 2.0
ANSWERED = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.MULTI_STATUS, HTTPStatus.UNPROCESSABLE_ENTITY})
JSON = msgspec.json.Encoder(decimal_format="number")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one event: `index` is its place in what was given, from 0 on.

    `reason`: a code that stays; `pointer`: the JSON pointer of the field, empty for the whole event.
    """

    index: int
    outcome: Literal["accepted", "rejected", "unknown"]
    reason: str | None = None
    pointer: str | None = None
    sentence: str | None = None


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """Events that were `accepted` are counted; those `rejected` were not kept; of those `unknown` nobody can tell."""

    accepted: int
    rejected: tuple[Outcome, ...] = ()
    unknown: tuple[Outcome, ...] = ()


class Interrupted(NotAnswered):
    """An ingest that got no answer for a request, so that it stopped: see its `__cause__`.

    `ingested`: what became of events before. `index`: the first that is not settled; send all from there on again.
    """

    def __init__(self, ingested: Ingested, index: int) -> None:
        """`index`: its place in what was given."""
        super().__init__(
            f"Events from number {index} on are not settled. Send them again: what arrives twice counts once."
        )
        self.ingested = ingested
        self.index = index


def ingest(source: str, events: Iterable[Event], *, attempts: int = 5) -> Steps[Ingested]:
    """Send events to a source, in order, at most 1,000 and 1 MB in a request; `attempts` for those that are unknown.

    An event is a mapping, or JSON as bytes, such as a line of a file; blank lines are skipped. Sending the same again
    is safe, because what arrives twice counts once. Interrupted if a request gets no answer after its retries.
    """
    settled = _Settled()
    for request in _requests(events, settled):
        try:
            yield from _settle(source, request, attempts, settled)
        except NotAnswered as error:
            raise Interrupted(settled.told(), request[0].index) from error
    return settled.told()


@dataclass(frozen=True)
class _Record:
    index: int
    value: bytes


class _Settled:
    def __init__(self) -> None:
        self.accepted = 0
        self.others: list[Outcome] = []

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for said in outcomes:
            if said.outcome == "accepted":
                self.accepted += 1
            else:
                self.others.append(said)

    def told(self) -> Ingested:
        others = sorted(self.others, key=lambda each: each.index)
        rejected, unknown = (tuple(each for each in others if each.outcome == of) for of in ("rejected", "unknown"))
        return Ingested(accepted=self.accepted, rejected=rejected, unknown=unknown)


def _settle(source: str, request: Sequence[_Record], attempts: int, settled: _Settled) -> Steps[None]:
    """Send a request, and again what is unknown of it; that stays unknown if nobody answers then."""
    left, unknown = {record.index: record for record in request}, list[Outcome]()
    for attempt in range(attempts):
        if attempt:
            yield Pause(PAUSE_SECONDS)
        try:
            outcomes = yield from once(_post(source, [*left.values()]))
        except NotAnswered:
            if not attempt:
                raise
            break
        unknown = [said for said in outcomes if said.outcome == "unknown"]
        settled.add(said for said in outcomes if said.outcome != "unknown")
        left = {said.index: left[said.index] for said in unknown}
        if not left:
            break
    settled.add(unknown)


def _requests(events: Iterable[Event], settled: _Settled) -> Iterator[Sequence[_Record]]:
    """As many events in a request as may be in one. What no request can hold is rejected here."""
    request: list[_Record] = []
    size = 0
    for index, event in enumerate(events):
        value = _bytes_of(event)
        if len(value) > MOST_BYTES:
            told = f"The event is larger than {MOST_BYTES:,} bytes."
            settled.add([Outcome(index=index, outcome="rejected", reason="too_large", pointer="", sentence=told)])
            continue
        if not value:
            continue
        if len(request) == MOST_EVENTS or size + len(value) > MOST_BYTES:
            yield request
            request, size = [], 0
        request.append(_Record(index, value))
        size += len(value) + 1
    if request:
        yield request


def _bytes_of(event: Event) -> bytes:
    """One line. A line break in JSON is white space, and one that is not is no JSON with a space either."""
    if isinstance(event, bytes):
        return event.strip().replace(b"\n", b" ")
    if isinstance(event, Mapping):
        return JSON.encode(event)
    raise TypeError(f"an event is a mapping or bytes, not `{type(event).__name__}`")


def _post(source: str, records: Sequence[_Record]) -> Call[Sequence[Outcome]]:
    """One request; the outcomes are in the order of the records, each under the index of its own."""
    read = reader(_Told)

    def understood(body: bytes) -> Sequence[Outcome]:
        items = sorted(read(body).items, key=lambda item: item.index)
        if [item.index for item in items] != list(range(len(records))):
            raise Unreadable("The answer does not say of each event what became of it. Send the same again.")
        return [msgspec.structs.replace(item, index=record.index) for item, record in zip(items, records, strict=True)]

    plain = b"\n".join(record.value for record in records)
    packed = gzip.compress(plain, mtime=0)
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    if len(plain) >= MOST_UNFOLDING * len(packed):
        packed = plain
        del headers["Content-Encoding"]
    return Call(path("events", source), understood, method="POST", body=packed, headers=headers, answered=ANSWERED)


class _Told(msgspec.Struct):
    items: tuple[Outcome, ...]
