"""Identities 1 to 5, 9, 11 and 12 of the metrics catalogue, of any states: exact on fractions, no tolerance."""

from collections.abc import Mapping
from fractions import Fraction

from hypothesis import assume, example, given
from hypothesis import strategies as st

from views.core.metric import Metric
from views.metrics import registered_metrics
from views.metrics.demographics import MIDPOINTS
from views.registry import registered_views

METRICS = registered_metrics()
VIEWS = {view.name: view for view in registered_views()}
States = Mapping[str, int]
"""Term, with its view, to what it is worth."""


def key(metric: Metric, text: str) -> str:
    """The term with the name of its view."""
    return text if metric.terms[text].view else f"{metric.view}.{text}"


def value(metric: str, of: States) -> Fraction | None:
    """The exact value, money in minor units."""
    definition = METRICS[metric]
    found = definition.value({text: of.get(key(definition, text), 0) for text in definition.terms})[0]
    assert not isinstance(found, tuple)
    return found


def known(metric: str, of: States) -> Fraction:
    found = value(metric, of)
    assert found is not None
    return found


def added(left: States, right: States) -> States:
    """The states of two stores as one."""
    return {name: left[name] + right[name] for name in left}


def is_summed(metric: Metric) -> bool:
    """Whether all that it takes of cells are sums, and nothing of the store."""
    columns = [(metric.view_of(term), name) for term in metric.terms.values() for name in term.states]
    plain = not metric.facts and not any(term.function for term in metric.terms.values())
    return plain and all(VIEWS[view].columns[name].by == "sum" for view, name in columns)


TOTALS = [metric for metric in METRICS.values() if is_summed(metric) and metric.formula.is_sum]
RATIOS = [metric for metric in METRICS.values() if is_summed(metric) and not metric.formula.is_sum]
KEYS = sorted({key(metric, text) for metric in (*TOTALS, *RATIOS) for text in metric.terms})
ANY = st.fixed_dictionaries({name: st.integers(0, 10**9) for name in KEYS})
NOTHING = dict.fromkeys(KEYS, 0)
RISING = {name: number for number, name in enumerate(KEYS, 2)}
FALLING = {name: number for number, name in enumerate(reversed(KEYS), 2)}
"""One of them has a positive difference of any two states."""


def test_there_are_totals_and_ratios_to_test() -> None:
    assert len(TOTALS) > 20
    assert len(RATIOS) > 25


@st.composite
def trading(draw: st.DrawFn) -> States:
    """A shop that sold something to somebody, with nothing that a shop cannot have."""
    sale_tx, back, many = draw(st.integers(1, 10**6)), draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6))
    returned = draw(st.integers(0, 10**6))
    return {
        "sales.sale_tx": sale_tx,
        "sales.return_tx": draw(st.integers(0, 10**6)),
        "sales.gross_sales": back + draw(st.integers(-(10**12), 10**12)),
        "sales.returns_value": back,
        "sales.units_sold": returned + 1 + many,
        "sales.units_returned": returned,
        "traffic.people_in": draw(st.integers(1, 10**6)),
    }


@given(of=trading())
def test_1_a_visitor_is_worth_what_buyers_are_and_a_receipt_its_pieces_times_their_price(of: States) -> None:
    receipt = known("avg_transaction_value", of)

    assert known("shopper_yield", of) == known("conversion_rate", of) / 100 * receipt
    assert receipt == known("avg_items_per_transaction", of) * known("average_unit_retail", of)


@given(of=trading())
def test_2_net_sales_are_visitors_times_conversion_times_pieces_times_price(of: States) -> None:
    per_visitor = known("avg_items_per_transaction", of) * known("average_unit_retail", of)

    assert known("net_sales", of) == known("traffic_in", of) * known("conversion_rate", of) / 100 * per_visitor
    assert known("net_sales", of) == known("gross_sales", of) - known("returns_value", of)


@given(sale=st.integers(0, 10**6), back=st.integers(0, 10**6), zero=st.integers(0, 10**6))
def test_3_receipts_are_sales_returns_and_neither(sale: int, back: int, zero: int) -> None:
    of = {"sales.sale_tx": sale, "sales.return_tx": back, "sales.receipts": sale + back + zero}
    counted = [known(name, of) for name in ("sales_transactions_count", "return_transactions_count")]

    assert known("total_transactions_count", of) == sum(counted) + zero


@given(left=ANY, right=ANY)
def test_4_every_total_of_two_parts_is_the_sum_of_their_totals(left: States, right: States) -> None:
    for metric in TOTALS:
        if metric.only is None:
            assert known(metric.id, added(left, right)) == known(metric.id, left) + known(metric.id, right)


@given(bounced=st.integers(0, 999), stayed=st.integers(0, 999), passed=st.integers(1, 999))
def test_5_of_devices_in_range_some_came_in_and_of_those_some_bounced(bounced: int, stayed: int, passed: int) -> None:
    in_store = bounced + stayed
    of = {"outside": passed + in_store, "in_store": in_store, "bounced": bounced}
    seen = {f"wifi_visits.{name}": count for name, count in of.items()}
    capture = known("capture_rate", seen) / 100

    assert 0 <= capture <= 1
    assert known("turn_in_ratio", seen) / 100 == capture / (1 - capture)
    assert known("passers_by", seen) == passed
    if in_store:
        assert known("bounce_rate", seen) + known("stayed_share", seen) == 100


@given(served=st.integers(0, 999), abandoned=st.integers(0, 999), within=st.integers(0, 999))
def test_9_rates_of_a_queue_lie_between_0_and_100(served: int, abandoned: int, within: int) -> None:
    of = {"queue.served": served, "queue.abandoned": abandoned, "queue.within_target": min(within, served)}
    found = [value(metric, of) for metric in ("queue_abandonment_rate", "queue_service_level")]

    assert all(rate is None or 0 <= rate <= 100 for rate in found)


@given(people=st.lists(st.integers(0, 999), min_size=len(MIDPOINTS), max_size=len(MIDPOINTS)))
def test_11_shares_of_all_bands_add_up_to_100_and_the_average_lies_among_the_midpoints(people: list[int]) -> None:
    assume(sum(people))
    bands = ", ".join(f'"{band}"' for band in MIDPOINTS)
    every = f"people(age_band=({bands}))"
    of = {f'demographics.people(age_band="{band}")': count for band, count in zip(MIDPOINTS, people, strict=True)}
    all_known = {f"demographics.total({every})": sum(people)}
    shares = [known("age_band_share", all_known | {f"demographics.{every}": count}) for count in people]

    assert sum(shares) == 100
    assert 7 <= known("avg_age", of | {f"demographics.{every}": sum(people)}) <= 72


@given(female=st.integers(0, 999), male=st.integers(0, 999))
def test_11_women_and_men_are_all_whose_gender_is_known(female: int, male: int) -> None:
    assume(female + male)
    of = {'people(gender="female")': female, 'people(gender="male")': male}
    of |= {'people(gender=("female", "male"))': female + male}
    seen = {f"demographics.{text}": count for text, count in of.items()}

    assert known("female_rate", seen) + known("male_rate", seen) == 100


@given(left=ANY, right=ANY)
@example(left=RISING, right=dict.fromkeys(KEYS, 3))
@example(left=RISING, right={name: 3 * amount for name, amount in RISING.items()})
@example(left=FALLING, right={name: 3 * amount for name, amount in FALLING.items()})
def test_12_a_ratio_of_sums_lies_between_the_ratios_of_its_parts(left: States, right: States) -> None:
    for metric in (each for each in RATIOS if each.id != "pair_lift"):  # a ratio of products
        if is_a_ratio(metric, left) and is_a_ratio(metric, right):
            parts = [known(metric.id, of) for of in (left, right)]
            assert min(parts) <= known(metric.id, added(left, right)) <= max(parts)


def test_12_covers_every_ratio() -> None:
    assert [each.id for each in RATIOS if not (is_a_ratio(each, RISING) or is_a_ratio(each, FALLING))] == []


def is_a_ratio(metric: Metric, of: States) -> bool:
    """Whether it is divided by something positive, and has a value."""
    divided = divisor(metric, of)
    return divided is not None and divided > 0 and is_said(metric, of)


def is_said(metric: Metric, of: States) -> bool:
    """Whether the store has a value at all, such as of what only some tills send."""
    return metric.only is None or value(metric.id, of) is not None


def divisor(metric: Metric, of: States) -> Fraction | None:
    found = metric.formula.denominator({text: of[key(metric, text)] for text in metric.terms})
    nothing = metric.id == "temperature_avg" and not of["weather.temperature_mc_n"]  # it divides by 1000 at last
    return found if isinstance(found, Fraction) and not nothing else None


@given(of=ANY)
def test_12_an_empty_store_changes_nothing(of: States) -> None:
    for metric in (*RATIOS, *TOTALS):
        assert value(metric.id, added(of, NOTHING)) == value(metric.id, of)


def test_nothing_divided_by_nothing_is_null_and_not_zero() -> None:
    assert {metric.id: value(metric.id, NOTHING) for metric in RATIOS} == {metric.id: None for metric in RATIOS}


def test_no_net_units_is_said_beside_the_null() -> None:
    of = dict.fromkeys(METRICS["average_unit_retail"].terms, 0)

    assert METRICS["average_unit_retail"].value(of | {"units_returned": 2, "returns_value": 5}) == (
        None,
        ("no_net_units",),
    )


def test_a_rate_above_100_is_flagged_and_kept() -> None:
    assert METRICS["return_rate"].value({"returns_value": 3, "gross_sales": 2}) == (Fraction(150), ("above_100",))
