"""Dates have one form: others of ISO 8601, and what Python reads beside them, would be other days than were meant."""

import pytest

from master_dataset.registry.file_rows import plain_date
from master_dataset.registry.stores import Store
from tests.support import World
from tests.support.world_api import Asking

WRONG = ["20260101x1", "2026-W01-1", "2026-02-30", "20260101", "2026-1-01", "\u0662\u0660\u0662\u0666-01-01", ""]


@pytest.mark.parametrize("text", WRONG)
def test_other_forms_are_no_dates(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - callers say what is wrong
        plain_date(text)


@pytest.mark.parametrize("text", WRONG[:3])
def test_a_range_refuses_them(text: str) -> None:
    asking = Asking(World(Store(id="1", timezone="UTC")))

    refused = asking.refusal("/v1/metrics/net_sales", from_=text, to="2026-03-01")

    assert (refused["status"], refused["code"]) == (422, "bad_question")
