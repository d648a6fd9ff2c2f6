"""Every answer is one that the document announces, whoever asks and whatever for."""

import pytest

from tests.system.contract.contract import CALLERS, tried

FEW = 5
"""Per operation and phase: `python -m tests.system.contract` makes up thousands."""


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
