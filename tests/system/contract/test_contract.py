"""Every response is one that the OpenAPI document describes, for any caller and any request."""

import pytest

from tests.system.contract.contract import CALLERS, tried, tried_by_default

FEW = 5
"""Per operation and phase: `python -m tests.system.contract` generates thousands."""


@pytest.mark.parametrize("caller", CALLERS)
def test_no_check_of_schemathesis_fails(caller: str) -> None:
    found = tried(caller, "alone", FEW, seed=1)

    assert found.is_well, found.said
    assert found.cases > 50


@pytest.mark.parametrize("caller", CALLERS)
def test_no_sequence_of_questions_that_lead_from_one_to_the_next_fails(caller: str) -> None:
    found = tried(caller, "stateful", FEW, seed=1)

    assert found.is_well, found.said
    assert found.links > 0


def test_the_default_checks_without_a_configuration_fail_by_documented_errors_alone() -> None:
    found = tried_by_default("reader", FEW, seed=1)

    assert found.is_well, found.said
    assert found.cases > 50
