"""Refusals that a schema cannot announce: an argument contradicts another one, or nobody gave out the value.

A check of Schemathesis that compares the schema with what is accepted may fail only if the refusal has an explanation
here: a code that the page of errors documents with this status, a status that the document announces for the
operation, and a request that breaks a rule which is documented and which a schema cannot say. Every rule reads the
request alone, so that an API that refuses too much, or another thing, is found out.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from zoneinfo import available_timezones

from tests.support.openapi_contract import operation_of
from views.core.metric import Metric
from views.metrics import registered_metrics
from views.registry import registered_views

ERRORS_PAGE = Path(__file__).parents[3] / "docs/reference/errors.md"
LONGEST_HEAD = 16_384
SAID_OF_HEAD = 200
"""Bytes of the request line and the headers that a client adds besides what is counted here."""
Query = Mapping[str, Sequence[str]]


class Request(NamedTuple):
    """What was sent."""

    method: str
    uri: str
    header_bytes: int = 0

    @property
    def path(self) -> str:
        """As it is routed."""
        return unquote(urlsplit(self.uri).path)

    @property
    def query(self) -> Query:
        """Names and values of the query; what comes once comes as a list, too."""
        return parse_qs(urlsplit(self.uri).query, keep_blank_values=True)


class Refusal(NamedTuple):
    """What was answered. `code`: of the problem."""

    status: int
    code: str


def is_explained(request: Request, refusal: Refusal) -> bool:
    """Whether the request breaks a rule that is documented, with the code that the page of errors has for it."""
    operation = operation_of(request.method, urlsplit(request.uri).path)
    if operation is None or str(refusal.status) not in operation["responses"]:
        return False
    if documented_statuses().get(refusal.code) != refusal.status:
        return False
    return any(breaks(request) for breaks in RULES.get(refusal.code, ()))


@cache
def documented_statuses() -> Mapping[str, int]:
    """Every code of the page of errors with its status."""
    page = ERRORS_PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^### `(\w+)`\n(?:(?!^### ).*\n)*?HTTP (\d+) ", page, re.MULTILINE)
    return {code: int(status) for code, status in found}


def lacks_a_range(request: Request) -> bool:
    """A question about a range says from when on, or names the range."""
    return not {"from", "range", "day"} & set(request.query)


def has_two_ranges(request: Request) -> bool:
    """A named range says from when to when, and so do bounds."""
    query = request.query
    return "range" in query and bool({"from", "to"} & set(query))


def has_a_token_of_its_own_making(request: Request) -> bool:
    """`after` is what the page before said: JSON in base64; `at_least` what an answer said. Nobody guesses them."""
    if any(request.query.get("at_least", ())):
        return True
    for token in request.query.get("after", ()):
        try:
            json.loads(base64.urlsafe_b64decode(token.encode()))
        except (binascii.Error, ValueError):
            return True
    return False


def has_a_range_that_cannot_be(request: Request) -> bool:
    """A date that no calendar has, or an end that is not after its beginning."""
    try:
        bounds = [_bound(request.query[name][0]) for name in ("from", "to") if name in request.query]
    except ValueError:
        return True
    known = [bound for bound in bounds if bound is not None]
    return len(known) == len(("from", "to")) and known[1] <= known[0]


RELATIVE = re.compile(r"today|yesterday|-\d+[dwmy]")


def _bound(text: str) -> datetime | None:
    """The instant, in UTC if it has no offset; None if it depends on today. ValueError if there is no such."""
    if RELATIVE.fullmatch(text):
        return None
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def has_no_length_of_time(request: Request) -> bool:
    """`max_staleness` is a whole number and a unit."""
    return any(not re.fullmatch(r"[0-9]{1,9}(ms|s|m|h)", each) for each in request.query.get("max_staleness", ()))


def has_no_such_time_zone(request: Request) -> bool:
    """A time zone is one of the IANA database."""
    return any(zone not in available_timezones() for zone in request.query.get("timezone", ()))


def sorts_by_change_of_nothing(request: Request) -> bool:
    """To sort by change there has to be a comparison."""
    query = request.query
    return "change" in query.get("sort", [""])[0] and "compare" not in query


def is_a_table_of_what_is_no_row(request: Request) -> bool:
    """Context and stores that are left out have no place in a file."""
    query = request.query
    return query.get("format", ["json"])[0] != "json" and ("context" in query or query.get("comp", [""])[0] == "true")


def asks_what_the_metric_has_not(request: Request) -> bool:
    """The reference of metrics says how one may be split, at which grains, and whether it is a sum or a list."""
    query, by = request.query, _split(request)
    named = [
        metric for name in request.path.rpartition("/")[2].split(",") if (metric := registered_metrics().get(name))
    ]
    over_stores = _adds_up(request) or bool({"sort", "top"} & set(query)) or _is_true(query, "share")
    return any(
        (bool({"category", "brand", "sku"} & set(query)) and not _counts_items(metric))
        or (bool(by) and not metric.is_split)
        or not set(metric.needs_by) <= set(by)
        or (metric.grains and query.get("grain", metric.grains)[0] not in metric.grains)
        or (_is_true(query, "share") and not metric.formula.is_sum)
        or (metric.unit == "list" and over_stores)
        or (over_stores and any(term.is_sequential for term in metric.terms.values()))
        for metric in named
    )


def pages_through_what_is_one_answer(request: Request) -> bool:
    """Totals and ranked series are of all stores, so they have no pages, and no rows of context per store."""
    ranks = bool({"sort", "top"} & set(request.query)) or _is_true(request.query, "share")
    return (_adds_up(request) or ranks) and bool({"limit", "after", "context"} & set(request.query))


def splits_by_what_contradicts_itself(request: Request) -> bool:
    """A series is of one store, of several or of all; and a group has a name."""
    by = _split(request)
    kinds = {
        "group" if name.startswith("group:") else name for name in by if name in STORE_PARTS or name[:6] == "group:"
    }
    return len(kinds) > 1 or "group:" in by or len(by) != len(set(by))


STORE_PARTS = frozenset({"store", "total"})


def _split(request: Request) -> list[str]:
    return [name.strip() for names in request.query.get("by", ()) for name in names.split(",")]


def _adds_up(request: Request) -> bool:
    return any(name == "total" or name.startswith("group:") for name in _split(request))


def _counts_items(metric: Metric) -> bool:
    views = {view.name: view for view in registered_views()}
    return any("sku" in views[name].dimensions for name in metric.views)


def _is_true(query: Query, name: str) -> bool:
    return query.get(name, [""])[0] in ("true", "1", "on", "yes")


def has_long_headers(request: Request) -> bool:
    """The target and the headers of a request have a limit together."""
    return len(request.uri) + request.header_bytes + SAID_OF_HEAD > LONGEST_HEAD


Rule = Callable[[Request], bool]
RULES: Mapping[str, Sequence[Rule]] = {
    "missing_argument": (lacks_a_range,),
    "bad_question": (
        has_two_ranges,
        has_a_token_of_its_own_making,
        has_a_range_that_cannot_be,
        has_no_such_time_zone,
        has_no_length_of_time,
        sorts_by_change_of_nothing,
        asks_what_the_metric_has_not,
        pages_through_what_is_one_answer,
        splits_by_what_contradicts_itself,
    ),
    "not_available": (is_a_table_of_what_is_no_row,),
    "headers_too_large": (has_long_headers,),
}
