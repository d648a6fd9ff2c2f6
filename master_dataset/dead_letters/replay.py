"""Send dead letters to their topics again, unless they would become dead letters a second time.

Each one is parsed first, as every layer would parse it. What is sent is recorded before and after. A replay can be
repeated at any time, because an event that arrives twice counts once. A dead letter becomes at most one event: if an
earlier patch has made it an event that counts or may count, patching it into a different one is refused.
"""

import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import structlog
from confluent_kafka import KafkaError, KafkaException, Producer

from master_dataset.dead_letters.dead_letter import DeadLetterSummary, Headers, StoredDeadLetter
from master_dataset.dead_letters.deliveries import ArchivedEvents, EventKey, first_of
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.replay_history import (
    Replay,
    ReplayOutcome,
    ReplayTable,
    SendStatus,
    replay_results,
)
from master_dataset.dead_letters.table import DeadLetterTable
from master_dataset.kafka.client_errors import ClientErrors, explained
from master_dataset.kafka.client_settings import producer_settings
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.producer import DeliveryStatus, delivery_of, delivery_status
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.masking import mask_value
from master_dataset.parsing.parse import SCHEMA_HEADER, parse
from master_dataset.parsing.results import UNIX_EPOCH, DeadLetter, Event, InvalidRecordError, Reason
from master_dataset.registry.terms_history import TermsOf
from master_dataset.sources import registered_sources
from master_dataset.tracing import TRACEPARENT

PORTION = 100
"""Dead letters that are read, checked and sent at once: with their bytes they take 100 MB at most."""
REPLAY_HEADER = "replay_of"
_MICROSECOND = datetime.resolution
_MADE_NO_EVENT = frozenset({ReplayOutcome.DEAD_LETTER, ReplayOutcome.CONFLICT})

# Why a dead letter is not sent; each completes a sentence that begins with the record.
MASKED = (
    "was masked before it was stored, so its bytes are no longer a valid record: set the masked field, or send a whole "
    "record"
)
TAKEN = (
    "has the same identity as an earlier record with different content. The first one counts, so a replay would be the "
    "same conflict: change a field of its identity, or leave it"
)
SENT_BEFORE = (
    "has already been replayed with a different patch, and that event counts or may count. A second one would count it "
    "twice. If the outcome of the first is `unknown`, repeat that replay"
)
BEGUN_AT_ONCE = (
    "is being replayed with a different patch at the same time, so this one was not sent. See what became of the other "
    "one, and repeat this one if it made no event"
)
NO_EVENT = "is an alert that a webhook rejected, not an event. It is not delivered again, so forward its bytes yourself"
NOT_OURS = "was written into a topic of alerts by another program. It is no event, and there is nothing to replay"
_NO_EVENTS: Mapping[str, str] = {
    Reason.ALERT_DELIVERY_REJECTED: NO_EVENT,
    Reason.ALERT_NOT_SIGNED: NOT_OURS,
    Reason.ALERT_NOT_VALID: NOT_OURS,
}
NO_SOURCE = "is in a topic that no source defines any more"

log = structlog.get_logger()

Step = Callable[[int, int, str], None]
"""Called with how many are done, of how many, and what is being done."""


@dataclass(frozen=True)
class ReplayRequest:
    """`by`: who requests it.

    A dry run sends nothing. `summaries`: of the dead letters, if known, to find them faster.
    """

    positions: Sequence[RecordPosition]
    patch: Patch
    by: str
    dry_run: bool
    summaries: Sequence[DeadLetterSummary] = ()


class ReplayStatus(StrEnum):
    """What a replay did with one dead letter.

    EVENT: a dry run would send it. DUPLICATE: an equal event is archived, so nothing was sent. REFUSED: it would be a
    dead letter again. UNKNOWN: the broker did not confirm it in time; it may be sent again.
    """

    EVENT = "event"
    SENT = "sent"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class DeadLetterResult:
    """The result for one dead letter.

    `to`: where it was sent. `of`: the archived event with its identity. `store`: whose event it would be.
    `happened_at`: of that event. `rejection`: why it was refused. Each is None where it does not apply.
    """

    position: RecordPosition
    outcome: ReplayStatus
    to: RecordPosition | None = None
    of: RecordPosition | None = None
    store: str | None = None
    rejection: DeadLetter | None = None
    happened_at: datetime | None = None

    def shown(self) -> dict[str, object]:
        """As the command prints it in JSON."""
        why = self.rejection
        return {
            "id": self.position.id,
            "outcome": self.outcome.value,
            "sent_to": self.to.id if self.to else None,
            "duplicate_of": self.of.id if self.of else None,
            "store": self.store,
            "reason": why.reason.value if why else None,
            "field": why.field if why else None,
            "sentence": why.sentence if why else None,
        }


class ReplayRecord(NamedTuple):
    """The record that is sent: keyed by its store and masked as every event, with the id of the dead letter."""

    topic: str
    key: bytes
    value: bytes
    headers: Headers


class SendReport(NamedTuple):
    """`to`: the position of the record; None unless it was acknowledged."""

    status: DeliveryStatus
    to: RecordPosition | None = None


class Sender(Protocol):
    """Sends records to the broker."""

    def check_topics(self, topics: Collection[str]) -> None:
        """BrokerUnavailableError if the broker does not respond or lacks one of these topics."""

    def send(self, records: Sequence[ReplayRecord]) -> Sequence[SendReport]:
        """Send them in order. Returns a report for each; never raises for one of them."""


@dataclass(frozen=True)
class Replayer:
    """Replays of one deployment. `now`: the time by which events are from the future, as Kafka will stamp them."""

    dead_letters: DeadLetterTable
    replays: ReplayTable
    events: ArchivedEvents
    sender: Sender
    now: Callable[[], datetime]

    def run(self, request: ReplayRequest, terms_of: TermsOf, step: Step) -> list[DeadLetterResult]:
        """Replay dead letters, in portions.

        Args:
            request: Which ones, and how.
            terms_of: How the records of a store are parsed.
            step: Called with the progress.

        Returns:
            A result for each dead letter, in the order of receipt within a portion.

        Raises:
            UnknownNameError: A dead letter does not exist; nothing of its portion was sent.
            BrokerUnavailableError: Nothing was sent.
        """
        run, positions = secrets.token_hex(8), list(dict.fromkeys(request.positions))
        summaries = {each.position: each for each in request.summaries}
        doing = "judged" if request.dry_run else "replayed"
        if not request.dry_run:  # positions in other topics are refused one by one
            self.sender.check_topics({position.topic for position in positions} & set(registered_sources()))
        results: list[DeadLetterResult] = []
        for start in range(0, len(positions), PORTION):
            step(start, len(positions), doing)
            portion = positions[start : start + PORTION]
            known = [summaries[position] for position in portion if position in summaries]
            dead_letters = self.dead_letters.fetch(portion, known if len(known) == len(portion) else ())
            now_us = (self.now() - UNIX_EPOCH) // _MICROSECOND
            checks = [check_replay(each, request.patch, terms_of, now_us) for each in dead_letters]
            expected = self._compare_with_archive(checks)
            results += expected if request.dry_run else self._send(checks, expected, run, request)
        step(len(positions), len(positions), doing)
        return results

    def _compare_with_archive(self, checks: Sequence["ReplayCheck"]) -> list[DeadLetterResult]:
        """What each would become, given the events that are archived and the replays before."""
        deliveries = self.events.deliveries({each.key for each in checks if each.key is not None})
        competing = self._competing_replays(checks)
        results = []
        for check in checks:
            if check.event is None or check.key is None:
                results.append(DeadLetterResult(check.position, ReplayStatus.REFUSED, rejection=check.rejection))
                continue
            event = check.event
            result = DeadLetterResult(
                check.position, ReplayStatus.EVENT, store=event.store, happened_at=event.happened_at
            )
            same = [each for each in deliveries[check.key] if each.identity == check.event.identity]
            if same and (first := first_of(same)).content == check.event.payload_hash:
                result = replace(result, outcome=ReplayStatus.DUPLICATE, of=first.position)
            elif same:
                result = replace(_refused(result, TAKEN), of=first_of(same).position)
            elif earlier := competing.get(check.position):
                result = replace(_refused(result, SENT_BEFORE), of=earlier.to)
            results.append(result)
        return results

    def _competing_replays(self, checks: Sequence["ReplayCheck"]) -> Mapping[RecordPosition, Replay]:
        """By dead letter, an earlier replay of it as another event, which counts or may count."""
        hashes = {each.position: each.event.identity_hash for each in checks if each.event is not None}
        earlier = [
            replay
            for position, own in self.replays.of(hashes.keys()).items()
            for replay in own
            if replay.identity_hash != hashes[position]
        ]
        found = replay_results(earlier, self.dead_letters, self.events) if earlier else {}
        return {replay.position: replay for replay, end in found.items() if end.outcome not in _MADE_NO_EVENT}

    def _send(
        self, checks: Sequence["ReplayCheck"], expected: Sequence[DeadLetterResult], run: str, request: ReplayRequest
    ) -> list[DeadLetterResult]:
        begun: list[Replay] = []
        begun_checks: list[ReplayCheck] = []
        for check, result in zip(checks, expected, strict=True):
            if result.outcome is ReplayStatus.EVENT and check.key is not None and check.record is not None:
                begun.append(
                    Replay(
                        position=check.position,
                        run=run,
                        at=self.now(),
                        by=request.by,
                        mended=request.patch.description,
                        sending=SendStatus.BEGUN,
                        to=None,
                        day=check.key.day,
                        identity_hash=check.key.identity_hash,
                    )
                )
                begun_checks.append(check)
        if not begun:
            return list(expected)
        self.replays.append(begun)  # first, so that nothing that was sent is ever forgotten
        competing = self._competing_replays(begun_checks)  # again: another process may have begun since the first look
        records = [each.record for each in begun_checks if each.record is not None and each.position not in competing]
        sending = [each for each in begun if each.position not in competing]
        reports = dict(zip((each.position for each in sending), self.sender.send(records), strict=True))
        withdrawn = [replace(each, sending=SendStatus.WITHDRAWN) for each in begun if each.position in competing]
        self.replays.append([*withdrawn, *(_ended(each, reports[each.position]) for each in sending)])
        sent = sum(each.to is not None for each in reports.values())
        log.info("dead_letters.replayed", run=run, by=request.by, sent=sent, withdrawn=len(withdrawn))
        results = [_refused(each, BEGUN_AT_ONCE) if each.position in competing else each for each in expected]
        return [_sent(each, reports[each.position]) if each.position in reports else each for each in results]


def _refused(result: DeadLetterResult, why: str) -> DeadLetterResult:
    rejection = InvalidRecordError(Reason.CONFLICTING_DUPLICATE, why).dead_letter()
    return replace(result, outcome=ReplayStatus.REFUSED, rejection=rejection)


def _ended(replay: Replay, report: SendReport) -> Replay:
    if report.status is DeliveryStatus.TOO_LARGE:
        return replace(replay, sending=SendStatus.REFUSED)
    return replace(replay, sending=SendStatus.UNKNOWN if report.to is None else SendStatus.SENT, to=report.to)


def _sent(result: DeadLetterResult, report: SendReport) -> DeadLetterResult:
    if report.status is DeliveryStatus.TOO_LARGE:
        rejection = DeadLetter(Reason.TOO_LARGE, "", "The record is larger than the broker accepts.")
        return replace(result, outcome=ReplayStatus.REFUSED, rejection=rejection)
    return replace(result, outcome=ReplayStatus.UNKNOWN if report.to is None else ReplayStatus.SENT, to=report.to)


@dataclass(frozen=True)
class ReplayCheck:
    """What one dead letter would become: `event` and `record`, or `rejection`."""

    position: RecordPosition
    event: Event[Any] | None = None
    record: ReplayRecord | None = None
    rejection: DeadLetter | None = None

    @property
    def key(self) -> EventKey | None:
        """Where to look for deliveries of its event; None if it would not be an event."""
        event = self.event
        return None if event is None else EventKey(event.topic, event.day, event.identity_hash)


def check_replay(dead_letter: StoredDeadLetter, patch: Patch, terms_of: TermsOf, now_us: int) -> ReplayCheck:
    """Parse a dead letter as if it were sent again. Pure; does not look for its identity in the archive.

    Args:
        dead_letter: The record with its bytes.
        patch: What to change in it.
        terms_of: How the records of a store are parsed.
        now_us: About when Kafka would stamp it, microseconds since 1970.
    """
    try:
        return _check(dead_letter, patch, terms_of, now_us)
    except InvalidRecordError as error:
        return ReplayCheck(dead_letter.position, rejection=error.dead_letter())


def _check(dead_letter: StoredDeadLetter, patch: Patch, terms_of: TermsOf, now_us: int) -> ReplayCheck:
    if (why := _NO_EVENTS.get(dead_letter.reason)) is not None:
        raise InvalidRecordError(Reason(dead_letter.reason), why)
    source = registered_sources().get(dead_letter.position.topic)
    if source is None:
        raise InvalidRecordError(Reason.UNKNOWN_SCHEMA, NO_SOURCE)
    if dead_letter.reason == Reason.RAW_MAC_ADDRESS and not patch.changes_anything:
        raise InvalidRecordError(Reason.RAW_MAC_ADDRESS, MASKED, dead_letter.field)
    value = patch.apply(dead_letter.value)
    # A new body is a record of this topic, whatever the old header `schema` said.
    # The trace of the old record has ended: what sends it now belongs to another one.
    left_out = {REPLAY_HEADER, TRACEPARENT} | ({SCHEMA_HEADER} if patch.body is not None else set())
    headers = [each for each in dead_letter.headers if each[0] not in left_out]
    event = parse(source, value, terms_of, received_us=now_us, headers=headers)
    if isinstance(event, DeadLetter):
        return ReplayCheck(dead_letter.position, rejection=event)
    if dead_letter.reason == Reason.CONFLICTING_DUPLICATE:
        before = parse(source, dead_letter.value, terms_of)
        if isinstance(before, Event) and before.identity == event.identity:
            raise InvalidRecordError(Reason.CONFLICTING_DUPLICATE, TAKEN)
    sent = [*headers, (REPLAY_HEADER, dead_letter.position.id.encode())]
    record = ReplayRecord(source.topic, event.store.encode(), mask_value(source, value or b""), sent)
    return ReplayCheck(dead_letter.position, event, record)


METADATA_SECONDS = 10.0
GIVE_UP_SECONDS = 10.0
ROOM_SECONDS = 0.1
LEAVE_SECONDS = 1.0
"""How long a report may come after the driver has given up."""


class ReplaySender:
    """A `Sender` that makes a producer for each call, so that none is idle between replays."""

    def __init__(self, kafka: KafkaConnection, connect: Callable[[dict[str, Any]], Any] = Producer) -> None:
        """`connect` makes the producer from settings of librdkafka."""
        self._kafka, self._connect = kafka, connect
        self._settings = producer_settings(kafka, "galatea-replay", GIVE_UP_SECONDS)

    def check_topics(self, topics: Collection[str]) -> None:
        """BrokerUnavailableError if the broker does not respond or lacks one of these topics: then nothing is sent."""
        errors = ClientErrors(self._kafka)
        producer = errors.connect(self._connect, self._settings)
        try:
            known = producer.list_topics(timeout=METADATA_SECONDS).topics
        except KafkaException as error:
            producer.poll(0)
            raise errors.translated(error, "send anything") from error
        for topic in topics:  # topics that this user may not see are missing, too
            missing = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
            if (found := missing if topic not in known else known[topic].error) is not None:
                raise explained(found, self._kafka, f"send anything to the topic `{topic}`")

    def send(self, records: Sequence[ReplayRecord]) -> Sequence[SendReport]:
        """Send them in order, and wait until each is acknowledged or given up."""
        reports = [SendReport(DeliveryStatus.UNCONFIRMED)] * len(records)
        producer = self._connect(self._settings)

        def reporter(index: int) -> Callable[[Any, Any], None]:
            def report(error: Any, message: Any) -> None:  # noqa: ANN401 - confluent_kafka ships no types
                found = delivery_of(error, message)
                is_there = found.status is DeliveryStatus.ACKNOWLEDGED
                to = RecordPosition(message.topic(), message.partition(), message.offset()) if is_there else None
                reports[index] = SendReport(found.status, to)

            return report

        deadline = time.monotonic() + GIVE_UP_SECONDS
        for index, record in enumerate(records):
            try:
                if not _produce(producer, record, reporter(index), deadline):
                    break  # the rest was not sent, but also counts as unconfirmed: both are safe to send again
            except KafkaException as error:
                reports[index] = SendReport(delivery_status(error.args[0]))
        producer.flush(GIVE_UP_SECONDS + LEAVE_SECONDS)
        return reports


def _produce(producer: Any, record: ReplayRecord, report: Callable[[Any, Any], None], deadline: float) -> bool:  # noqa: ANN401 - likewise
    """Queue a record, and wait while the queue is full. Returns False after the deadline."""
    while True:
        try:
            producer.produce(record.topic, record.value, record.key, headers=list(record.headers), on_delivery=report)
        except BufferError:
            if time.monotonic() > deadline:
                return False
            producer.poll(ROOM_SECONDS)
        else:
            return True
