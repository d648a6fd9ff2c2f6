"""A bound beyond what a window of one store can hold would always fire, or never; that of a real shop is accepted."""

from decimal import Decimal
from typing import Any

import pytest

from master_dataset.errors import BadRuleError
from tests.fast.unit.alerts.test_refused_rules import BOUND
from views.alerts.rule_metrics import alertable_metrics, value_range
from views.alerts.rule_validation import parse_rule
from views.core.formula import Formula
from views.core.metric import Metric, Unit

BEYOND: list[tuple[dict[str, Any], str, str]] = [
    ({"metric": "net_sales", "below": 999_999_999_999, "hours": "always"}, "always", "Write 500,000,000,000 or less."),
    ({"metric": "net_sales", "above": -999_999_999_999}, "always", "Write -500,000,000,000 or more."),
    ({"metric": "net_sales", "above": 500_000_000_000}, "never", "Write less than 500,000,000,000."),
    ({"metric": "net_sales", "below": -500_000_000_000}, "never", "Write a bound above -500,000,000,000."),
    ({"metric": "sales.receipts", "below": 999_999_999_999}, "always", "Write 100,000,000 or less."),
    ({"metric": "sales_transactions_count", "below": "1e11"}, "always", "Write 100,000,000 or less."),
    ({"metric": "sales.zero_tx", "above": 999_999_999_999, "window": "15m"}, "never", "Write less than 100,000,000."),
    ({"metric": "count_drift", "above": -100_000_001}, "always", "Write -100,000,000 or more."),
    ({"metric": "return_rate", "above": "-1e9"}, "always", "Write -100,000 or more."),
    ({"metric": "return_rate", "below": 100_000.01}, "always", "Write 100,000 or less."),
    ({"metric": "avg_items_per_transaction", "below": 1_000_001}, "always", "Write 1,000,000 or less."),
    ({"metric": "traffic_in", "below": 0}, "never", "Write a bound above zero."),
    ({"metric": "traffic_in", "above": -1}, "always", "Write zero or more."),
]
REAL: list[dict[str, Any]] = [
    {"metric": "net_sales", "above": 300_000_000_000, "window": "day"},  # a hypermarket that sells in rials
    {"metric": "net_sales", "below": 100_000_000_000, "window": "day"},  # a busy one that sells in dong
    {"metric": "net_sales", "below": -1_000_000_000, "window": "15m"},
    {"metric": "sales.receipts", "above": 200_000, "window": "day"},
    {"metric": "net_items_count", "above": 20_000_000, "window": "day"},  # a wholesaler's cups and screws
    {"metric": "traffic_in", "above": 2_000_000, "window": "day"},  # a station
    {"metric": "return_rate", "above": 20_000, "window": "15m"},  # a battery was sold and a television came back
    {"metric": "avg_items_per_transaction", "above": 10_000, "window": "hour"},
    {"metric": "count_drift", "below": -5000, "window": "hour"},
]
HUGE = ["1e9999999", "-1e9999999", "9" * 4000, "1e999999999999999999"]


def refusal(said: dict[str, Any]) -> BadRuleError:
    """What is said of a rule with those fields."""
    with pytest.raises(BadRuleError) as refused:
        parse_rule({**BOUND, "above": None, **said})
    return refused.value


@pytest.mark.parametrize(("said", "fires", "do"), BEYOND)
def test_a_bound_that_every_window_is_beyond_or_none_is_refused_with_what_to_write(
    said: dict[str, Any], fires: str, do: str
) -> None:
    field = "above" if "above" in said else "below"

    refused = refusal(said)

    assert (refused.field, refused.fires, refused.do) == (field, fires, do)
    assert refused.message.startswith(f"`{said['metric']}` is {fires} {field} ")


def test_the_refusal_says_what_a_window_holds() -> None:
    said = {"metric": "sales.receipts", "below": 999_999_999_999}

    refused = refusal(said)

    assert refused.message == (
        "`sales.receipts` is always below 999,999,999,999: a window of one store holds 0 to 100,000,000."
    )


@pytest.mark.parametrize("said", REAL)
def test_the_bound_of_a_real_shop_is_accepted(said: dict[str, Any]) -> None:
    field = "above" if "above" in said else "below"

    rule = parse_rule({**BOUND, "above": None, **said})

    assert getattr(rule, field) == said[field]


@pytest.mark.parametrize("metric", alertable_metrics().values(), ids=lambda metric: str(metric.id))
def test_of_every_metric_the_last_bound_that_tells_something_is_accepted_and_the_next_refused(metric: Metric) -> None:
    least, most = value_range(metric)
    step = Decimal("0.000001")
    accepted = [("above", least), ("above", most - step), ("below", least + step), ("below", most)]
    refused = [("above", least - step), ("above", most), ("below", least), ("below", most + step)]

    rules = [parse_rule({**BOUND, "above": None, "metric": metric.id, field: bound}) for field, bound in accepted]
    fires = [refusal({"metric": metric.id, field: bound}).fires for field, bound in refused]

    assert len(rules) == 4
    assert fires == ["always", "never", "never", "always"]


@pytest.mark.parametrize("field", ["above", "below"])
@pytest.mark.parametrize("versus", [None, "previous_week"])
@pytest.mark.parametrize("bound", HUGE)
def test_a_number_with_more_digits_than_anybody_reads_is_refused_in_a_short_sentence(
    bound: str, versus: str | None, field: str
) -> None:
    said = {field: bound, "versus": versus}

    refused = refusal(said)

    assert refused.field == field
    assert len(refused.message) < 200


@pytest.mark.parametrize(("field", "bound"), [("above", 10_000), ("below", 99)])
def test_what_is_compared_with_a_week_before_has_the_range_of_percents_whatever_the_metric(
    field: str, bound: int
) -> None:
    said: dict[str, Any] = {**BOUND, "metric": "sales.receipts", "above": None, "versus": "previous_week"}

    rule = parse_rule({**said, field: bound})
    refused = refusal({**said, field: bound + 1})

    assert getattr(rule, field) == bound
    assert (refused.message, refused.fires) == (
        f"`{field}` is {bound + 1:,} percent, and must be 1 to {bound:,}.",
        None,
    )


@pytest.mark.parametrize(
    ("unit", "flags", "reach"),
    [("percent", (), (0, 100)), ("percent", ("above_100",), (0, 100_000)), ("ms", (), (0, 172_800_000))],
)
def test_a_share_a_rate_and_a_duration_have_a_reach_before_one_can_be_followed(
    unit: Unit, flags: tuple[str, ...], reach: tuple[int, int]
) -> None:
    metric = Metric("a_new_one", "A new one", Formula("first / second"), unit, "sales", flags)

    found = value_range(metric)

    assert found == reach
