"""Formulas: read once, exact, and nothing but arithmetic."""

from fractions import Fraction

import pytest

from master_dataset.errors import DefinitionError
from views.core.formula import Formula
from views.core.metric import Metric


def test_a_formula_is_evaluated_exactly() -> None:
    assert Formula("(a - b) / c * 2 + -1").value({"a": 10, "b": 3, "c": 3}) == Fraction(14, 3) - 1


def test_a_zero_denominator_and_a_missing_value_make_null() -> None:
    assert Formula("1 + a / b").value({"a": 1, "b": 0}) is None
    assert Formula("a + b").value({"a": 1, "b": None}) is None


def test_a_formula_names_what_it_needs() -> None:
    assert Formula("sales_by_sku.sku_receipts / sales.sale_tx").names == {"sales_by_sku.sku_receipts", "sales.sale_tx"}


@pytest.mark.parametrize(
    "text", ["a b", "__import__('os')", "a ** b", "a if b else c", "1.5 * a", "a.b.c", "", "a // b", "True"]
)
def test_anything_but_arithmetic_is_refused_when_it_is_defined(text: str) -> None:
    with pytest.raises(DefinitionError):
        Formula(text)


def test_a_fact_that_no_store_has_is_refused_when_it_is_defined() -> None:
    with pytest.raises(DefinitionError, match="colour"):
        Metric("x", "X", Formula("gross_sales / store.colour"), "money", "sales")
