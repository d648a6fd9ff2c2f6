"""Alerts: the records of the topic `alerts`, and the status of an alert that follows from them.

The id of an alert follows from what it is about, so it is the same wherever and however often it is derived:

    raised -> resolved, or retracted (the alert was wrong)

A withdrawn alert stays withdrawn. If it turns out to be right after all, another alert is raised, whose id follows from
the first one's.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from typing import Literal, NamedTuple

import msgspec

from master_dataset.registry.tenants import ALL_TENANTS

ALERTS_TOPIC = "alerts"
"""As many partitions as a source, keyed by the store as well. Only the alert processor writes it."""
PROCESSOR_GROUP = "galatea.alerts"
"""The consumer group under which the alert processor commits its positions."""
CORRECTIONS_TOPIC = "alert_corrections"
"""On which publications request records of alerts: the same partitions and key."""
_BITS = 128
_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode
AlertKind = Literal["raised", "resolved", "retracted"]
AlertCause = Literal["waited", "late", "again", "definition changed", "miskeyed", "rolled back", "unexplained"]
"""Why an alert differs from the corrected numbers: a cause of the ledger, or `late`: events that came after it."""


class Window(msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """UTC instants, ISO 8601 with `Z`. `end`: None while it is not known."""

    start: str
    end: str | None = None


class LogPosition(msgspec.Struct, frozen=True):
    """The position of the record that made the alert certain."""

    topic: str
    partition: int
    offset: int


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """A record of the topic `alerts`.

    Attributes:
        alert_id: Of this record.
        about: For a resolved or retracted alert, the id under which it was raised.
        version: Of the rule.
        value: In display units, like `threshold` and `baseline`.
        baseline: The value a week before, for rules that compare.
        provisional: Whether no publication covers the numbers yet.
        late: Whether a publication raised it.
        raised_at: In log time, not by a clock.
        reason: Why it was resolved or retracted.
        publication: The publication that requested the record, as for the fields after it.
        cause: Why the corrected numbers differ.
        shown: The value that was shown before.
        corrected: The value by the publication.
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
        """`raised_at` in ms since 1970."""
        return parse_instant_ms(self.raised_at)

    @classmethod
    def from_json(cls, line: bytes | str) -> "Alert":
        """Parse and check what `to_json` returned; fields that it does not have are ignored.

        An alert that was returned can be stored, listed, compared and sent on as it is: its times can be computed with,
        and its texts, numbers and JSON are within what tables, SQL clients and receivers can hold.

        Raises:
            msgspec.ValidationError: anything else, whatever is wrong with it.
        """
        if len(line) > MAX_RECORD_BYTES:
            raise msgspec.ValidationError(f"Longer than {MAX_RECORD_BYTES:,} bytes")
        try:
            _decode_any(line)  # unlike the decoder of alerts, this one also reads the fields that alerts do not have
            alert = _decode(line)
        except msgspec.ValidationError:
            raise
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise msgspec.ValidationError(str(error)) from error
        _check(alert)
        return alert

    def to_json(self) -> bytes:
        """One line; equal for equal alerts."""
        return _encode(self)


def raised_id(rule: str, version: int, shop: tuple[str, str], window: Window, dimensions: Mapping[str, str]) -> str:
    """The id under which an alert is raised. `shop`: tenant and store."""
    parts = [rule, version, *shop, [window.start, window.end], dict(dimensions)]
    return _digest(parts)


def follow_up_id(alert_id: str, kind: AlertKind) -> str:
    """The id of the record that resolves, retracts or again raises an alert."""
    return _digest([alert_id, kind])


def follow_up(  # noqa: PLR0913 - the fields that differ
    alert: Alert, kind: AlertKind, *, value: Decimal | None, sentence: str, raised_at: str, reason: str
) -> Alert:
    """The record that resolves or retracts a raised alert: about the same rule, store and window."""
    return Alert(
        alert_id=follow_up_id(alert.alert_id, kind),
        kind=kind,
        about=alert.alert_id,
        rule=alert.rule,
        version=alert.version,
        tenant=alert.tenant,
        store=alert.store,
        window=alert.window,
        dimensions=alert.dimensions,
        value=value,
        threshold=alert.threshold,
        sentence=sentence,
        raised_at=raised_at,
        reason=reason,
    )


def format_instant(at_ms: int) -> str:
    """ISO 8601 in UTC with `Z`, with milliseconds only if there are any."""
    at = datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{at_ms % 1000:03d}Z" if at_ms % 1000 else f"{at}Z"


def parse_instant_ms(text: str) -> int:
    """The inverse of `format_instant`."""
    at = datetime.fromisoformat(text)
    return int(at.timestamp()) * 1000 + at.microsecond // 1000


def _digest(parts: object) -> str:
    return hashlib.sha256(_encode(parts)).hexdigest()[: _BITS // 4]


_decode = msgspec.json.Decoder(Alert).decode
_decode_any = msgspec.json.Decoder().decode

MAX_RECORD_BYTES = 65_536
_MAX_NAME, _MAX_TEXT, _MAX_DIMENSIONS = 256, 4_096, 32
_MAX_INTEGER = 2**63 - 1
_MAX_WHOLE_DIGITS = 20
"""Before the decimal point, as in SQL."""
_MAX_DECIMALS = 100
_YEARS = range(1970, 2200)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII).fullmatch
is_alert_id = re.compile(r"[!-~]{1,64}").fullmatch
"""The ids that `raised_id` and `follow_up_id` make are 32 hexadecimal digits."""


def _check(alert: Alert) -> None:
    """msgspec.ValidationError for values that nobody can use, with the field."""
    for field, id_ in (("alert_id", alert.alert_id), ("about", alert.about)):
        if id_ is not None and not is_alert_id(id_):
            raise _invalid(field, "not 1 to 64 visible characters of ASCII")
    if (alert.kind == "raised") != (alert.about is None):
        raise _invalid("about", "missing, or in a record that raises an alert")
    if alert.about == alert.alert_id:
        raise _invalid("about", "the record itself")
    if alert.tenant == ALL_TENANTS:
        raise _invalid("tenant", "not the name of a tenant")
    _check_texts(alert)
    _check_instants(alert)
    _check_numbers(alert)


def _check_texts(alert: Alert) -> None:
    names = {"rule": alert.rule, "tenant": alert.tenant, "store": alert.store}
    if len(alert.dimensions) > _MAX_DIMENSIONS:
        raise _invalid("dimensions", f"more than {_MAX_DIMENSIONS}")
    for field, name in names.items():
        if not 0 < len(name) <= _MAX_NAME or "\0" in name:
            raise _invalid(field, f"not 1 to {_MAX_NAME} characters without NUL")
    dimensions = (("dimensions", text) for pair in alert.dimensions.items() for text in pair)
    for field, text in (("sentence", alert.sentence), ("reason", alert.reason or ""), *dimensions):
        if len(text) > _MAX_TEXT:  # whatever is in it: a sensor may call a queue anything
            raise _invalid(field, f"more than {_MAX_TEXT} characters")


def _check_instants(alert: Alert) -> None:
    window = alert.window
    for field, text in (("raised_at", alert.raised_at), ("window.from", window.start), ("window.to", window.end)):
        try:
            is_valid = text is None or (_INSTANT(text) and datetime.fromisoformat(text).astimezone(UTC).year in _YEARS)
        except (ValueError, OverflowError):
            is_valid = False
        if not is_valid:
            raise _invalid(field, f"not an instant with its zone from {_YEARS[0]} to {_YEARS[-1]}")


def _check_numbers(alert: Alert) -> None:
    place = alert.place
    integers = {"version": alert.version, "publication": alert.publication or 0}
    if place is not None:
        integers |= {"place.partition": place.partition, "place.offset": place.offset}
        if len(place.topic) > _MAX_NAME or "\0" in place.topic:
            raise _invalid("place.topic", f"more than {_MAX_NAME} characters, or with NUL")
    for field, integer in integers.items():
        if not 0 <= integer <= _MAX_INTEGER:
            raise _invalid(field, "not a whole number of 64 bits from 0 on")
    for field in ("value", "threshold", "baseline", "shown", "corrected"):
        number: Decimal | None = getattr(alert, field)
        if number is not None and not _is_in_range(number):
            raise _invalid(field, f"not a number with at most {_MAX_WHOLE_DIGITS} digits before the decimal point")


def _is_in_range(number: Decimal) -> bool:
    if not number.is_finite():
        return False
    exponent = number.as_tuple().exponent
    is_short = isinstance(exponent, int) and -_MAX_DECIMALS <= exponent <= _MAX_WHOLE_DIGITS
    return is_short and number.adjusted() < _MAX_WHOLE_DIGITS


def _invalid(field: str, why: str) -> msgspec.ValidationError:
    return msgspec.ValidationError(f"Invalid `{field}`: {why}")


CORRECTED = "corrected"
"""The reason of an alert that was resolved because later events showed that it was wrong."""
GRACE_MS = 120_000
"""How long after its end a window is evaluated, by the speed layer and by publications."""


class AlertStatus(NamedTuple):
    """The status of one alert according to the log.

    Attributes:
        raised: The record that raised it.
        last: The record that withdrew it, or else `raised`.
        is_resolved: Whether it was resolved.
    """

    raised: Alert
    last: Alert
    is_resolved: bool = False

    @property
    def is_withdrawn(self) -> bool:
        """Whether a later record says that it was wrong."""
        return self.last is not self.raised

    @property
    def is_corrected(self) -> bool:
        """Whether the speed layer withdrew it because of later events. It does not alert on that window again."""
        return self.last.reason == CORRECTED and self.last.publication is None

    @property
    def successor(self) -> str:
        """The id under which a withdrawn alert is raised again."""
        return follow_up_id(self.raised.alert_id, "raised")


def alert_statuses(log: Iterable[Alert], requested: Iterable[Alert] = ()) -> Mapping[str, AlertStatus]:
    """The status of each alert, by the id under which it was raised.

    Args:
        log: All emitted records, in order. A record that follows an alert also counts if it is read first.
        requested: The records that publications requested, in order. Those not emitted yet will come after `log`.
    """
    found: dict[str, AlertStatus] = {}
    early: dict[str, list[Alert]] = {}
    seen: set[str] = set()
    for record in chain(log, requested):
        if record.alert_id in seen:
            continue
        seen.add(record.alert_id)
        if record.kind == "raised":
            raised = AlertStatus(record, record)
            for follower in early.pop(record.alert_id, ()):
                raised = _with_follow_up(raised, follower)
            found[record.alert_id] = raised
        elif (status := found.get(record.about or "")) is not None:
            found[status.raised.alert_id] = _with_follow_up(status, record)
        else:
            early.setdefault(record.about or "", []).append(record)
    return found


def _with_follow_up(status: AlertStatus, record: Alert) -> AlertStatus:
    last = record if _withdraws(record) and not status.is_withdrawn else status.last
    return status._replace(last=last, is_resolved=status.is_resolved or record.kind == "resolved")


def is_confirmed(status: AlertStatus, cut_ms: int) -> bool:
    """Whether the publication with that cut has audited the alert and left it as it is, valid or withdrawn.

    No record is emitted then. Silences and levels have no end and are never confirmed.
    """
    end = status.raised.window.end
    if end is None:
        return False
    rests_on_speed = status.last.publication is None and status.last.raised_ms >= cut_ms
    return parse_instant_ms(end) + GRACE_MS <= cut_ms and not rests_on_speed


def is_provisional(status: AlertStatus, cut_ms: int) -> bool:
    """Whether no publication has raised or confirmed it yet. `cut_ms`: of the last one that audited alerts."""
    return status.last.provisional and not is_confirmed(status, cut_ms)


def _withdraws(record: Alert) -> bool:
    return record.kind == "retracted" or record.reason == CORRECTED
