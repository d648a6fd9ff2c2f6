"""Identities 1 to 4 and 12 of the metrics catalogue: exact on fractions, no tolerance."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from views.core.metric import STORE_FACTS, Metric
from views.metrics import registered_metrics

METRICS = registered_metrics()
FEW = st.integers(0, 10**6)
MONEY = st.integers(-(10**12), 10**12)
SALES = st.builds(
    lambda sale, ret, zero, gross, back, sold, returned: {
        "receipts": sale + ret + zero,
        "sale_tx": sale,
        "return_tx": ret,
        "zero_tx": zero,
        "gross_sales": gross,
        "returns_value": back,
        "units_sold": sold,
        "units_returned": returned,
    },
    FEW, FEW, FEW, MONEY, MONEY, FEW, FEW,
)  # fmt: skip
States = dict[str, int]
TRADING = SALES.map(
    lambda of: (
        of
        | {"sale_tx": of["sale_tx"] + 1, "gross_sales": abs(of["gross_sales"]) + 1}
        | {"units_sold": of["units_returned"] + of["units_sold"] + 1}
    )
)
"""Every denominator is above zero."""
STATES = (
    "receipts",
    "sale_tx",
    "return_tx",
    "zero_tx",
    "gross_sales",
    "returns_value",
    "units_sold",
    "units_returned",
)
EMPTY: States = dict.fromkeys(STATES, 0)


def value(metric: str, states: States) -> Fraction | None:
    """The exact value, money in minor units."""
    found = METRICS[metric].value(states)[0]
    assert not isinstance(found, tuple)
    return found


def added(left: States, right: States) -> States:
    """The states of two stores as one."""
    return {name: left[name] + right[name] for name in left}


@given(of=TRADING)
def test_1_a_receipt_is_worth_its_pieces_times_their_price(of: States) -> None:
    items, price = value("avg_items_per_transaction", of), value("average_unit_retail", of)

    assert items is not None
    assert price is not None
    assert value("avg_transaction_value", of) == items * price


@given(of=SALES)
def test_2_net_sales_are_gross_sales_without_returns(of: States) -> None:
    assert value("net_sales", of) == (value("gross_sales", of) or 0) - (value("returns_value", of) or 0)


@given(of=SALES)
def test_3_receipts_are_sales_returns_and_neither(of: States) -> None:
    counted = [value(name, of) or 0 for name in ("sales_transactions_count", "return_transactions_count")]

    assert value("total_transactions_count", of) == sum(counted) + of["zero_tx"]


@given(left=SALES, right=SALES)
def test_4_every_total_of_two_parts_is_the_sum_of_their_totals(left: States, right: States) -> None:
    for metric in METRICS.values():
        if metric.formula.is_sum and metric.views == ("sales",):
            assert value(metric.id, added(left, right)) == (value(metric.id, left) or 0) + (
                value(metric.id, right) or 0
            )


def ratios() -> list[Metric]:
    """The metrics of `sales` that divide by something of it."""
    return [
        metric
        for metric in METRICS.values()
        if not metric.formula.is_sum and metric.views == ("sales",) and not metric.formula.names & STORE_FACTS
    ]


@given(left=TRADING, right=TRADING)
def test_12_a_ratio_of_sums_lies_between_the_ratios_of_its_parts(left: States, right: States) -> None:
    for metric in ratios():
        parts = [value(metric.id, of) for of in (left, right)]
        known = [part for part in parts if part is not None]
        whole = value(metric.id, added(left, right))
        assert whole is not None
        assert min(known) <= whole <= max(known)


@given(of=TRADING)
def test_12_an_empty_store_changes_nothing(of: States) -> None:
    for metric in (*ratios(), METRICS["net_sales"]):
        assert value(metric.id, added(of, EMPTY)) == value(metric.id, of)


def test_there_are_ratios_to_test() -> None:
    assert {metric.id for metric in ratios()} == {
        "return_rate", "avg_transaction_value", "avg_items_per_transaction", "average_unit_retail"
    }  # fmt: skip


def test_nothing_divided_by_nothing_is_null_and_not_zero() -> None:
    assert [value(metric.id, EMPTY) for metric in ratios()] == [None] * 4


def test_no_net_units_is_said_beside_the_null() -> None:
    assert METRICS["average_unit_retail"].value(EMPTY | {"units_returned": 2, "returns_value": 5}) == (
        None,
        ("no_net_units",),
    )


def test_a_rate_above_100_is_flagged_and_kept() -> None:
    assert METRICS["return_rate"].value(EMPTY | {"returns_value": 3, "gross_sales": 2}) == (
        Fraction(150),
        ("above_100",),
    )
