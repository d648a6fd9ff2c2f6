"""Words for codes that have no class of their own to say them."""

from serving_layer.ingest.outcomes import FOREIGN_STORE

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
