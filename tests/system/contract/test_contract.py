"""Every response is one that the OpenAPI document describes, for any caller and any request."""

import pytest

from tests.support.openapi_contract import Document
from tests.system.contract.contract import CALLERS, tried, tried_by_default
from tests.system.contract.refusals import Refusal, Request, is_explained

FEW = 5
"""Per operation and phase: `python -m tests.system.contract` generates thousands."""
LEAST = {"alone": 50, "stateful": 20}
"""So many requests at least were made, or the phase tested nothing."""
PUBLICATIONS = "/v1/publications"
METRIC = "http://127.0.0.1/v1/metrics/net_sales"


def refuse_failures(caller: str, phase: str) -> None:
    found = tried(caller, phase, FEW, seed=1)

    assert found.is_well, found.said
    assert found.cases > LEAST[phase]
    assert found.links > 0 or phase != "stateful"


def test_no_check_of_schemathesis_fails() -> None:
    refuse_failures("tenant", "alone")


@pytest.mark.nightly
@pytest.mark.parametrize("caller", CALLERS)
def test_no_check_of_schemathesis_fails_for_any_other_caller(caller: str) -> None:
    refuse_failures(caller, "alone")


def test_no_sequence_of_questions_that_lead_from_one_to_the_next_fails() -> None:
    refuse_failures("tenant", "stateful")


@pytest.mark.nightly
@pytest.mark.parametrize("caller", CALLERS)
def test_no_sequence_of_questions_fails_for_any_other_caller(caller: str) -> None:
    refuse_failures(caller, "stateful")


@pytest.mark.nightly
def test_the_default_checks_without_a_configuration_fail_by_documented_errors_alone() -> None:
    found = tried_by_default("reader", FEW, seed=1)

    assert found.is_well, found.said
    assert found.cases > 50


def narrow_limit(document: Document) -> None:
    """The document says that one publication may be asked for; the API gives a thousand."""
    _limit_of_publications(document)["maximum"] = 1


def widen_limit(document: Document) -> None:
    """The document says that any number may be asked for; the API refuses more than a thousand."""
    _limit_of_publications(document)["maximum"] = 10**9


def _limit_of_publications(document: Document) -> Document:
    [limit] = [each for each in document["paths"][PUBLICATIONS]["get"]["parameters"] if each["name"] == "limit"]
    schema: Document = limit["schema"]
    return schema


@pytest.mark.nightly
@pytest.mark.parametrize("changed", [narrow_limit, widen_limit])
def test_a_document_that_does_not_say_what_the_api_does_is_found_out(changed: object) -> None:
    found = tried_by_default("reader", FEW, seed=1, changed=changed, only=PUBLICATIONS)  # type: ignore[arg-type]

    assert not found.is_well
    assert PUBLICATIONS in found.said
    assert "limit=" in found.said


@pytest.mark.parametrize(
    ("query", "refusal", "is_known"),
    [
        ("?range=today&from=2026-03-07", Refusal(422, "bad_question"), True),
        ("?from=2026-03-07&to=2026-03-07", Refusal(422, "bad_question"), True),
        ("?from=2026-02-30&to=2026-03-07", Refusal(422, "bad_question"), True),
        ("?from=2026-03-06&to=2026-03-07&after=0000", Refusal(422, "bad_question"), True),
        ("?range=today&at_least=0000", Refusal(422, "bad_question"), True),
        ("?range=today&max_staleness=soon", Refusal(422, "bad_question"), True),
        ("?range=today&at_least=&max_staleness=5s", Refusal(422, "bad_question"), False),
        ("?range=today&sku=1", Refusal(422, "bad_question"), True),
        ("?range=today&by=total&limit=5", Refusal(422, "bad_question"), True),
        ("?range=today&by=total&by=store", Refusal(422, "bad_question"), True),
        ("?range=today&by=total&share=true", Refusal(422, "bad_question"), False),
        ("?from=2026-03-06&to=2026-03-07", Refusal(422, "bad_question"), False),
        ("?from=2026-03-06&to=2026-03-07", Refusal(422, "missing_argument"), False),
        ("", Refusal(422, "missing_argument"), True),
        ("", Refusal(400, "missing_argument"), False),
        ("", Refusal(422, "no_such_code"), False),
        ("?range=today", Refusal(431, "headers_too_large"), False),
    ],
)
def test_a_refusal_is_explained_by_its_code_and_a_rule_that_the_request_breaks(
    query: str,
    refusal: Refusal,
    *,
    is_known: bool,
) -> None:
    assert is_explained(Request("GET", f"{METRIC}{query}"), refusal) is is_known
