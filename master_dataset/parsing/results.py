"""What parsing returns: an `Event`, or a `DeadLetter` with the reason why the record is none."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

import msgspec


class Reason(StrEnum):
    """Why a record is no event. The codes are stable, and the same in tables, metrics, API and docs."""

    EMPTY_VALUE = "empty_value"
    TOO_LARGE = "too_large"
    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    TOO_DEEP = "too_deep"
    DUPLICATE_JSON_KEY = "duplicate_json_key"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    BAD_NUMBER = "bad_number"
    BAD_TIME = "bad_time"
    BAD_IDENTITY = "bad_identity"
    OUT_OF_RANGE = "out_of_range"
    UNKNOWN_VALUE = "unknown_value"
    FROM_THE_FUTURE = "from_the_future"
    CONFLICTING_DUPLICATE = "conflicting_duplicate"
    UNKNOWN_SCHEMA = "unknown_schema"
    INTERVAL_CROSSES_WINDOW = "interval_crosses_window"
    NEGATIVE_DURATION = "negative_duration"
    DURATION_TOO_LONG = "duration_too_long"
    RAW_MAC_ADDRESS = "raw_mac_address"
    ALERT_DELIVERY_REJECTED = "alert_delivery_rejected"
    ALERT_NOT_SIGNED = "alert_not_signed"
    ALERT_NOT_VALID = "alert_not_valid"


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """Why a record is no event.

    `field`: a JSON pointer (`/transactions/0/price`), empty for the record as a whole. `sentence` never quotes the
    value, which may be anything: it goes into logs and responses.
    """

    reason: Reason
    field: str
    sentence: str


class InvalidRecordError(Exception):
    """Raised by a field or `derive` while a record is read; `parse` turns it into a `DeadLetter`.

    `why` completes a sentence that begins with the name of the field: "has more than 6 decimals".
    """

    def __init__(self, reason: Reason, why: str, field: str = "") -> None:
        """`field`: the pointer relative to where it is raised; callers prepend their part with `under`."""
        super().__init__(reason, why, field)
        self.reason = reason
        self.why = why
        self.field = field

    def under(self, pointer: str) -> "InvalidRecordError":
        """Return the same error with a pointer from one level further out."""
        return InvalidRecordError(self.reason, self.why, pointer + self.field)

    def dead_letter(self) -> DeadLetter:
        """Return it as a dead letter with a whole sentence."""
        what = f"`{self.field}`" if self.field else "The record"
        return DeadLetter(self.reason, self.field, f"{what} {self.why}.")


Payload = TypeVar("Payload", bound=msgspec.Struct)  # frozen; its fields are the payload columns

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Event(msgspec.Struct, Generic[Payload], frozen=True, gc=False):
    """What the master dataset stores of a record, besides its position and bytes.

    `identity`: canonical text, equal for two deliveries of one event and for nothing else. `identity_hash` only finds
    candidates, because 64 bits can collide. An equal identity with another `payload_hash` is a conflict.
    """

    topic: str
    store: str
    happened_ms: int  # milliseconds since 1970 UTC
    identity: str
    identity_hash: int  # signed 64 bit, of topic and identity
    payload_hash: int  # signed 64 bit, of what the sender said; blind to key order, spacing and unknown fields
    payload: Payload

    @property
    def happened_at(self) -> datetime:
        """The instant in UTC."""
        return UNIX_EPOCH + timedelta(milliseconds=self.happened_ms)

    @property
    def day(self) -> date:
        """The UTC day of `happened_at`: the partition of the master table."""
        return self.happened_at.date()


class Meaning(NamedTuple):
    """`record`: completes "The record". `do`: who acts, and whether a replay can help."""

    record: str
    do: str


RESEND = "the sender must send it again; here it can only be replaced by a whole record"
SET_FIELD = "the sender must fix its program; you can correct the field in a replay"
UNKNOWN_WRITER = "you: find out who can write to the topic, and revoke that right"
MEANINGS: Mapping[Reason, Meaning] = {
    Reason.EMPTY_VALUE: Meaning("has no value", "the sender; there is nothing to correct here"),
    Reason.TOO_LARGE: Meaning("is larger than the limit", "the sender must send several smaller records"),
    Reason.NOT_UTF8: Meaning("is not UTF-8", RESEND),
    Reason.NOT_JSON: Meaning("is not one JSON object", RESEND),
    Reason.TOO_DEEP: Meaning("is nested too deeply", RESEND),
    Reason.DUPLICATE_JSON_KEY: Meaning("has a key twice in one object", RESEND),
    Reason.MISSING_FIELD: Meaning("lacks a required field", SET_FIELD),
    Reason.WRONG_TYPE: Meaning("has a field of the wrong type", SET_FIELD),
    Reason.BAD_NUMBER: Meaning("has a number that cannot be stored exactly", SET_FIELD),
    Reason.BAD_TIME: Meaning("has a time without a UTC offset, or one that does not exist", SET_FIELD),
    Reason.BAD_IDENTITY: Meaning("has an identity with an empty part or one that is too long", SET_FIELD),
    Reason.OUT_OF_RANGE: Meaning("has a value outside the allowed range", SET_FIELD),
    Reason.UNKNOWN_VALUE: Meaning("has a value that is not one of the allowed ones", SET_FIELD),
    Reason.FROM_THE_FUTURE: Meaning(
        "happened more than an hour after it was received",
        "the owner of the sender's clock. If the time is right, replay the record unchanged after that time",
    ),
    Reason.CONFLICTING_DUPLICATE: Meaning(
        "has the identity of an earlier record but different content; found by a rebuild",
        "the sender, which used one identity twice; with an identity of its own the record can become an event",
    ),
    Reason.UNKNOWN_SCHEMA: Meaning(
        "names a schema in its header that no source has",
        "you, if a source is missing: add it, then replay the record unchanged; otherwise the sender",
    ),
    Reason.INTERVAL_CROSSES_WINDOW: Meaning(
        "counts over an interval that is not within one 15-minute window of UTC",
        "the operator of the counter; a count cannot be divided afterwards",
    ),
    Reason.NEGATIVE_DURATION: Meaning("ends before it begins", SET_FIELD),
    Reason.DURATION_TOO_LONG: Meaning("is longer than the maximum for its kind", SET_FIELD),
    Reason.RAW_MAC_ADDRESS: Meaning(
        "identifies a device by its hardware address; the value is masked before the record is stored",
        "the operator of the edge device: it must hash addresses. The masked part cannot be restored",
    ),
    Reason.ALERT_DELIVERY_REJECTED: Meaning(
        "is an alert that a webhook endpoint has rejected",
        "the tenant that owns the endpoint",
    ),
    Reason.ALERT_NOT_SIGNED: Meaning(
        "is in a topic of alerts, but was not written by Galatea; it was delivered to nobody", UNKNOWN_WRITER
    ),
    Reason.ALERT_NOT_VALID: Meaning(
        "is in a topic of alerts, but is not a valid alert; it was delivered to nobody", UNKNOWN_WRITER
    ),
}
