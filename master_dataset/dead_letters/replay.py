"""What a dead letter would become if it were sent again: an event, or still none. Pure: the parser of every layer.

Whether its identity is there already is no part of it, as that depends on more than the record.

What became of one dead letter that was to be sent again.

Brings records back to their topics: acknowledged by every replica one by one, and where each of them lies then.

Sends dead letters to their topics again: each judged first, each remembered, and never one that would come back.

Safe to repeat at any time: an event has its identity, so what arrives twice counts once. And a letter becomes one event
at most: mended into another one while the first counts, or may count, it is refused.
"""

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import structlog
from confluent_kafka import KafkaException, Producer

from master_dataset.dead_letters.dead_letter import DeadLetterSummary, Headers, StoredDeadLetter
from master_dataset.dead_letters.deliveries import EventKey, first_of
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.replay_history import Events, Replay, ReplayOutcome, SendStatus, replay_results
from master_dataset.dead_letters.replay_history import Letters as Headings
from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.client_settings import producer_settings
from master_dataset.kafka.producer import DeliveryStatus, delivery_status
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.masking import mask_value
from master_dataset.parsing.parse import SCHEMA_HEADER, TermsOf, parse
from master_dataset.parsing.results import EPOCH, DeadLetter, Event, InvalidRecordError, Reason
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


class ReplayRecord(NamedTuple):
    """As it is sent: keyed by its store as every event, masked as every event, with where it is from."""

    topic: str
    key: bytes
    value: bytes
    headers: Headers


@dataclass(frozen=True)
class ReplayCheck:
    """Of one letter: `event` and `record`, or `refusal`."""

    place: RecordPosition
    event: Event[Any] | None = None
    record: ReplayRecord | None = None
    refusal: DeadLetter | None = None


def check_replay(letter: StoredDeadLetter, mend: Patch, terms_of: TermsOf, now_us: int) -> ReplayCheck:
    """What would become of it. `now_us`: microseconds since 1970, as what is sent now is stamped about now."""
    try:
        return _judged(letter, mend, terms_of, now_us)
    except InvalidRecordError as refused:
        return ReplayCheck(letter.place, refusal=refused.letter())


def _judged(letter: StoredDeadLetter, mend: Patch, terms_of: TermsOf, now_us: int) -> ReplayCheck:
    if letter.reason == Reason.ALERT_DELIVERY_REJECTED:
        raise InvalidRecordError(Reason.ALERT_DELIVERY_REJECTED, NO_EVENT)
    source = registered_sources().get(letter.place.topic)
    if source is None:
        raise InvalidRecordError(Reason.UNKNOWN_SCHEMA, NO_SOURCE)
    if letter.reason == Reason.RAW_MAC_ADDRESS and not mend.is_anything:
        raise InvalidRecordError(Reason.RAW_MAC_ADDRESS, MASKED, letter.field)
    value, headers = mend.applied(letter.value), _headers(letter, mend)
    event = parse(source, value, terms_of, received_us=now_us, headers=headers)
    if isinstance(event, DeadLetter):
        return ReplayCheck(letter.place, refusal=event)
    if letter.reason == Reason.CONFLICTING_DUPLICATE:
        before = parse(source, letter.value, terms_of)
        if isinstance(before, Event) and before.identity == event.identity:
            raise InvalidRecordError(Reason.CONFLICTING_DUPLICATE, TAKEN)
    sent = [*headers, (REPLAY_HEADER, letter.place.id.encode())]
    record = ReplayRecord(source.topic, event.store.encode(), mask_value(source, value or b""), sent)
    return ReplayCheck(letter.place, event, record)


def _headers(letter: StoredDeadLetter, mend: Patch) -> Headers:
    """Its own ones, but of another replay. Who writes the whole body anew says what it is: a record of this topic."""
    left_out = {REPLAY_HEADER} | ({SCHEMA_HEADER} if mend.body is not None else set())
    return [each for each in letter.headers if each[0] not in left_out]


class ReplayStatus(StrEnum):
    """EVENT, of a dry run: it would be sent. DUPLICATE: an event that says the same is kept, so nothing is sent.

    UNKNOWN: the broker did not confirm it in time; it may be sent again. REFUSED: it would be a dead letter again.
    """

    EVENT = "event"
    SENT = "sent"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class DeadLetterResult:
    """Of one letter. `to`: where it was sent. `of`: the event that is there. `store`: whose event it would be."""

    place: RecordPosition
    outcome: ReplayStatus
    to: RecordPosition | None = None
    of: RecordPosition | None = None
    store: str | None = None
    refusal: DeadLetter | None = None

    def shown(self) -> dict[str, object]:
        """In the words of the interface."""
        why = self.refusal
        return {
            "id": self.place.id,
            "outcome": self.outcome.value,
            "sent_to": self.to.id if self.to else None,
            "duplicate_of": self.of.id if self.of else None,
            "store": self.store,
            "reason": why.reason.value if why else None,
            "field": why.field if why else None,
            "sentence": why.sentence if why else None,
        }


METADATA_SECONDS = 10.0
GIVE_UP_SECONDS = 10.0
ROOM_SECONDS = 0.1
LEAVE_SECONDS = 1.0
"""How long a report may come after the time at which the driver gives up."""


class SendReport(NamedTuple):
    """`to`: where the record lies; None unless it was acknowledged."""

    fate: DeliveryStatus
    to: RecordPosition | None = None


class ReplaySender:
    """One producer for a few records; it ends with its work, so that nothing waits between two replays."""

    def __init__(self, bootstrap: str, connect: Callable[[dict[str, Any]], Any] = Producer) -> None:
        """`connect` makes the producer from settings of librdkafka."""
        self._settings, self._connect = producer_settings(bootstrap, "galatea-replay", GIVE_UP_SECONDS), connect

    def find(self, topics: Collection[str]) -> None:
        """BrokerUnavailableError if the broker does not answer, or lacks one of these topics: then nothing is sent."""
        producer = self._connect(self._settings)
        try:
            known = producer.list_topics(timeout=METADATA_SECONDS).topics
        except KafkaException as error:
            raise BrokerUnavailableError(
                "The broker does not answer; nothing was sent.", do="galatea status"
            ) from error
        for topic in topics:
            if topic not in known or known[topic].error is not None:
                raise BrokerUnavailableError(f"There is no topic `{topic}`; nothing was sent.", do="galatea up")

    def carry(self, records: Sequence[ReplayRecord]) -> Sequence[SendReport]:
        """Send them in this order, and wait until each is acknowledged or given up. Never raises for one of them."""
        found = [SendReport(DeliveryStatus.UNCONFIRMED)] * len(records)
        producer = self._connect(self._settings)

        def hear(place: int) -> Callable[[Any, Any], None]:
            def heard(error: Any, message: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
                to = None if error else RecordPosition(message.topic(), message.partition(), message.offset())
                found[place] = SendReport(delivery_status(error), to)

            return heard

        deadline = time.monotonic() + GIVE_UP_SECONDS
        for place, record in enumerate(records):
            try:
                if not _hand_over(producer, record, hear(place), deadline):
                    break  # the rest was not sent, which is as good as unconfirmed: it may be sent again
            except KafkaException as error:
                found[place] = SendReport(delivery_status(error.args[0]))
        producer.flush(GIVE_UP_SECONDS + LEAVE_SECONDS)
        return found


def _hand_over(producer: Any, record: ReplayRecord, heard: Callable[[Any, Any], None], deadline: float) -> bool:  # noqa: ANN401 - confluent_kafka ships no types
    """Whether the client took it: where it is full, that is waited for. KafkaException if it never will."""
    while True:
        try:
            producer.produce(record.topic, record.value, record.key, headers=list(record.headers), on_delivery=heard)
        except BufferError:
            if time.monotonic() > deadline:
                return False
            producer.poll(ROOM_SECONDS)
        else:
            return True


PORTION = 100
"""So many letters are read, judged and sent at once: with their bytes they take 100 MB at most."""
_MICROSECOND = datetime.resolution
SENT_BEFORE = (
    "was sent again before, mended into another event that counts or may count; a second one would count the same "
    "twice. Where what became of the first is `unknown`, send that again"
)
_FREE = frozenset({ReplayOutcome.DEAD_LETTER, ReplayOutcome.CONFLICT})
"""Ends of a replay that made no event: its letter may become another one."""

log = structlog.get_logger()


class Letters(Headings, Protocol):
    """Dead letters with their bytes."""

    def several(
        self, places: Collection[RecordPosition], near: Sequence[DeadLetterSummary] = ()
    ) -> Sequence[StoredDeadLetter]:
        """In the order of receipt. UnknownNameError if one is none."""


class Replays(Protocol):
    """Where replays are remembered."""

    def append(self, replays: Iterable[Replay]) -> None:
        """Keep them, all or none."""

    def of(self, places: Collection[RecordPosition]) -> Mapping[RecordPosition, Sequence[Replay]]:
        """What was replayed of these letters."""


class Sender(Protocol):
    """The way to the broker."""

    def find(self, topics: Collection[str]) -> None:
        """BrokerUnavailableError if nothing can be sent there."""

    def carry(self, records: Sequence[ReplayRecord]) -> Sequence[SendReport]:
        """What became of each."""


Step = Callable[[int, int, str], None]
"""Told how many are done, of how many, and what is being done."""


@dataclass(frozen=True)
class ReplayRequest:
    """`headings`: of the letters, where they are known. `by`: who asks. A dry run sends nothing."""

    places: Sequence[RecordPosition]
    mend: Patch
    by: str
    dry_run: bool
    headings: Sequence[DeadLetterSummary] = ()


@dataclass(frozen=True)
class Replayer:
    """Of one deployment. `now`: by which events are from the future, as what is sent now is stamped about now."""

    letters: Letters
    replays: Replays
    events: Events
    sender: Sender
    now: Callable[[], datetime]

    def run(self, asked: ReplayRequest, terms_of: TermsOf, step: Step) -> list[DeadLetterResult]:
        """An item for each letter, in portions, each in the order of receipt.

        UnknownNameError, BrokerUnavailableError: nothing of the portion, or of anything, was sent.
        """
        run, places = secrets.token_hex(8), list(dict.fromkeys(asked.places))
        headings = {each.place: each for each in asked.headings}
        doing = "judged" if asked.dry_run else "replayed"
        if not asked.dry_run:  # what lies anywhere else is refused one by one, and sent nowhere
            self.sender.find({place.topic for place in places} & set(registered_sources()))
        found: list[DeadLetterResult] = []
        for start in range(0, len(places), PORTION):
            step(start, len(places), doing)
            some = places[start : start + PORTION]
            known = [headings[place] for place in some if place in headings]
            letters = self.letters.several(some, known if len(known) == len(some) else ())
            now_us = (self.now() - EPOCH) // _MICROSECOND
            verdicts = [check_replay(each, asked.mend, terms_of, now_us) for each in letters]
            items = self._items(verdicts)
            found += items if asked.dry_run else self._sent(verdicts, items, run, asked)
        step(len(places), len(places), doing)
        return found

    def _items(self, verdicts: Sequence[ReplayCheck]) -> list[DeadLetterResult]:
        """What each would become, its identity looked for among what is archived."""
        sought = [_sought(each) for each in verdicts]
        kept = self.events.deliveries({each for each in sought if each is not None})
        others = self._others(verdicts)
        found = []
        for verdict, place in zip(verdicts, sought, strict=True):
            if verdict.event is None or place is None:
                found.append(DeadLetterResult(verdict.place, ReplayStatus.REFUSED, refusal=verdict.refusal))
                continue
            item = DeadLetterResult(verdict.place, ReplayStatus.EVENT, store=verdict.event.store)
            same = [each for each in kept[place] if each.identity == verdict.event.identity]
            if same and (first := first_of(same)).content == verdict.event.payload_hash:
                item = replace(item, outcome=ReplayStatus.DUPLICATE, of=first.place)
            elif same:
                refusal = InvalidRecordError(Reason.CONFLICTING_DUPLICATE, TAKEN).letter()
                item = replace(item, outcome=ReplayStatus.REFUSED, of=first_of(same).place, refusal=refusal)
            elif other := others.get(verdict.place):
                refusal = InvalidRecordError(Reason.CONFLICTING_DUPLICATE, SENT_BEFORE).letter()
                item = replace(item, outcome=ReplayStatus.REFUSED, of=other.to, refusal=refusal)
            found.append(item)
        return found

    def _others(self, verdicts: Sequence[ReplayCheck]) -> Mapping[RecordPosition, Replay]:
        """By letter, a replay of it as another event than it would be now, which counts or may count."""
        hashes = {each.place: each.event.identity_hash for each in verdicts if each.event is not None}
        earlier = [
            replay
            for place, own in self.replays.of(hashes.keys()).items()
            for replay in own
            if replay.identity_hash != hashes[place]
        ]
        ends = replay_results(earlier, self.letters, self.events) if earlier else {}
        return {replay.place: replay for replay, end in ends.items() if end.outcome not in _FREE}

    def _sent(
        self, verdicts: Sequence[ReplayCheck], items: Sequence[DeadLetterResult], run: str, asked: ReplayRequest
    ) -> list[DeadLetterResult]:
        begun: list[Replay] = []
        records: list[ReplayRecord] = []
        for verdict, item in zip(verdicts, items, strict=True):
            place = _sought(verdict)
            if item.outcome is ReplayStatus.EVENT and place is not None and verdict.record is not None:
                said = (run, self.now(), asked.by, asked.mend.told, SendStatus.BEGUN, None)
                begun.append(Replay(verdict.place, *said, place.day, place.identity_hash))
                records.append(verdict.record)
        if not begun:
            return list(items)
        self.replays.append(begun)
        carried = dict(zip((each.place for each in begun), self.sender.carry(records), strict=True))
        self.replays.append([_ended(each, carried[each.place]) for each in begun])
        log.info(
            "dead_letters.replayed", run=run, by=asked.by, sent=sum(each.to is not None for each in carried.values())
        )
        return [_told(each, carried[each.place]) if each.place in carried else each for each in items]


def _sought(verdict: ReplayCheck) -> EventKey | None:
    event = verdict.event
    return None if event is None else EventKey(event.topic, event.day, event.identity_hash)


def _ended(replay: Replay, carried: SendReport) -> Replay:
    if carried.fate is DeliveryStatus.TOO_LARGE:
        return replace(replay, sending=SendStatus.REFUSED)
    return replace(replay, sending=SendStatus.UNKNOWN if carried.to is None else SendStatus.SENT, to=carried.to)


def _told(item: DeadLetterResult, carried: SendReport) -> DeadLetterResult:
    if carried.fate is DeliveryStatus.TOO_LARGE:
        refusal = DeadLetter(Reason.TOO_LARGE, "", "The record is larger than the broker takes.")
        return replace(item, outcome=ReplayStatus.REFUSED, refusal=refusal)
    return replace(item, outcome=ReplayStatus.UNKNOWN if carried.to is None else ReplayStatus.SENT, to=carried.to)
