"""States of cells in the units of people, and corrections by store and day."""

from datetime import date

import pytest

from master_dataset.registry.stores import Store
from serving_layer.pages.cells import (
    DIMENSION_NAMES,
    SOURCE_NAMES,
    VIEW_NAMES,
    percent_change,
    shown_difference,
    shown_state,
    state_name,
)
from serving_layer.pages.corrections import corrected_days, first_loaded
from serving_layer.pages.language import MINUS, UNKNOWN
from serving_layer.responses.publications import Correction
from views import registered_views

BRATISLAVA = Store(id="12", timezone="Europe/Bratislava", name="Kosice")
STORES = {"12": BRATISLAVA}


def row(  # noqa: PLR0913, PLR0917 - a test says what is not as ever
    state: str,
    shown: int | None,
    corrected: int | None,
    window: str = "2026-11-21T10:00:00Z",
    view: str = "sales",
    store: str = "12",
    events: tuple[str, ...] = ("one",),
) -> Correction:
    return Correction(
        view=view,
        store=store,
        window=window,
        dimensions={"currency": "EUR"} if view == "sales" else {},
        state=state,
        shown=shown,
        corrected=corrected,
        cause="waited",
        events=events,
        events_total=1,
        difference=(corrected or 0) - (shown or 0),
    )


@pytest.mark.parametrize(
    ("state", "value", "code", "text"),
    [
        ("gross_sales", 123456, "EUR", "€1,234.56"),
        ("gross_sales", 5400, "JPY", "¥5,400"),
        ("returns_value", -1290, "EUR", f"{MINUS}€12.90"),
        ("units_sold", 1200, "EUR", "1,200"),
        ("wait_ms", 125_000, "EUR", "2 min 05 s"),
        ("coldest_mc", -1500, "EUR", f"{MINUS}1.5 °C"),
        ("device", "AgEH", "EUR", "estimate"),
        ("units_sold", None, "EUR", UNKNOWN),
    ],
)
def test_a_state_is_shown_in_its_unit(state: str, value: int | str | None, code: str, text: str) -> None:
    assert shown_state(state, value, code) == text


def test_a_difference_has_a_sign_and_a_change_in_percent() -> None:
    assert (shown_difference("gross_sales", 1290, "EUR"), percent_change(4380, 5670)) == ("+€12.90", "+29.5 %")
    assert (shown_difference("receipts", -2, "EUR"), percent_change(4, 2)) == (f"{MINUS}2", f"{MINUS}50.0 %")
    assert [percent_change(*each) for each in ((None, 2), (0, 2), (1, 100), (10_000, 10_001))] == ["", "", "", ""]


def test_every_view_source_and_dimension_has_a_name_in_words() -> None:
    views = registered_views()

    assert {view.name for view in views} == VIEW_NAMES.keys()
    assert {view.source.topic for view in views} == SOURCE_NAMES.keys()
    assert {name for view in views for name in view.dimensions} == DIMENSION_NAMES.keys()


def test_states_have_names_in_words() -> None:
    assert (state_name("gross_sales"), state_name("wait_3")) == ("Gross sales", "Waiting time, range 4")
    assert state_name("flag_total_mismatch") == "Total mismatch"


def test_the_rows_of_a_cell_stand_together_in_the_business_day_of_its_store() -> None:
    late = "2026-11-20T23:30:00Z"  # half past midnight in Bratislava
    rows = [row("units_sold", 1, 2), row("gross_sales", 500, 900), row("receipts", 1, 2, late), row("receipts", 0, 1)]

    [day] = corrected_days([*rows, row("people_in", 4, 5, view="traffic")], STORES)

    assert (day.id, day.day, day.zone) == ("12", date(2026, 11, 21), "Europe/Bratislava")
    assert [[state.id for state in cell.states] for cell in day.cells] == [
        ["units_sold", "gross_sales", "receipts"],
        ["receipts"],
        ["people_in"],
    ]
    assert day.cells[0].states[1][2:] == ("€5.00", "€9.00", "+€4.00", "+80.0 %")


def test_what_did_not_change_is_left_out() -> None:
    assert corrected_days([row("units_sold", 0, 0), row("lines", None, 0)], STORES) == []


def test_what_readers_had_never_seen_is_a_first_load_and_no_correction() -> None:
    loaded = [row("units_sold", None, 2, events=()), row("lines", None, 2, events=())]

    assert corrected_days(loaded, STORES) == []
    assert first_loaded([*loaded, row("units_sold", None, 2, "2026-11-21T10:15:00Z")]) == 1
    assert len(corrected_days([row("units_sold", None, 2)], STORES)) == 1


def test_the_newest_day_comes_first_and_unregistered_stores_have_days_in_utc() -> None:
    rows = [
        row("lines", 1, 2, "2026-11-19T23:30:00Z", store="77"),
        row("lines", 1, 2, "2026-11-20T23:30:00Z", store="77"),
    ]

    assert [(each.day, each.zone) for each in corrected_days(rows, STORES)] == [
        (date(2026, 11, 20), "UTC"),
        (date(2026, 11, 19), "UTC"),
    ]
