"""Groups of stores: versions by business day, taken as they are or refused by field."""

from datetime import date

import pytest

from master_dataset.errors import BadFileError
from master_dataset.registry.stores import GroupVersion, Store
from master_dataset.registry.stores_file import read

MOVES = """[{valid_from: 2026-06-01, region: East},
            {valid_from: 2026-01-01, region: West, format: city}]"""


def store_with(groups: str) -> Store:
    """A store of a file with these groups."""
    (store,) = read(f"stores: [{{id: 1, timezone: Europe/Berlin, groups: {groups}}}]")
    return store


def test_a_single_set_of_groups_is_always_valid() -> None:
    store = store_with("{region: West, format: city}")

    assert store.groups == (GroupVersion(None, {"region": "West", "format": "city"}),)
    assert store.group("region", date(1970, 1, 1)) == store.current_group("region") == "West"
    assert store.group("brand", date(2026, 1, 1)) is None
    assert store.group_names == {"region", "format"}


@pytest.mark.parametrize(
    ("day", "region", "form"),
    [
        (date(2025, 12, 31), None, None),
        (date(2026, 1, 1), "West", "city"),
        (date(2026, 5, 31), "West", "city"),
        (date(2026, 6, 1), "East", None),
        (date(2030, 1, 1), "East", None),
    ],
)
def test_a_version_is_the_whole_set_from_its_day_on(day: date, region: str | None, form: str | None) -> None:
    store = store_with(MOVES)

    assert (store.group("region", day), store.group("format", day)) == (region, form)
    assert (store.current_group("region"), store.current_group("format")) == ("East", None)
    assert store.group_names == {"region", "format"}


@pytest.mark.parametrize("groups", ["", "{}", "[]"])
def test_empty_groups_count_as_not_said(groups: str) -> None:
    assert store_with(groups) == Store("1", "Europe/Berlin", name="1")


def test_an_empty_value_leaves_the_group_out() -> None:
    assert store_with("{region: '', format: city}").group_names == {"format"}


def test_groups_come_back_from_the_registry_and_change_no_terms() -> None:
    store, bare = store_with(MOVES), store_with("")

    assert Store.from_json(store.to_json()) == store
    assert store.terms == bare.terms
    assert "groups" not in bare.to_json()


@pytest.mark.parametrize(
    ("groups", "code", "field"),
    [
        ("West", "wrong_type", "groups"),
        ("[West]", "wrong_type", "groups[0]"),
        ("{Region: West}", "bad_group", "groups"),
        ("{1st: West}", "bad_group", "groups"),
        (f"{{{'r' * 41}: West}}", "bad_group", "groups"),
        ("{region: [West]}", "wrong_type", "groups.region"),
        (f"{{region: {'W' * 101}}}", "out_of_range", "groups.region"),
        ("{valid_from: 2026-01-01, region: West}", "wrong_type", "groups.valid_from"),
        (f"{{{', '.join(f'g{n}: a' for n in range(21))}}}", "out_of_range", "groups"),
        ("[{region: West}]", "bad_time", "groups[0].valid_from"),
        ("[{valid_from: 2026-02-30, region: West}]", "bad_time", "groups[0].valid_from"),
        ("[{valid_from: 2026-01-01}, {valid_from: 2026-01-01, a: b}]", "duplicate_version", "groups[1].valid_from"),
        ("[{valid_from: 2026-01-01, region: {a: b}}]", "wrong_type", "groups[0].region"),
        (f"[{', '.join(['{valid_from: 2026-01-01}'] * 201)}]", "wrong_type", "groups"),
    ],
)
def test_wrong_groups_are_refused_by_field(groups: str, code: str, field: str) -> None:
    with pytest.raises(BadFileError) as caught:
        store_with(groups)

    assert caught.value.code == code
    assert str(caught.value).startswith(f"`stores[0].{field}`")


def test_a_store_without_groups_is_encoded_alike_before_and_after_it_was_decoded() -> None:
    store = Store(id="1", timezone="UTC")

    assert Store.from_json(store.to_json()).to_json() == store.to_json()
