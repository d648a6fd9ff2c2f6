"""Formulas computed for many series at once are exact, and the first of them are those that exact numbers put first."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serving_layer.query.day_columns import NeedsWindowsError
from serving_layer.query.resolve import Ranking
from serving_layer.query.top import first_series, quotients
from views.core.formula import Formula

NUMBERS = st.integers(-5, 5) | st.integers(-(10**12), 10**12) | st.sampled_from([2**53, 2**53 + 1, 2**61])
TERMS = ("a", "b", "c")
PARTS = st.sampled_from([*TERMS, "3", "100", "0"])
FORMULAS = st.recursive(
    PARTS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("-{}".format, inner),
        st.builds("abs({})".format, inner),
        st.builds("least({}, {})".format, inner, inner),
    ),
    max_leaves=6,
)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=12)


@given(text=FORMULAS, rows=ROWS)
def test_a_formula_over_columns_is_the_formula_over_each_row(text: str, rows: list[tuple[int, int, int]]) -> None:
    formula = Formula(text)
    columns = {name: np.array([row[place] for row in rows]) for place, name in enumerate(TERMS)}

    try:
        found = quotients(formula, columns, len(rows))
    except NeedsWindowsError:  # a number might need more than 64 bits
        return

    values = [
        Fraction(over, under) if known else None
        for over, under, known in zip(found.over.tolist(), found.under.tolist(), found.known.tolist(), strict=True)
    ]
    assert values == [formula.value(dict(zip(TERMS, row, strict=True))) for row in rows]


@given(rows=ROWS, top=st.integers(1, 6), sort=st.sampled_from(["value", "-value"]))
def test_the_first_series_are_the_first_of_all(rows: list[tuple[int, int, int]], top: int, sort: str) -> None:
    columns = {name: np.array([row[place] for row in rows]) for place, name in enumerate(TERMS)}
    formula, names = Formula("a / b"), [(str(number),) for number in range(len(rows))]
    values = [formula.value(dict(zip(TERMS, row, strict=True))) for row in rows]

    def place(number: int) -> tuple[bool, Fraction, str]:
        value = values[number]
        assert value is None or isinstance(value, Fraction)
        return value is None, (-value if sort == "-value" else value) if value is not None else Fraction(0), str(number)

    ranking = Ranking("-value" if sort == "-value" else "value", top)
    found = first_series(quotients(formula, columns, len(rows)), names, np.arange(len(rows)), ranking)

    assert found == sorted(range(len(rows)), key=place)[:top]
