"""A rule that this release cannot read, on the page of alerts and in its form."""

import pytest

from tests.fast.unit.pages.test_alerts import LEVEL, NEW
from tests.support.asking import OPERATOR_KEY, Asking
from tests.support.browsing import Browsing, words


@pytest.fixture
def operator(browsing: Browsing) -> Browsing:
    browsing.sign_in(OPERATOR_KEY)
    return browsing


def test_a_rule_that_this_release_cannot_read_is_listed_and_can_be_replaced_or_removed(
    asking: Asking, operator: Browsing
) -> None:
    asking.versions.follow("default/newer", '{"kind": "forecast", "id": "newer"}', 0)

    listed = operator.words("/alerts")
    form = operator.get("/alerts/rules/newer?kind=silence")
    operator.send("/alerts/rules", form_of=NEW, **(LEVEL | {"id": "newer"}), version="1", do="save")

    assert "newer Watches nothing: this release cannot read it" in listed
    assert "unreadable version 1" in listed
    assert "Silent for so many minutes" in words(form)
    assert "What you save here replaces it." in words(form)
    assert "newer Watches nothing" not in operator.words("/alerts")
