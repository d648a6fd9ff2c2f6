"""An alert: what is told, under an id that follows from what it is about. The same alert has the same id, whoever
derives it and how often.

What the log says of each alert by now: whether it stands or was taken back, and by which record.

    raised -> resolved (corrected) or retracted

What was taken back stays so: if it is true after all, another alert is raised, whose id follows from the first one's.
So whoever asks for a record twice asks for the same.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from typing import Literal, NamedTuple

import msgspec

ALERTS_TOPIC = "alerts"
"""Where they are told: as many partitions as a source, and the same key."""
PROCESSOR_GROUP = "galatea.alerts"
"""Under which whoever tells them commits how far it has read."""
CORRECTIONS_TOPIC = "alert_corrections"
"""Where a publication asks for records of alerts: the same partitions and key. Only the relay writes `TOPIC`."""
ALL_TENANTS = "*"
"""Beside the tenants: whoever is shown the alerts of all of them."""
_BITS = 128
_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode
AlertKind = Literal["raised", "resolved", "retracted"]
AlertCause = Literal["waited", "late", "again", "definition changed", "miskeyed", "rolled back", "unexplained"]
"""Why what was told differs from the corrected numbers: a cause of the ledger, or `late`: news since it was judged."""


class Window(msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """UTC, ISO 8601 with `Z`. `end`: None while nobody knows when it ends."""

    start: str
    end: str | None = None


class LogPosition(msgspec.Struct, frozen=True):
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
    kind: AlertKind
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
    place: LogPosition | None = None
    publication: int | None = None
    cause: AlertCause | None = None
    shown: Decimal | None = None
    corrected: Decimal | None = None

    @property
    def raised_ms(self) -> int:
        """`raised_at` in milliseconds since 1970."""
        return parse_instant_ms(self.raised_at)

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


def follow_up_id(alert_id: str, kind: AlertKind) -> str:
    """The id of the record that takes an alert back, or says that it is over."""
    return _digest([alert_id, kind])


def format_instant(at_ms: int) -> str:
    """An instant in UTC with `Z`; milliseconds only where there are some."""
    at = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{at_ms % 1000:03d}Z" if at_ms % 1000 else f"{at}Z"


def parse_instant_ms(text: str) -> int:
    """The inverse of `written`."""
    at = datetime.fromisoformat(text)
    return int(at.timestamp()) * 1000 + at.microsecond // 1000


def _digest(said: object) -> str:
    return hashlib.sha256(_encode(said)).hexdigest()[: _BITS // 4]


_decode = msgspec.json.Decoder(Alert).decode


CORRECTED = "corrected"
"""The reason of a resolved alert that was over because later events said otherwise."""
GRACE_MS = 120_000
"""How long after its end a window is judged, by the relay and by publications: `grace` of `Bounds`."""


class AlertStatus(NamedTuple):
    """Of one alert. `last`: the record that took it back, or else the one that raised it. `is_over`: resolved."""

    raised: Alert
    last: Alert
    is_over: bool = False

    @property
    def is_taken_back(self) -> bool:
        """Whether it was said not to be true."""
        return self.last is not self.raised

    @property
    def is_corrected(self) -> bool:
        """Whether the relay took it back, as later events said otherwise. It does not tell the same window again."""
        return self.last.reason == CORRECTED and self.last.publication is None

    @property
    def successor(self) -> str:
        """Of one that was taken back: the id under which it is raised again if it is true after all."""
        return follow_up_id(self.raised.alert_id, "raised")


def alert_statuses(log: Iterable[Alert], asked: Iterable[Alert] = ()) -> Mapping[str, AlertStatus]:
    """By the id under which each was raised. `log`: in order, of all there is.

    What follows an alert counts also where it is read first: each is about an id.

    `asked`: what publications asked for, in order; what the log has not yet of it will come behind all that it has.
    """
    found: dict[str, AlertStatus] = {}
    early: dict[str, list[Alert]] = {}
    seen: set[str] = set()
    for record in chain(log, asked):
        if record.alert_id in seen:
            continue
        seen.add(record.alert_id)
        if record.kind == "raised":
            standing = AlertStatus(record, record)
            for follower in early.pop(record.alert_id, ()):
                standing = _followed(standing, follower)
            found[record.alert_id] = standing
        elif (about := found.get(record.about or "")) is not None:
            found[about.raised.alert_id] = _followed(about, record)
        else:
            early.setdefault(record.about or "", []).append(record)
    return found


def _followed(about: AlertStatus, record: Alert) -> AlertStatus:
    last = record if _takes_back(record) and not about.is_taken_back else about.last
    return about._replace(last=last, is_over=about.is_over or record.kind == "resolved")


def is_confirmed(standing: AlertStatus, cut_ms: int) -> bool:
    """Whether the publication with that cut has looked at it and left it as it is, standing or taken back before.

    Nothing is sent then. Silences and levels have no end, and are never confirmed.
    """
    end = standing.raised.window.end
    if end is None:
        return False
    rests_on_speed = standing.last.publication is None and standing.last.raised_ms >= cut_ms
    return parse_instant_ms(end) + GRACE_MS <= cut_ms and not rests_on_speed


def is_provisional(standing: AlertStatus, cut_ms: int) -> bool:
    """Whether no publication has said it, or confirmed it yet. `cut_ms`: of the last one that looked at alerts."""
    return standing.last.provisional and not is_confirmed(standing, cut_ms)


def _takes_back(record: Alert) -> bool:
    return record.kind == "retracted" or record.reason == CORRECTED
