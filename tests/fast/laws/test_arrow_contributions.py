"""What events contribute by Arrow: the rows of plain Python, however the events are split, also into none."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from master_dataset.errors import DefinitionError
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import Event
from master_dataset.parsing.rows import EVENT
from tests.integration.test_view_sql import STORE, TOPICS, of, parsed_table, sent
from tests.support.rows import contributions as plain
from tests.support.sensors import source_of
from views import registered_views
from views.arrow.contributions import EVENT_ROW, check, contributions, windows
from views.arrow.expressions import Rows, compiled, evaluate
from views.core import View
from views.core.cells import CellKey
from views.core.sketch import sketch_of


def events_of(topic: str) -> pa.Table:
    table = parsed_table(topic)
    return table.filter(pc.equal(table["kind"], EVENT))


def counted(view: View, found: pa.Table, first: int = 0) -> Counter[Any]:
    """Event, cell, and states. `first`: the number of the first event."""
    columns = found.to_pydict()
    unions = [column.by == "union" for column in view.columns.values()]
    rows = Counter[Any]()
    for row in range(found.num_rows):
        states = [columns[f"s{at}"][row] for at, _ in enumerate(unions)]
        states = [sketch_of([each]) if union else each for union, each in zip(unions, states, strict=True)]
        key = CellKey(columns["window"][row], tuple(columns[f"d{at}"][row] for at, _ in enumerate(view.dimensions)))
        rows[first + columns[EVENT_ROW][row], key, tuple(states)] += 1
    return rows


@pytest.mark.parametrize("topic", TOPICS)
def test_events_contribute_what_plain_python_says(topic: str) -> None:
    source, rows = source_of(topic), Rows.of(events_of(topic))
    stamped = [
        parse(source, value, lambda _: STORE.terms, received_us=int(at.timestamp() * 1e6)) for at, value in sent(topic)
    ]
    events = [each for each in stamped if isinstance(each, Event)]

    for view in (view for view in of(topic) if not view.counts_visits):
        expected = Counter[Any]()
        for number, event in enumerate(events):
            for key, states in plain(view, event):
                expected[number, key, tuple(states)] += 1
        assert counted(view, contributions(view, rows)) == expected
        assert expected


@pytest.mark.parametrize("topic", TOPICS)
def test_events_contribute_the_same_one_by_one_and_none_contribute_nothing(topic: str) -> None:
    events = events_of(topic).slice(0, 60)
    for view in (view for view in of(topic) if not view.counts_visits):
        whole = contributions(view, Rows.of(events))
        single = Counter[Any]()
        for number in range(events.num_rows):
            one = contributions(view, Rows.of(events.slice(number, 1)))
            assert one.schema == whole.schema
            single += counted(view, one, number)
        none = contributions(view, Rows.of(events.slice(0, 0)))

        assert single == counted(view, whole)
        assert (none.schema, none.num_rows) == (whole.schema, 0)
        assert windows(view, Rows.of(events.slice(0, 0))).num_rows == 0


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("rand()", "rand"),
        ("a / 2", "div"),
        ("a div b", "a division by anything but a whole number above zero"),
        ("cast(a as int)", "INT"),
        ("a like 'x%'", "like"),
        ("1.5 * a", "numbers that are not whole"),
        ("sum(a)", "sum"),
        ("sort_array(a, false)", "arraysort with asc"),
        ("array_sort(a)", "array_sort"),
        ("element_at(a, 1)", "bracket with offset"),
        ("sequence(1, a, 2)", "generateseries with step"),
        ("a in (select 1)", "in with query"),
        ("aggregate(a, 0, (x, y) -> x + y)", "reduce"),
    ],
)
def test_what_views_cannot_use_is_refused_by_name(expression: str, named: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        compiled(expression)

    assert f"views cannot use {named}" in refused.value.message.replace("`", "").partition(": ")[2]


def test_every_registered_view_can_be_evaluated_and_another_is_refused() -> None:
    check(registered_views())

    with pytest.raises(DefinitionError, match="rand"):
        check([replace(registered_views()[0], where="rand() > 0")])


def test_values_of_other_types_are_named() -> None:
    with pytest.raises(DefinitionError, match="`a = 'x'` cannot be evaluated"):
        evaluate("a = 'x'", Rows.of(pa.table({"a": [1]})))


def test_an_element_beyond_the_end_is_an_error_but_where_it_is_not_needed() -> None:
    lists = Rows.of(pa.table({"a": [[1], [1, 2], None]}))

    assert evaluate("if(size(a) > 1, a[1], null)", lists).to_pylist() == [None, 2, None]
    with pytest.raises(DefinitionError, match="beyond the end"):
        evaluate("a[1]", lists)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("if(a > 9, 0, a + 1)", [0, 2, None]),
        ("case when a > 9 then 0 else a * 2 end", [0, 2, None]),
        ("a < 9 and a + 1 < 9", [False, True, None]),
        ("a > 9 or a + 1 < 9", [True, True, None]),
        ("coalesce(if(a > 9, a, null), a + 1, 7)", [2**63 - 1, 2, 7]),
    ],
)
def test_what_is_not_needed_is_not_computed(expression: str, expected: list[object]) -> None:
    assert evaluate(expression, Rows.of(pa.table({"a": [2**63 - 1, 1, None]}))).to_pylist() == expected


def test_expressions_that_are_written_alike_are_told_apart() -> None:
    rows = Rows.of(pa.table({"a": [True], "b": [False]}))

    assert evaluate("case a or b when b then 1 else 0 end", rows).to_pylist() == [0]
    assert evaluate("a or b = b", rows).to_pylist() == [True]


def test_elements_below_a_null_list_are_ignored() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    rows = Rows.of(pa.table({"l": lists}))

    assert evaluate("filter(l, x -> x > 0)", rows).to_pylist() == [None, [3]]
    assert evaluate("array_contains(l, 3)", rows).to_pylist() == [None, True]
    assert evaluate("transform(l, x -> x + 1)", rows).to_pylist() == [None, [4]]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(DefinitionError, match="there is no column `b`"):
        evaluate("a + b", Rows.of(pa.table({"a": [1]})))


def test_an_overflow_is_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid, match="overflow"):
        evaluate("a + 1", Rows.of(pa.table({"a": [2**63 - 1]})))
