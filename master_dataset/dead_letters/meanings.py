"""What each reason says of a record, and who can do something about it."""

from collections.abc import Mapping
from typing import NamedTuple

from master_dataset.parsing.dead_letter import Reason


class Meaning(NamedTuple):
    """`record`: what is wrong with it, after "The record". `do`: who acts, and whether a replay can help."""

    record: str
    do: str


ANEW = "the sender sends it again; here only a whole record can stand for it"
A_FIELD = "the sender mends its program; here the field can be set"
MEANINGS: Mapping[Reason, Meaning] = {
    Reason.EMPTY_VALUE: Meaning("has no value", "the sender; there is nothing that could be mended"),
    Reason.TOO_LARGE: Meaning("is larger than the limit", "the sender sends several smaller ones"),
    Reason.NOT_UTF8: Meaning("is not UTF-8", ANEW),
    Reason.NOT_JSON: Meaning("is not one JSON object", ANEW),
    Reason.TOO_DEEP: Meaning("is nested too deep", ANEW),
    Reason.DUPLICATE_JSON_KEY: Meaning("names a key twice in one object", ANEW),
    Reason.MISSING_FIELD: Meaning("lacks a field", A_FIELD),
    Reason.WRONG_TYPE: Meaning("has a field of another type", A_FIELD),
    Reason.BAD_NUMBER: Meaning("has a number that cannot be kept exactly", A_FIELD),
    Reason.BAD_TIME: Meaning("has a time without offset, or none that exists", A_FIELD),
    Reason.BAD_IDENTITY: Meaning("has an empty or overlong part of its identity", A_FIELD),
    Reason.OUT_OF_RANGE: Meaning("has a value beyond what is possible", A_FIELD),
    Reason.UNKNOWN_VALUE: Meaning("has a word that the field does not know", A_FIELD),
    Reason.FROM_THE_FUTURE: Meaning(
        "happened more than an hour after it was received",
        "whoever sets the sender's clock; if its time was right after all, replay it as it is when that time has come",
    ),
    Reason.CONFLICTING_DUPLICATE: Meaning(
        "repeats the identity of an earlier one with another content; found by a rebuild",
        "the sender, which has used one identity twice; with an identity of its own it can be an event",
    ),
    Reason.UNKNOWN_SCHEMA: Meaning(
        "names a schema in its header that no source has",
        "you, if a source is missing: add it, then replay as it is; else the sender",
    ),
    Reason.INTERVAL_CROSSES_WINDOW: Meaning(
        "counts over an interval that is not within one 15-minute window of UTC",
        "whoever sets up the counter; one count cannot be divided afterwards",
    ),
    Reason.NEGATIVE_DURATION: Meaning("ends before it began", A_FIELD),
    Reason.DURATION_TOO_LONG: Meaning("lasts longer than such a thing can", A_FIELD),
    Reason.RAW_MAC_ADDRESS: Meaning(
        "names a device by its hardware address; the value is masked before anything is kept",
        "whoever runs the edge: it has to hash. What was masked is gone",
    ),
    Reason.ALERT_DELIVERY_REJECTED: Meaning(
        "is an alert that an endpoint has refused for good",
        "the tenant, whose endpoint it is",
    ),
}
