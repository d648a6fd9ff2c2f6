"""Formulas: read once, exact, and nothing but arithmetic."""

from fractions import Fraction

import pytest

from master_dataset.errors import DefinitionError
from views.core.formula import Formula
from views.core.metric import Caution, Metric
from views.registry import view_named


def test_a_formula_is_evaluated_exactly() -> None:
    assert Formula("(a - b) / c * 2 + -1").value({"a": 10, "b": 3, "c": 3}) == Fraction(14, 3) - 1


def test_a_zero_denominator_and_a_missing_value_make_null() -> None:
    assert Formula("1 + a / b").value({"a": 1, "b": 0}) is None
    assert Formula("a + b").value({"a": 1, "b": None}) is None


def test_a_formula_names_what_it_needs() -> None:
    assert Formula("sales_by_sku.sku_receipts / sales.sale_tx").names == {"sales_by_sku.sku_receipts", "sales.sale_tx"}


@pytest.mark.parametrize(
    "text",
    [
        "total(1)",
        "percentile(wait)",
        "percentile(wait, 1.5)",
        "distinct(1)",
        "least(a)",
        "abs(a, b)",
        "inside(a, b.c)",
        "a(kind=1)",
        "a(kind=())",
        "a(1)",
        "total(inside(a, b))",
        "a b",
        "__import__('os')",
        "a ** b",
        "a if b else c",
        "1.5 * a",
        "a.b.c",
        "",
        "a // b",
        "True",
    ],
)
def test_anything_but_arithmetic_is_refused_when_it_is_defined(text: str) -> None:
    with pytest.raises(DefinitionError):
        Formula(text)


def test_a_fact_that_no_store_has_is_refused_when_it_is_defined() -> None:
    with pytest.raises(DefinitionError, match="colour"):
        Metric("x", "X", Formula("gross_sales / store.colour"), "money", "sales")


def test_a_term_says_of_which_cells_and_what_is_taken() -> None:
    filtered, whole, spread = Formula('a.b(kind=("x", "y")) + total(c(kind="z")) + percentile(d, 90)').terms

    assert (filtered.view, filtered.states, filtered.where) == ("a", ("b",), (("kind", ("x", "y")),))
    assert (whole.is_total, whole.where, whole.text) == (True, (("kind", ("z",)),), 'total(c(kind="z"))')
    assert (spread.function, spread.number, spread.is_distribution) == ("percentile", 90, True)


@pytest.mark.parametrize(
    ("text", "lacks"),
    [("colour", "colour"), ('people(colour="red")', "colour"), ("percentile(people, 50)", "Histogram")],
)
def test_a_term_that_its_view_does_not_give_is_refused(text: str, lacks: str) -> None:
    [term] = Formula(text).terms

    with pytest.raises(DefinitionError, match=lacks):
        term.columns(view_named("demographics"))


def test_a_flag_that_was_not_announced_is_refused_when_it_is_defined() -> None:
    with pytest.raises(DefinitionError, match="declare all its flags"):
        Metric("x", "X", Formula("people"), "n", "demographics", cautions=(Caution(Formula("people"), "many"),))


def test_of_nothing_only_what_is_no_share_and_no_average_is_zero() -> None:
    assert (Formula("a / 3600").is_sum, Formula("a / b").is_sum, Formula("bins(stay)").is_sum) == (True, False, False)


def test_a_dimension_of_the_answer_can_be_looked_for_in_another_one() -> None:
    [term] = Formula("sales_by_sku.sku_receipts(sku=with_sku)").terms

    assert (term.renamed, term.where) == ((("sku", "with_sku"),), ())
    with pytest.raises(DefinitionError, match="by which it need not be split"):
        Metric("x", "x", Formula(term.text), "n", "basket_pairs", note="x")
    with pytest.raises(DefinitionError, match="does not have"):
        Formula("sales_by_sku.sku_receipts(door=with_sku)").terms[0].columns(view_named("sales_by_sku"))
