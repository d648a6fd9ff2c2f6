"""The ways in which a record can be wrong, each with the reason for which it becomes a dead letter.

They follow from what a source says of its fields. Not among them: what no line can be (an empty value, an unknown
header `schema`), and a record of more than a megabyte. A conflicting duplicate, alone an event, is in `repetition`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson

from master_dataset.fields import Choice, Instant, Whole
from master_dataset.fields.intervals import WINDOW_MS
from master_dataset.parsing.dead_letter import Reason
from master_dataset.source import Source

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
