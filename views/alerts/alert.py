"""An alert: what is told, under an id that follows from what it is about. The same alert has the same id, whoever
derives it and how often.
"""  # noqa: D205 - one sentence needs two lines

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal

import msgspec

TOPIC = "alerts"
"""Where they are told: as many partitions as a source, and the same key."""
RELAY_GROUP = "galatea.alerts"
"""Under which whoever tells them commits how far it has read."""
CORRECTIONS = "alert_corrections"
"""Where a publication asks for records of alerts: the same partitions and key. Only the relay writes `TOPIC`."""
EVERYBODY = "*"
"""Beside the tenants: whoever is shown the alerts of all of them."""
_BITS = 128
_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode
Kind = Literal["raised", "resolved", "retracted"]
Cause = Literal["waited", "late", "again", "definition changed", "miskeyed", "rolled back", "unexplained"]
"""Why what was told differs from the corrected numbers: a cause of the ledger, or `late`: news since it was judged."""


class Window(msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """UTC, ISO 8601 with `Z`. `end`: None while nobody knows when it ends."""

    start: str
    end: str | None = None


class Place(msgspec.Struct, frozen=True):
    """The record with which it became certain."""

    topic: str
    partition: int
    offset: int


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the topic `alerts`.

    `about`: of one that is resolved or retracted, the id that was raised. `value`, `threshold` and `baseline` are in
    the unit that people read. `provisional`: it rests on numbers of no publication yet. `raised_at`: the time of the
    log, not of a clock. `reason`: why it was resolved or retracted. `late`: raised by a publication.

    Of what a publication asks for: its number, the cause, and the value that was shown and the corrected one.
    """

    alert_id: str
    kind: Kind
    about: str | None = None
    rule: str
    version: int
    tenant: str
    store: str
    window: Window
    dimensions: Mapping[str, str]
    value: Decimal | None
    threshold: Decimal
    baseline: Decimal | None = None
    sentence: str
    provisional: bool = True
    late: bool = False
    raised_at: str
    reason: str | None = None
    place: Place | None = None
    publication: int | None = None
    cause: Cause | None = None
    shown: Decimal | None = None
    corrected: Decimal | None = None

    @property
    def raised_ms(self) -> int:
        """`raised_at` in milliseconds since 1970."""
        return instant_ms(self.raised_at)

    @classmethod
    def from_json(cls, line: bytes) -> "Alert":
        """What `to_json` gave. msgspec.DecodeError if it is anything else."""
        return _decode(line)

    def to_json(self) -> bytes:
        """One line, the same for the same alert."""
        return _encode(self)


def raised_id(rule: str, version: int, shop: tuple[str, str], window: Window, dimensions: Mapping[str, str]) -> str:
    """The id of an alert. `shop`: tenant and store."""
    said = [rule, version, *shop, [window.start, window.end], dict(dimensions)]
    return _digest(said)


def following_id(alert_id: str, kind: Kind) -> str:
    """The id of the record that takes an alert back, or says that it is over."""
    return _digest([alert_id, kind])


def written(at_ms: int) -> str:
    """An instant in UTC with `Z`; milliseconds only where there are some."""
    at = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{at_ms % 1000:03d}Z" if at_ms % 1000 else f"{at}Z"


def instant_ms(text: str) -> int:
    """The inverse of `written`."""
    at = datetime.fromisoformat(text)
    return int(at.timestamp()) * 1000 + at.microsecond // 1000


def _digest(said: object) -> str:
    return hashlib.sha256(_encode(said)).hexdigest()[: _BITS // 4]


_decode = msgspec.json.Decoder(Alert).decode
