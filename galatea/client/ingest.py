"""Sending events: batching, compression, resending what was not confirmed, and the outcome of each event.

Sending an event again is safe: its identity is in its own fields, and duplicates count once.
"""

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

import msgspec

from galatea.client.connection import Call, Pause, Steps, decoder, path, send
from galatea.client.errors import ClientError, InvalidResponseError

Event = Mapping[str, object] | bytes
MAX_EVENTS, MAX_BYTES = 1_000, 1_000_000
"""Per request; bytes are counted before compression."""
MAX_COMPRESSION_RATIO = 20
"""A body that compresses better is sent uncompressed, so that nothing takes it for a decompression bomb."""
PAUSE_SECONDS = 2.0
"""Before unconfirmed events are sent again."""
_SUCCESS = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.MULTI_STATUS, HTTPStatus.UNPROCESSABLE_ENTITY})
_JSON = msgspec.json.Encoder(decimal_format="number")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to one event.

    Attributes:
        index: its place in the events that were passed, from 0 on.
        outcome: `accepted`; `rejected`, so it was not kept; or `unknown`, because the broker did not confirm it.
        reason: a stable code; None if it was not rejected.
        pointer: JSON pointer of the field that is wrong, empty for the whole event; None if it was not rejected.
        sentence: what is wrong; None if it was not rejected.
    """

    index: int
    outcome: Literal["accepted", "rejected", "unknown"]
    reason: str | None = None
    pointer: str | None = None
    sentence: str | None = None


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """How many events were accepted, and which were rejected or stayed unknown, by index."""

    accepted: int
    rejected: tuple[Outcome, ...] = ()
    unknown: tuple[Outcome, ...] = ()


class IngestInterruptedError(ClientError):
    """An ingest stopped because a request got no answer; `__cause__` says why.

    Attributes:
        ingested: what happened to the events before.
        index: the first event that is not settled. Send everything from there on again.
    """

    def __init__(self, ingested: Ingested, index: int) -> None:
        """The error for an ingest that stopped at the event `index`."""
        super().__init__(f"Events from number {index} on are not settled. Send them again: duplicates count once.")
        self.ingested = ingested
        self.index = index


def ingest(source: str, events: Iterable[Event], *, attempts: int = 5) -> Steps[Ingested]:
    """Send events to a source, in order, gzipped, with at most 1,000 events and 1 MB per request.

    Args:
        source: its name, such as `pos_transactions`.
        events: mappings, or JSON as bytes, such as the lines of a file opened with `"rb"`; blank lines are skipped.
        attempts: how often events are sent whose outcome is unknown.

    Returns:
        How many were accepted, and which were rejected or are still unknown after `attempts`.

    Raises:
        IngestInterruptedError: a request got no answer after its retries.
        TypeError: an event is neither a mapping nor bytes.
    """
    outcomes = _Outcomes()
    for records in _requests(events, outcomes):
        try:
            yield from _send_records(source, records, attempts, outcomes)
        except ClientError as error:
            raise IngestInterruptedError(outcomes.ingested(), records[0].index) from error
    return outcomes.ingested()


@dataclass(frozen=True)
class _Record:
    index: int
    value: bytes


class _Outcomes:
    """Collects the outcomes of all requests."""

    def __init__(self) -> None:
        self._accepted = 0
        self._others: list[Outcome] = []

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.outcome == "accepted":
                self._accepted += 1
            else:
                self._others.append(outcome)

    def ingested(self) -> Ingested:
        others = sorted(self._others, key=lambda each: each.index)
        rejected, unknown = (tuple(each for each in others if each.outcome == kind) for kind in ("rejected", "unknown"))
        return Ingested(accepted=self._accepted, rejected=rejected, unknown=unknown)


def _requests(events: Iterable[Event], outcomes: _Outcomes) -> Iterator[Sequence[_Record]]:
    """As many events per request as fit. An event that fits into no request is rejected here."""
    records: list[_Record] = []
    size = 0
    for index, event in enumerate(events):
        value = _line(event)
        if len(value) > MAX_BYTES:
            sentence = f"The event is larger than {MAX_BYTES:,} bytes."
            outcomes.add([Outcome(index=index, outcome="rejected", reason="too_large", pointer="", sentence=sentence)])
            continue
        if not value:
            continue
        if len(records) == MAX_EVENTS or size + len(value) > MAX_BYTES:
            yield records
            records, size = [], 0
        records.append(_Record(index, value))
        size += len(value) + 1
    if records:
        yield records


def _line(event: Event) -> bytes:
    """An event as one line. Line breaks between JSON tokens become spaces; elsewhere they are invalid JSON anyway."""
    if isinstance(event, bytes):
        return event.strip().replace(b"\n", b" ")
    if isinstance(event, Mapping):
        return _JSON.encode(event)
    raise TypeError(f"an event is a mapping or bytes, not `{type(event).__name__}`")


def _send_records(source: str, records: Sequence[_Record], attempts: int, outcomes: _Outcomes) -> Steps[None]:
    """Send a request, then again what is unknown of it. If resending gets no answer, that stays unknown."""
    left, unknown = {record.index: record for record in records}, list[Outcome]()
    for attempt in range(attempts):
        if attempt:
            yield Pause(PAUSE_SECONDS)
        try:
            found = yield from send(_call(source, [*left.values()]))
        except ClientError:
            if not attempt:
                raise
            break
        unknown = [each for each in found if each.outcome == "unknown"]
        outcomes.add(each for each in found if each.outcome != "unknown")
        left = {each.index: left[each.index] for each in unknown}
        if not left:
            break
    outcomes.add(unknown)


def _call(source: str, records: Sequence[_Record]) -> Call[Sequence[Outcome]]:
    """One request; each outcome has the index of its record among all events."""
    decode = decoder(_EventOutcomes)

    def decode_outcomes(body: bytes) -> Sequence[Outcome]:
        items = sorted(decode(body).items, key=lambda item: item.index)
        if [item.index for item in items] != list(range(len(records))):
            raise InvalidResponseError("The response does not have an outcome for each event. Send the same again.")
        return [msgspec.structs.replace(item, index=record.index) for item, record in zip(items, records, strict=True)]

    plain = b"\n".join(record.value for record in records)
    body = gzip.compress(plain, mtime=0)
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    if len(plain) >= MAX_COMPRESSION_RATIO * len(body):
        body = plain
        del headers["Content-Encoding"]
    return Call(
        path("events", source),
        decode_outcomes,
        method="POST",
        body=body,
        headers=headers,
        success=_SUCCESS,
        has_token=True,
    )


class _EventOutcomes(msgspec.Struct):
    items: tuple[Outcome, ...]
