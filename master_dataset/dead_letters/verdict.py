"""What a dead letter would become if it were sent again: an event, or still none. Pure: the parser of every layer.

Whether its identity is there already is no part of it, as that depends on more than the record.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from master_dataset.dead_letters.letter import Headers, Letter
from master_dataset.dead_letters.mend import Mend
from master_dataset.dead_letters.place import Place
from master_dataset.parsing.dead_letter import DeadLetter, Reason, Refused
from master_dataset.parsing.event import Event
from master_dataset.parsing.masking import hidden
from master_dataset.parsing.parse import SCHEMA_HEADER, TermsOf, parse
from master_dataset.sources import registered_sources

REPLAY_HEADER = "replay_of"
MASKED = (
    "was masked before it was kept, so these bytes are no record any more: set the field anew, or send a whole record"
)
TAKEN = (
    "has the identity of a record that was received first and has another content; the first one counts, so sent again "
    "it would be the same conflict: mend a field of its identity, or leave it"
)
NO_EVENT = "is an alert that a webhook refused, and no event: nothing tells it again, so hand its bytes on by yourself"
NO_SOURCE = "lies in a topic that no source file defines any more"


class Record(NamedTuple):
    """As it is sent: keyed by its store as every event, masked as every event, with where it is from."""

    topic: str
    key: bytes
    value: bytes
    headers: Headers


@dataclass(frozen=True)
class Verdict:
    """Of one letter: `event` and `record`, or `refusal`."""

    place: Place
    event: Event[Any] | None = None
    record: Record | None = None
    refusal: DeadLetter | None = None


def judged(letter: Letter, mend: Mend, terms_of: TermsOf, now_us: int) -> Verdict:
    """What would become of it. `now_us`: microseconds since 1970, as what is sent now is stamped about now."""
    try:
        return _judged(letter, mend, terms_of, now_us)
    except Refused as refused:
        return Verdict(letter.place, refusal=refused.letter())


def _judged(letter: Letter, mend: Mend, terms_of: TermsOf, now_us: int) -> Verdict:
    if letter.reason == Reason.ALERT_DELIVERY_REJECTED:
        raise Refused(Reason.ALERT_DELIVERY_REJECTED, NO_EVENT)
    source = registered_sources().get(letter.place.topic)
    if source is None:
        raise Refused(Reason.UNKNOWN_SCHEMA, NO_SOURCE)
    if letter.reason == Reason.RAW_MAC_ADDRESS and not mend.is_anything:
        raise Refused(Reason.RAW_MAC_ADDRESS, MASKED, letter.field)
    value, headers = mend.applied(letter.value), _headers(letter, mend)
    event = parse(source, value, terms_of, received_us=now_us, headers=headers)
    if isinstance(event, DeadLetter):
        return Verdict(letter.place, refusal=event)
    if letter.reason == Reason.CONFLICTING_DUPLICATE:
        before = parse(source, letter.value, terms_of)
        if isinstance(before, Event) and before.identity == event.identity:
            raise Refused(Reason.CONFLICTING_DUPLICATE, TAKEN)
    sent = [*headers, (REPLAY_HEADER, letter.place.id.encode())]
    record = Record(source.topic, event.store.encode(), hidden(source, value or b""), sent)
    return Verdict(letter.place, event, record)


def _headers(letter: Letter, mend: Mend) -> Headers:
    """Its own ones, but of another replay. Who writes the whole body anew says what it is: a record of this topic."""
    left_out = {REPLAY_HEADER} | ({SCHEMA_HEADER} if mend.body is not None else set())
    return [each for each in letter.headers if each[0] not in left_out]
