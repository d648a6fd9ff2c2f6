"""Words for codes that have no class of their own to say them."""

from collections.abc import Mapping

from master_dataset.parsing.dead_letter import Reason
from serving_layer.outcomes import FOREIGN_STORE

EXIT_CODES = {
    0: "done",
    1: "a fault was met or found: something has to be decided or has to come back",
    2: "asked wrongly: an argument, a file or a setting",
    3: "a component stopped by name and waits for the operator; the supervisor leaves it `failed`",
    75: "a component asks to be started again; the supervisor does so, waiting longer each time",
    130: "interrupted",
}
CLOSER = {
    "bad_opening_hours": "`opening_hours` of a store are not quarter hours of a weekday.",
    "duplicate_store": "A file names the same store twice.",
    "offset_not_15min": "A store's time zone has an offset off the 15-minute grid, so its days would cut windows.",
    "unknown_currency": "The currency of a store is none of ISO 4217 that has a minor unit.",
    "unknown_field": "An entry of the file has a field that a store does not have.",
    "unknown_timezone": "The time zone of a store is none of the tz database.",
}
HTTP_CODES = {
    "bad_request": "HTTP 400. The request is none that can be read at all.",
    "not_found": "HTTP 404. No such path; `/openapi.json` lists what there is.",
    "method_not_allowed": "HTTP 405. The path is there, but not for this method.",
    "missing_argument": "HTTP 422. The question lacks an argument, which is named.",
    "unknown_argument": "HTTP 422. The question has an argument that means nothing here; it is refused, not ignored.",
    "internal_error": "HTTP 500. Nobody foresaw this. The answer carries a number that stands in the log of `api`.",
}
OF_SENDERS = {FOREIGN_STORE: "names a store that is none of the sender's, whether or not there is such a store"}
REASONS: Mapping[Reason, str] = {
    Reason.EMPTY_VALUE: "has no value",
    Reason.TOO_LARGE: "is larger than the limit",
    Reason.NOT_UTF8: "is not UTF-8",
    Reason.NOT_JSON: "is not one JSON object",
    Reason.TOO_DEEP: "is nested too deep",
    Reason.DUPLICATE_JSON_KEY: "names a key twice in one object",
    Reason.MISSING_FIELD: "lacks a field",
    Reason.WRONG_TYPE: "has a field of another type",
    Reason.BAD_NUMBER: "has a number that cannot be kept exactly",
    Reason.BAD_TIME: "has a time without offset, or none that exists",
    Reason.BAD_IDENTITY: "has an empty or overlong part of its identity",
    Reason.OUT_OF_RANGE: "has a value beyond what is possible",
    Reason.UNKNOWN_VALUE: "has a word that the field does not know",
    Reason.FROM_THE_FUTURE: "happened more than an hour after it was received",
    Reason.CONFLICTING_DUPLICATE: "repeats the identity of an earlier one with another content; found by a rebuild",
    Reason.UNKNOWN_SCHEMA: "names a schema in its header that no source has",
    Reason.INTERVAL_CROSSES_WINDOW: "counts over an interval that is not within one 15-minute window of UTC",
    Reason.NEGATIVE_DURATION: "ends before it began",
    Reason.DURATION_TOO_LONG: "lasts longer than such a thing can",
    Reason.RAW_MAC_ADDRESS: "names a device by its hardware address; the value is masked before anything is kept",
}
