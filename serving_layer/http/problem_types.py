"""What each code of an error means, for `/problems` and the reference: the error tree, and the codes of HTTP alone."""

from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus

from master_dataset.errors import DefinitionError, DependencyUnavailableError, GalateaError, OperatorError, RequestError
from serving_layer import errors as serving_errors
from serving_layer.responses.encoding import ProblemType

PATH = "/problems"
"""Below it, each code has a page: the `type` of a problem."""
PHRASES: Mapping[int, str] = {
    HTTPStatus.BAD_REQUEST: "Bad Request",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "Not Found",
    HTTPStatus.METHOD_NOT_ALLOWED: "Method Not Allowed",
    HTTPStatus.NOT_ACCEPTABLE: "Not Acceptable",
    HTTPStatus.REQUEST_TIMEOUT: "Request Timeout",
    HTTPStatus.CONFLICT: "Conflict",
    HTTPStatus.GONE: "Gone",
    HTTPStatus.PRECONDITION_FAILED: "Precondition Failed",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "Unsupported Media Type",
    HTTPStatus.EXPECTATION_FAILED: "Expectation Failed",
    HTTPStatus.MISDIRECTED_REQUEST: "Misdirected Request",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Unprocessable Content",
    HTTPStatus.PRECONDITION_REQUIRED: "Precondition Required",
    HTTPStatus.TOO_MANY_REQUESTS: "Too Many Requests",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "Request Header Fields Too Large",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Internal Server Error",
    HTTPStatus.SERVICE_UNAVAILABLE: "Service Unavailable",
}
"""The names of the statuses of errors, from RFC 9110 and 6585. `HTTPStatus.phrase` depends on the version of Python."""
ACTS: Mapping[type[GalateaError], str] = {
    DefinitionError: "The author of a view or source",
    RequestError: "The caller",
    OperatorError: "The operator",
    DependencyUnavailableError: "Nobody yet: it is retried and passes",
}
FILE_CODES = {
    "bad_opening_hours": "`opening_hours` of a store are not on the quarter hours of a weekday.",
    "bad_category": "The category of a product has too many levels, or an empty one.",
    "bad_group": "The name of a group of stores has other characters than lower-case letters, digits and `_`.",
    "bad_gtin": "The GTIN of a product has a wrong length or check digit.",
    "bad_text": "A text has control characters or others that are not visible, or a SKU has blanks around it.",
    "duplicate_product": "A file names the same SKU twice with the same `valid_from`.",
    "duplicate_store": "A file names the same store twice.",
    "duplicate_target": "A file names the same store, day and metric twice.",
    "duplicate_version": "A store has two versions of its groups with the same `valid_from`.",
    "no_annotations": "A file has no annotations.",
    "no_products": "A file has no products.",
    "no_targets": "A file has no targets.",
    "repeated_field": "A line or a mapping of a file has the same field twice.",
    "offset_not_15min": "The UTC offset of a store is not a multiple of 15 minutes, so its days would split windows.",
    "too_many_annotations": "A file has more than 5,000 annotations.",
    "too_many_products": "A tenant would have more than a million products.",
    "too_many_targets": "A tenant would have more than a million targets.",
    "unknown_currency": "The currency of a store is not in ISO 4217, or has no minor unit.",
    "unknown_field": "An entry of the file has a field that a store does not have.",
    "unknown_metric": "A file has a target for a metric that cannot have any, such as a ratio.",
    "unknown_store": "A file has a target for a store that is not registered for the tenant.",
    "unknown_timezone": "The time zone of a store is not in the tz database.",
}
"""Specific codes of `bad_file`."""
HTTP_CODES = {
    "bad_request": (HTTPStatus.BAD_REQUEST, "The request cannot be parsed."),
    "not_found": (HTTPStatus.NOT_FOUND, "There is no such path; `/docs` lists all."),
    "method_not_allowed": (HTTPStatus.METHOD_NOT_ALLOWED, "The path does not support this method."),
    "unknown_argument": (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The path does not know an argument, which is rejected, not ignored.",
    ),
    "internal_error": (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "An unexpected error. The response has an id that is in the log of `api` as well.",
    ),
}
_ = serving_errors  # imported for its classes, which register as subclasses


def family(kind: type[GalateaError]) -> Iterator[type[GalateaError]]:
    """Yield the class and all subclasses that the product defines."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__.startswith(("master_dataset.", "serving_layer.")):
            yield from family(below)


@cache
def problem_types() -> Mapping[str, ProblemType]:
    """Every code that a problem can have, with what it means and who acts; sorted."""
    found = {
        error.code: ProblemType(f"{PATH}/{error.code}", error.code, error.__doc__ or "", acts, error.status)
        for kind, acts in reversed(tuple(ACTS.items()))  # of an error that is of two kinds, the operator acts
        for error in family(kind)
    }
    caller, unprocessable = ACTS[RequestError], HTTPStatus.UNPROCESSABLE_ENTITY.value
    found |= {
        code: ProblemType(f"{PATH}/{code}", code, meaning, caller, unprocessable)
        for code, meaning in FILE_CODES.items()
    }
    for code, (status, meaning) in HTTP_CODES.items():
        acts = ACTS[OperatorError] if status == HTTPStatus.INTERNAL_SERVER_ERROR else caller
        found[code] = ProblemType(f"{PATH}/{code}", code, meaning, acts, status.value)
    return dict(sorted(found.items()))
