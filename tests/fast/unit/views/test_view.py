"""Views: registered by being there, refused at import when they cannot work, hashed by what they say."""

from dataclasses import replace

import pytest

from master_dataset.errors import DefinitionError, UnknownNameError
from master_dataset.parsing.rows import output_schema
from master_dataset.visits.rows import VISITS
from views import registered_views, view_named
from views.core import Count, Mean, Min, Sum, View
from views.core.view import Each, columns_in, overlaps, window_sql
from views.sales import SALES


def test_every_file_of_the_folder_is_registered_with_its_question() -> None:
    found = {view.name: view.question for view in registered_views()}

    assert set(found) == {
        "basket_pairs",
        "basket_sizes",
        "coverage",
        "demographics",
        "discounts",
        "labor",
        "payments",
        "queue",
        "queue_length",
        "queue_peak",
        "returns_by_sku",
        "sales",
        "sales_by_sku",
        "sales_by_till",
        "traffic",
        "weather",
        "wifi_devices",
        "wifi_visits",
        "zone_traffic",
    }
    assert found["sales"].startswith("What did we sell?")
    assert all("?" in question for question in found.values())


def test_an_unknown_view_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError) as refused:
        view_named("sale")

    assert "sales" in refused.value.do


@pytest.mark.parametrize("change", [{"name": "Sales"}, {"metrics": {}}])
def test_a_view_that_cannot_work_is_refused_where_it_is_written(change: dict[str, object]) -> None:
    with pytest.raises(DefinitionError):
        replace(SALES, **change)  # type: ignore[arg-type]


def test_the_hash_changes_with_whatever_changes_an_answer_and_with_nothing_else() -> None:
    same = replace(SALES, question="put differently")
    others = [
        replace(SALES, where="is_sale"),
        replace(SALES, dimensions={}),
        replace(SALES, metrics={**SALES.metrics, "lines": Sum("units_sold")}),
        replace(SALES, at="received_at"),
    ]

    assert same.definition_hash == SALES.definition_hash
    assert SALES.definition_hash not in {view.definition_hash for view in others}


def test_states_merge_column_by_column_and_present_composites_as_objects() -> None:
    view = View("v", SALES.source, {"n": Count(), "mean": Mean("x"), "least": Min("x")})

    merged = view.merge((1, 10, 1, None), (2, 5, 1, 7))

    assert merged == (3, 15, 2, 7)
    assert view.present_states(merged) == {"n": 3, "mean": {"sum": 15, "n": 2}, "least": 7}
    assert view.merge_all([]) is None


def test_windows_are_quarter_hours_of_utc_seconds() -> None:
    assert window_sql("at") == "unix_seconds(at) - pmod(unix_seconds(at), 900L)"


@pytest.mark.parametrize("view", registered_views(), ids=lambda view: view.name)
def test_a_view_reads_only_columns_that_its_rows_have(view: View) -> None:
    rows = VISITS if view.counts_visits else output_schema(view.source)

    assert view.columns_read <= set(rows.names)


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("true", set()),
        ("if(change = 'join', wait_ms, null)", {"change", "wait_ms"}),
        ("item.sku", {"item"}),
        ("array_contains(flags, 'is_sale')", {"flags"}),
        ("transform(items, w -> w.price * factor)", {"items", "factor"}),
        ("`group` >= 5L and pmod(group_in, 2) = 0", {"group", "group_in"}),
    ],
)
def test_the_columns_of_an_expression_are_found_and_nothing_else(expression: str, columns: set[str]) -> None:
    assert columns_in(expression) == columns


@pytest.mark.parametrize("expression", ["", "a +", "a b c", "foo("])
def test_text_that_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(DefinitionError, match="Spark SQL"):
        columns_in(expression)


def test_events_add_to_several_windows_where_the_instant_is_a_field_of_the_element() -> None:
    each = overlaps("started_us", "happened_at")
    spread = replace(SALES, each=each, at="part.at")

    assert spread.is_spread
    assert not replace(SALES, each=each, at="happened_at").is_spread
    assert not replace(SALES, each=Each("part", of="parts"), at="if(is_sale, happened_at, partial)").is_spread
    assert {"started_us", "happened_at"} <= spread.columns_read
    assert "part" not in spread.columns_read
