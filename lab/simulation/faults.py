"""Faults."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from random import Random
from typing import Any

import orjson

from lab.simulation.records import DRIFTED, DUPLICATES, EVENTS, LATE, SILENCED, Record, Sendable, Tally, encode
from lab.simulation.shop_day import MINUTE_MS, SECOND_MS, ShopDay, Span, milliseconds, written
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
"""Of the sensors of a day; of the days, for the clock."""
DRIFT_MS = (30 * SECOND_MS, 120 * SECOND_MS)
"""By so much the clock is wrong at the end of the day."""
AFTER_ANOTHER_MS = 20
"""Between two records of a late batch."""


class Trouble:
    """Of one shop and day. Who has it does not depend on which sources are asked for."""

    def __init__(self, day: ShopDay, tally: Tally) -> None:
        """`tally` is told of every record."""
        self._day, self._tally = day, tally
        self._spans: dict[str, tuple[Span, Span]] = {}
        self._late: dict[str, int] = {}

    def over(self, records: Iterable[Record]) -> Iterator[Record]:
        """Give what is sent after all, in the order of the records (by when each should have been sent)."""
        for record in records:
            sender = record.sensor or record.topic
            off, cut_off = self._spans.get(sender) or self._spans.setdefault(sender, self._drawn(sender))
            if record.sensor and off[0] <= record.sent_ms < off[1]:
                self._tally.add(record.topic, SILENCED)
                continue
            shown = self._drifted(record) if record.sensor == self._wrong_clock[0] else record
            is_late = cut_off[0] <= record.sent_ms < cut_off[1]
            self._tally.add(record.topic, EVENTS)
            yield self._later(shown, sender, cut_off[1]) if is_late else shown

    def _drawn(self, sender: str) -> tuple[Span, Span]:
        drawn = self._day.chance(f"trouble {sender}")
        spans = []
        for share in (OFF, CUT_OFF):
            begins = drawn.randrange(self._day.begins, self._day.ends, MINUTE_MS)
            spans.append((begins, begins + (drawn.random() < share) * drawn.randint(15, 120) * MINUTE_MS))
        return spans[0], spans[1]

    def _later(self, record: Record, sender: str, again_ms: int) -> Record:
        """Send it once the sensor can send again: all that waited, one after another."""
        self._late[sender] = self._late.get(sender, again_ms) + AFTER_ANOTHER_MS
        self._tally.add(record.topic, LATE)
        return record._replace(sent_ms=self._late[sender])

    @cached_property
    def _wrong_clock(self) -> tuple[str, int]:
        """A router, and by how much its clock is wrong in the end. What counts intervals would leave its window."""
        drawn = self._day.chance("clock")
        routers = [each.id for each in simulated(self._day.store, WIFI_SIGHTINGS.topic)]
        if not routers or drawn.random() >= WRONG_CLOCK:
            return "-", 0
        return drawn.choice(routers), drawn.choice((-1, 1)) * drawn.randint(*DRIFT_MS)

    def _drifted(self, record: Record) -> Record:
        if record.topic != WIFI_SIGHTINGS.topic:
            return record
        at = milliseconds(datetime.fromisoformat(record.body["happened_at"]))
        shown = at + self._wrong_clock[1] * (at - self._day.begins) // (self._day.ends - self._day.begins)
        self._tally.add(record.topic, DRIFTED)
        return record._replace(body={**record.body, "happened_at": written(shown)})


Body = dict[str, Any]
Break = Callable[[Source[Any], Body], bytes | None]
TOO_LONG = timedelta(hours=20)
"""Longer than any wait, dwell or shift may last."""
FAR_AHEAD = "2199-01-01T00:00:00Z"
"""In the future whenever it is received."""
ADDRESS = "02:00:5e:10:20:30"
"""Nobody's: the bit `made up` is set."""


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


BREAKAGES: Mapping[Reason, Break] = {
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
"""None: a record like this one cannot be wrong in this way."""


REPEATED = 0.005
"""Of the records."""
BROKEN = 0.25
"""Of the ways to be wrong, so many occur in a source on a day."""
CONFLICTING = 0.5
"""Of the sources of a day, so many contradict themselves once."""
OTHERWISE: dict[str, Any] = {"interval_ms": -1, "people_in": 1, "signal_dbm": -1, "length_after": 1, "people": 1}
"""What says something else when it is so much more. The first that a record has is taken."""


def repetitions(day: ShopDay, records: Sequence[Record], tally: Tally) -> Iterator[Sendable]:
    """Repeat, break and contradict some of these records of one source (not empty), later than they are sent."""
    topic = records[0].topic
    drawn = day.chance(f"repetitions {topic}")
    for record in records:
        if drawn.random() < REPEATED:
            tally.add(topic, DUPLICATES)
            later = record.sent_ms + drawn.randint(SECOND_MS, 10 * MINUTE_MS)
            yield Sendable(later, topic, encode(record.body))
    yield from _broken(drawn, records, tally)
    if drawn.random() < CONFLICTING:
        yield from _conflict(drawn.choice(records), tally)


def _broken(drawn: Random, records: Sequence[Record], tally: Tally) -> Iterator[Sendable]:
    source = source_named(records[0].topic)
    for reason, broken in BREAKAGES.items():
        record, is_met = drawn.choice(records), drawn.random() < BROKEN
        value = broken(source, dict(record.body)) if is_met else None
        if value is not None:
            tally.dead_letter(record.topic, reason)
            yield Sendable(record.sent_ms + drawn.randint(1, SECOND_MS), record.topic, value)


def _conflict(record: Record, tally: Tally) -> Iterator[Sendable]:
    name = next((name for name in OTHERWISE if name in record.body), None)
    if name is not None:
        tally.dead_letter(record.topic, Reason.CONFLICTING_DUPLICATE)
        value = encode({**record.body, name: record.body[name] + OTHERWISE[name]})
        yield Sendable(record.sent_ms + 5 * SECOND_MS, record.topic, value)
