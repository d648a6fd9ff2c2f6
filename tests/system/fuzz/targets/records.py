"""Records of Kafka: any bytes and any headers become an event, a dead letter or a marker, in each way of reading them.

An input of `parser` is the name of a source, a line feed, and the value of a record. One of `kafka_headers` is JSON:
a source, the value, and a list of headers; bytes are written as Latin-1.
"""

import json
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any, ClassVar, NamedTuple, Self
from unittest.mock import patch

import pyarrow as pa

from master_dataset.dead_letters.dead_letter import StoredDeadLetter
from master_dataset.dead_letters.patch import Patch
from master_dataset.dead_letters.replay import REPLAY_HEADER, check_replay
from master_dataset.kafka.record import RecordPosition
from master_dataset.kafka.trace_contexts import trace_contexts_of
from master_dataset.parsing import rows as rows_module
from master_dataset.parsing.parse import MARKER_HEADER, SCHEMA_HEADER, is_marker, key_of, parse
from master_dataset.parsing.results import Event, Reason
from master_dataset.parsing.rows import DEAD_LETTER, EVENT, MARKER, headers_of, read_singly, rows
from master_dataset.registry.stores import Store
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from master_dataset.tracing import TRACEPARENT, TRACESTATE
from serving_layer.ingest.ingest import EventValidator
from speed_layer.alerts.fold import LogRecord
from speed_layer.alerts.intake import AlertIntake
from tests.support.alert_signatures import MemoryFirstSigned, signatures_of
from tests.support.alert_topic import alert
from tests.support.corpus.case import by_hand
from tests.support.corpus.fuzz import BEGIN, BEGIN_US, HOUR_US, Fuzz, terms_of, terms_until
from tests.system.fuzz.mutations import mutated
from tests.system.fuzz.target import Outcome, PromiseBrokenError, Target, logged_failures
from views.alerts.signatures import SIGNATURE_HEADER

STORES = {"1": Store("1", "UTC", tenant="ours"), "2": Store("2", "Asia/Tokyo", tenant="others")}
ALERTS = "alerts"
BESIDE = 4
_REASONS = {reason.value for reason in Reason}


class _Reading(Target):
    """Reads small batches by columns, too: by default only those of a hundred records are, which takes long."""

    def __enter__(self) -> Self:
        self._by_columns = patch.object(rows_module, "WORTHWHILE", 1)
        self._by_columns.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._by_columns.stop()


class _Beside(NamedTuple):
    """Some records beside that of the input, and what they are one by one."""

    batch: pa.RecordBatch
    rows: pa.RecordBatch


@cache
def _beside(topic: str) -> _Beside:
    source = registered_sources()[topic]
    fuzz = Fuzz(source, "beside", odd=2)
    batch = _with_headers(fuzz.batch(fuzz.values(BESIDE), 1), [None] * BESIDE)
    return _Beside(batch, read_singly(source, batch, terms_until))


def _with_headers(batch: pa.RecordBatch, headers: Sequence[Any]) -> pa.RecordBatch:
    at = batch.schema.get_field_index("headers")
    kind = batch.schema.field(at)
    return batch.set_column(at, kind, pa.array(list(headers), kind.type))


def _record(topic: str, value: bytes | None, headers: Any = None) -> pa.RecordBatch:
    """A batch of one record."""
    beside = _beside(topic).batch.slice(0, 1)
    batch = beside.set_column(1, beside.schema.field(1), pa.array([value], pa.binary()))
    return _with_headers(batch, [headers])


def _read_alike(source: Source[Any], record: pa.RecordBatch) -> dict[str, Any]:
    """What the record is. PromiseBrokenError unless it is the same by columns and alone."""
    beside = _beside(source.topic)
    alone = read_singly(source, record, terms_until)
    (by_columns,) = rows(source, iter([pa.concat_batches([record, beside.batch])]), terms_until)
    row: dict[str, Any] = alone.to_pylist()[0]
    if not by_columns.slice(0, 1).equals(alone):
        raise PromiseBrokenError(f"by columns and alone differ: {by_columns.slice(0, 1).to_pylist()} {row}")
    if not by_columns.slice(1).equals(beside.rows):
        raise PromiseBrokenError("a record changes how others of its batch are read")
    if row["kind"] not in (EVENT, DEAD_LETTER, MARKER):
        raise PromiseBrokenError(f"a record is neither event nor dead letter nor marker: {row['kind']}")
    return row


class Records(_Reading):
    """`parser`: values of records, read one by one, by columns, and as HTTP ingest validates them."""

    name: ClassVar[str] = "parser"
    head_end: ClassVar[bytes] = b"\n"
    words: ClassVar[Sequence[bytes]] = tuple(
        f'"{name}"'.encode() for source in registered_sources().values() for name in source.fields
    )

    def examples(self) -> Sequence[bytes]:
        """Those of the sources, random ones, and the cases that are written by hand."""
        found = [b"pos_transactions\n" + case.value for case in by_hand()]
        for topic, source in registered_sources().items():
            values = [json.dumps(source.example).encode(), *Fuzz(source, "examples", odd=10).values(60)]
            found += [topic.encode() + b"\n" + value for value in values if value is not None]
        return found

    def check(self, value: bytes) -> Outcome:
        """Read it in every way."""
        name, _, body = value.partition(b"\n")
        topic = name.decode("latin-1")
        if topic not in registered_sources():
            topic = [*registered_sources()][len(name) % len(registered_sources())]
        source = registered_sources()[topic]
        row = _read_alike(source, _record(topic, body))
        parsed = parse(source, body, terms_of, received_us=BEGIN_US + 9 * HOUR_US)
        key = key_of(source)(body)
        if isinstance(parsed, Event) and key != parsed.store.encode():
            raise PromiseBrokenError("an event would be sent with another key than that of its store")
        EventValidator(source, STORES, "ours", BEGIN_US + HOUR_US).validate([body])
        if row["reason"] is not None and row["reason"] not in _REASONS:
            raise PromiseBrokenError(f"{row['reason']} is no reason")
        return Outcome(row["reason"] or "", row["sentence"] or topic)


class KafkaHeaders(_Reading):
    """`kafka_headers`: records with any headers, in archive, speed layer and alerts, and as dead letters."""

    name: ClassVar[str] = "kafka_headers"
    READ: ClassVar[Sequence[str]] = (TRACEPARENT, SCHEMA_HEADER, MARKER_HEADER, SIGNATURE_HEADER, REPLAY_HEADER)
    NAMES: ClassVar[Sequence[str]] = (
        *(
            *READ,
            *READ,
            TRACESTATE,
            "",
            "a",
            "Schema",
            "SCHEMA ",
            "\0",
            "\u00e9",
            "x" * 1000,
            "content-type",
            "\u202e",
            "\ufeff",
        ),
    )
    VALUES: ClassVar[Sequence[bytes | None]] = (
        *(None, b"", b"pos_transactions", b"people_counts", b"nothing", b"\xff", b"\0", b"1", b"x" * 70_000, b"null"),
        *(
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            b"00-1-2-01",
            b"00-" + b"0" * 32,
            b"\xed\xa0\x80",
        ),
    )

    def __init__(self) -> None:
        """Signatures are needed from offset 1 on."""
        first_signed = MemoryFirstSigned()
        first_signed.write(ALERTS, 0, 1)
        self._signatures = signatures_of(first_signed)
        self._alert = alert("acme", "1", 1).to_json()

    def examples(self) -> Sequence[bytes]:
        """Every known header with every value, on a valid record and on one that is none."""
        lists = [[(name, value)] for name in self.READ for value in self.VALUES]
        lists += [[], [("a", b"1")] * 3, [("schema", b"pos_transactions"), ("schema", b"nothing")], [("b", b"")] * 2000]
        values = [None, b"", *(json.dumps(source.example).encode() for source in registered_sources().values())]
        topics = [*registered_sources()]
        made = [
            self._written(topics[number % len(topics)], values[number % len(values)], each)
            for number, each in enumerate(lists)
        ]
        signed = [(name, mac) for name, mac in self._signatures.headers(ALERTS, self._alert)]
        return [*made, self._written(ALERTS, self._alert, signed), self._written(ALERTS, self._alert, [])]

    def mutated(self, pool: Sequence[bytes], chance: Random) -> bytes:
        """Headers that are added, removed, repeated and changed, and sometimes another value of the record."""
        topic, value, headers = self._read(chance.choice(pool))
        for _ in range(chance.choice((1, 1, 2, 3))):
            at = chance.randint(0, len(headers))
            match chance.randrange(6):
                case 0:
                    del headers[at : at + 1]
                case 1:
                    headers[at:at] = headers[at : at + 1] * chance.choice((1, 1, 100))
                case 2 | 3:
                    headers.insert(at, (chance.choice(self.NAMES), self._value(chance)))
                case 4 if headers:
                    at = chance.randrange(len(headers))
                    name = mutated(headers[at][0].encode(), [value or b""], chance).decode(errors="replace")
                    headers[at] = name, headers[at][1]
                case _:
                    value = mutated(value or b"{}", [value or b"{}"], chance) if chance.random() < 0.3 else value
        return self._written(topic, value, headers[:5_000])

    def _value(self, chance: Random) -> bytes | None:
        value = chance.choice(self.VALUES)
        return value if value is None or chance.random() < 0.5 else mutated(value, [value], chance)

    def check(self, value: bytes) -> Outcome:
        """Give it to whatever reads headers."""
        topic, body, headers = self._read(value)
        if topic == ALERTS:
            return self._alert_of(body, headers)
        source = registered_sources()[topic]
        record = _record(topic, body, headers)
        row = _read_alike(source, record)
        if (row["kind"] == MARKER) != is_marker(headers):
            raise PromiseBrokenError("a record is a marker by its headers alone")
        if headers_of(record) not in (None, [headers]):
            raise PromiseBrokenError("the headers are not read as they were sent")
        trace_contexts_of(record)
        self._dead_letter(topic, body, headers)
        return Outcome(row["reason"] or "", f"{row['kind']} {row['sentence'] or ''} {sorted({n for n, _ in headers})}")

    def _dead_letter(self, topic: str, body: bytes | None, headers: list[tuple[str, bytes | None]]) -> None:
        """Show it as a dead letter, and check whether it could be replayed."""
        place = RecordPosition(topic, 0, 1)
        for reason in (Reason.NOT_JSON.value, Reason.UNKNOWN_SCHEMA.value):
            letter = StoredDeadLetter(place, BEGIN, reason, "", "", b"1", body, headers, len(body or b""))
            json.dumps(letter.whole(), default=str).encode()
            check_replay(letter, Patch(), terms_of, BEGIN_US + HOUR_US)

    def _alert_of(self, body: bytes | None, headers: list[tuple[str, bytes | None]]) -> Outcome:
        intake = AlertIntake(ALERTS, self._signatures, lambda _: None)
        with logged_failures():  # each record that is not ours is logged as an error
            found = intake.alert(0, LogRecord(2, BEGIN_US // 1000, body, headers))
        intake.store_rejected()
        return Outcome("", "an alert") if found is not None else Outcome("not_ours", f"an alert, {len(headers) > 1}")

    @staticmethod
    def _written(topic: str, value: bytes | None, headers: Sequence[tuple[str, Any]]) -> bytes:
        said = [[name, each.decode("latin-1") if isinstance(each, bytes) else each] for name, each in headers]
        body = None if value is None else value.decode("latin-1")
        return json.dumps({"topic": topic, "value": body, "headers": said}).encode()

    @staticmethod
    def _read(value: bytes) -> tuple[str, bytes | None, list[tuple[str, bytes | None]]]:
        said = json.loads(value)
        headers = [(name, None if each is None else each.encode("latin-1")) for name, each in said["headers"]]
        return said["topic"], None if said["value"] is None else said["value"].encode("latin-1"), headers
