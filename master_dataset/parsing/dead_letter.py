"""A record that cannot become an event: why, where in it, and a sentence for a person."""

from enum import StrEnum

import msgspec


class Reason(StrEnum):
    """Stable codes: table, metric label, API and docs use the same word."""

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


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """`field` is a JSON pointer (`/transactions/0/price`), empty for the record as a whole.

    `sentence` never quotes the value: it goes into logs and answers, and the value may be anything.
    """

    reason: Reason
    field: str
    sentence: str


class Refused(Exception):
    """Raised by a field or a derivation while one record is read; `parse` turns it into a DeadLetter.

    `why` completes the sentence that begins with the name of the field: "has more than 6 decimals".
    """

    def __init__(self, reason: Reason, why: str, field: str = "") -> None:
        """`field` is the pointer from where it is raised; whoever knows the way there puts it in front with `under`."""
        super().__init__(reason, why, field)
        self.reason = reason
        self.why = why
        self.field = field

    def under(self, pointer: str) -> "Refused":
        """Return the same refusal, seen from one level further out."""
        return Refused(self.reason, self.why, pointer + self.field)

    def letter(self) -> DeadLetter:
        """Say it to a person."""
        what = f"`{self.field}`" if self.field else "The record"
        return DeadLetter(self.reason, self.field, f"{what} {self.why}.")
