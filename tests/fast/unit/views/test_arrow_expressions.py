"""What is evaluated once over some rows, and what only looks alike."""

import pyarrow as pa

from views.arrow.expressions import Rows, evaluate

ROWS = pa.table({"a": ["x", "X"], "A": ["X", "x"], "s": [{"b": 1, "B": 2}, {"b": 3, "B": 4}]})


def test_texts_and_names_that_differ_in_case_alone_are_different() -> None:
    rows = Rows.of(ROWS)
    texts = ("if(a = 'x', 1, 2)", "if(a = 'X', 1, 2)", "if(A = 'x', 1, 2)", "s.b", "s.B")

    assert [evaluate(text, rows).to_pylist() for text in texts] == [[1, 2], [2, 1], [2, 1], [1, 3], [2, 4]]


def test_an_expression_is_evaluated_once_wherever_it_occurs() -> None:
    asked: list[str] = []

    def column() -> pa.Array:
        asked.append("n")
        return pa.array([1, 2])

    rows = Rows({"n": column}, 2)

    assert evaluate("n + 1", rows) is evaluate("n + 1", rows)
    assert asked == ["n"]
