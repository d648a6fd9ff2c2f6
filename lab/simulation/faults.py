"""Faults: sensors that are off, late or have a wrong clock, duplicates, conflicts and invalid records.

Invalid records follow from the fields of a source, one for each reason of a dead letter. Missing are those that no line
can be (an empty value, an unknown `schema` header) and records of more than a megabyte.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from random import Random
from typing import Any

import orjson

from lab.simulation.records import (
    DRIFTED,
    DUPLICATES,
    EVENTS,
    LATE,
    SILENCED,
    EncodedRecord,
    SensorRecord,
    SentCounts,
    encode,
)
from lab.simulation.store_day import MINUTE_MS, SECOND_MS, Span, StoreDay, format_instant, to_milliseconds
from lab.simulation.stores import simulated
from master_dataset.fields import Choice, Instant, Whole
from master_dataset.fields.times import WINDOW_MS
from master_dataset.parsing.results import Reason
from master_dataset.source import Source
from master_dataset.sources import source_named
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS

OFF = 0.08
CUT_OFF = 0.08
WRONG_CLOCK = 0.3
"""Shares of the sensors of a day; for the clock, of the days."""
DRIFT_MS = (30 * SECOND_MS, 120 * SECOND_MS)
"""Drift of the clock at the end of the day."""
AFTER_ANOTHER_MS = 20
"""Time between two records that are sent late."""


class SensorFaults:
    """Faults of the sensors of one store and day. They do not depend on which sources are simulated."""

    def __init__(self, day: StoreDay, counts: SentCounts) -> None:
        """`counts`: counts every record."""
        self._day, self._counts = day, counts
        self._spans: dict[str, tuple[Span, Span]] = {}
        self._late: dict[str, int] = {}

    def over(self, records: Iterable[SensorRecord]) -> Iterator[SensorRecord]:
        """Yield what is actually sent, in the order in which it should have been sent."""
        for record in records:
            sender = record.sensor or record.topic
            off, cut_off = self._spans.get(sender) or self._spans.setdefault(sender, self._drawn(sender))
            if record.sensor and off[0] <= record.sent_ms < off[1]:
                self._counts.add(record.topic, SILENCED)
                continue
            shown = self._drifted(record) if record.sensor == self._wrong_clock[0] else record
            is_late = cut_off[0] <= record.sent_ms < cut_off[1]
            self._counts.add(record.topic, EVENTS)
            yield self._later(shown, sender, cut_off[1]) if is_late else shown

    def _drawn(self, sender: str) -> tuple[Span, Span]:
        rng = self._day.rng(f"trouble {sender}")
        spans = []
        for share in (OFF, CUT_OFF):
            begins = rng.randrange(self._day.begins, self._day.ends, MINUTE_MS)
            spans.append((begins, begins + (rng.random() < share) * rng.randint(15, 120) * MINUTE_MS))
        return spans[0], spans[1]

    def _later(self, record: SensorRecord, sender: str, again_ms: int) -> SensorRecord:
        """Send it once the sensor can send again, after all that waited before it."""
        self._late[sender] = self._late.get(sender, again_ms) + AFTER_ANOTHER_MS
        self._counts.add(record.topic, LATE)
        return record._replace(sent_ms=self._late[sender])

    @cached_property
    def _wrong_clock(self) -> tuple[str, int]:
        """A router and the drift of its clock. No sensor that counts intervals: they would leave their window."""
        rng = self._day.rng("clock")
        routers = [each.id for each in simulated(self._day.store, WIFI_SIGHTINGS.topic)]
        if not routers or rng.random() >= WRONG_CLOCK:
            return "-", 0
        return rng.choice(routers), rng.choice((-1, 1)) * rng.randint(*DRIFT_MS)

    def _drifted(self, record: SensorRecord) -> SensorRecord:
        if record.topic != WIFI_SIGHTINGS.topic:
            return record
        at = to_milliseconds(datetime.fromisoformat(record.body["happened_at"]))
        shown = at + self._wrong_clock[1] * (at - self._day.begins) // (self._day.ends - self._day.begins)
        self._counts.add(record.topic, DRIFTED)
        return record._replace(body={**record.body, "happened_at": format_instant(shown)})


Body = dict[str, Any]
MakeInvalid = Callable[[Source[Any], Body], bytes | None]
TOO_LONG = timedelta(hours=20)
"""Longer than any wait, dwell time or shift may be."""
FAR_AHEAD = "2199-01-01T00:00:00Z"
"""In the future whenever it is received."""
ADDRESS = "02:00:5e:10:20:30"
"""An invented address: its local bit is set."""


def _field(source: Source[Any], kind: type, body: Body) -> str | None:
    return next((name for name, field in source.fields.items() if isinstance(field, kind) and name in body), None)


def _with(body: Body, name: str | None, value: object) -> bytes | None:
    return None if name is None else orjson.dumps({**body, name: value})


def _out_of_range(source: Source[Any], body: Body) -> bytes | None:
    name = _field(source, Whole, body)
    field = source.fields[name] if name else None
    return _with(body, name, field.most + 1) if isinstance(field, Whole) else None


def _crossing(_: Source[Any], body: Body) -> bytes | None:
    if "interval_ms" not in body:
        return None
    late = datetime.fromisoformat(body["happened_at"]) + timedelta(seconds=1)
    return orjson.dumps({**body, "happened_at": late.isoformat(), "interval_ms": WINDOW_MS})


def _started(source: Source[Any], body: Body, before: timedelta) -> bytes | None:
    """Move every start so long before the end."""
    starts = [name for name, each in source.fields.items() if isinstance(each, Instant) and name in body]
    starts.remove("happened_at")
    started = (datetime.fromisoformat(body["happened_at"]) - before).isoformat()
    return orjson.dumps({**body, **dict.fromkeys(starts, started)}) if starts else None


def _ahead(source: Source[Any], body: Body) -> bytes | None:
    instants = [name for name, each in source.fields.items() if isinstance(each, Instant) and name in body]
    return orjson.dumps({**body, **dict.fromkeys(instants, FAR_AHEAD)})


def _and(body: Body, more: bytes) -> bytes:
    return orjson.dumps(body)[:-1] + b"," + more + b"}"


INVALID_RECORDS: Mapping[Reason, MakeInvalid] = {
    Reason.NOT_JSON: lambda _, body: orjson.dumps(body)[:-2],
    Reason.NOT_UTF8: lambda _, body: _and(body, b'"note":"\xff"'),
    Reason.TOO_DEEP: lambda _, body: _and(body, b'"note":' + b"[" * 40 + b"]" * 40),
    Reason.DUPLICATE_JSON_KEY: lambda _, body: _and(body, b'"operation_id":1'),
    Reason.MISSING_FIELD: lambda _, body: orjson.dumps({k: v for k, v in body.items() if k != "happened_at"}),
    Reason.WRONG_TYPE: lambda _, body: _with(body, "operation_id", []),
    Reason.BAD_NUMBER: lambda source, body: _with(body, _field(source, Whole, body), 1.5),
    Reason.BAD_TIME: lambda _, body: _with(body, "happened_at", body["happened_at"].rstrip("Z")),
    Reason.BAD_IDENTITY: lambda _, body: _with(body, "operation_id", ""),
    Reason.OUT_OF_RANGE: _out_of_range,
    Reason.UNKNOWN_VALUE: lambda source, body: _with(body, _field(source, Choice, body), "sim-nonsense"),
    Reason.FROM_THE_FUTURE: _ahead,
    Reason.INTERVAL_CROSSES_WINDOW: _crossing,
    Reason.NEGATIVE_DURATION: lambda source, body: _started(source, body, -timedelta(hours=1)),
    Reason.DURATION_TOO_LONG: lambda source, body: _started(source, body, TOO_LONG),
    Reason.RAW_MAC_ADDRESS: lambda _, body: _with(body, "device" if "device" in body else None, ADDRESS),
}
"""Functions that make a record invalid; None: this record cannot be invalid in this way."""


REPEATED = 0.005
"""Share of the records."""
BROKEN = 0.25
"""Share of the reasons that occur in a source on a day."""
CONFLICTING = 0.5
"""Share of the sources of a day that send one conflicting duplicate."""
OTHERWISE: dict[str, Any] = {"interval_ms": -1, "people_in": 1, "signal_dbm": -1, "length_after": 1, "people": 1}
"""Fields to change, and by how much. The first one that a record has is used."""


def extra_records(day: StoreDay, records: Sequence[SensorRecord], counts: SentCounts) -> Iterator[EncodedRecord]:
    """Generate duplicates, invalid and conflicting versions of some records of one source (not empty), sent later."""
    topic = records[0].topic
    rng = day.rng(f"repetitions {topic}")
    for record in records:
        if rng.random() < REPEATED:
            counts.add(topic, DUPLICATES)
            later = record.sent_ms + rng.randint(SECOND_MS, 10 * MINUTE_MS)
            yield EncodedRecord(later, topic, encode(record.body))
    yield from _broken(rng, records, counts)
    if rng.random() < CONFLICTING:
        yield from _conflict(rng.choice(records), counts)


def _broken(rng: Random, records: Sequence[SensorRecord], counts: SentCounts) -> Iterator[EncodedRecord]:
    source = source_named(records[0].topic)
    for reason, broken in INVALID_RECORDS.items():
        record, is_met = rng.choice(records), rng.random() < BROKEN
        value = broken(source, dict(record.body)) if is_met else None
        if value is not None:
            counts.dead_letter(record.topic, reason)
            yield EncodedRecord(record.sent_ms + rng.randint(1, SECOND_MS), record.topic, value)


def _conflict(record: SensorRecord, counts: SentCounts) -> Iterator[EncodedRecord]:
    name = next((name for name in OTHERWISE if name in record.body), None)
    if name is not None:
        counts.dead_letter(record.topic, Reason.CONFLICTING_DUPLICATE)
        value = encode({**record.body, name: record.body[name] + OTHERWISE[name]})
        yield EncodedRecord(record.sent_ms + 5 * SECOND_MS, record.topic, value)
