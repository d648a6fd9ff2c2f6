"""What `stores.yaml` says of sensors, zones, days and comparisons: taken as it is, or refused by field."""

from dataclasses import replace
from datetime import date, time
from decimal import Decimal

import pytest

from master_dataset.errors import BadFileError
from master_dataset.registry.stores import Currency, GroupVersion, Sensor, Store, Zone
from master_dataset.registry.stores_file import read
from serving_layer.compare.comparable_stores import FirstDates, left_out
from serving_layer.query.sensor_coverage import registered_span

FULL = """
stores:
- id: 7
  timezone: Europe/Berlin
  country: DE
  subdivision: BY
  day_starts_at: 04:00
  closed_on: [2026-12-24, 2026-12-31]
  week_starts_on: sun
  comp_start_date: 2020-05-01
  conversion_target: 22.5
  sensors:
  - {id: cam-1, source: people_counts, line: door-A, from: 2024-01-01, to: 2025-01-01}
  - {id: cam-1, source: demographics}
  - {id: ap-2, source: wifi_sightings}
  - {id: q-1, source: queue_events, queue: Q1}
  - {id: st-4, source: zone_presence, zone: shoes}
  zones:
  - {id: shoes, m2: 80.25}
  - {id: hats}
"""
OLD = '{"id":"1","timezone":"UTC","name":"a","tenant":"t","currency":["CZK",2],"opening_hours":{"mon":["08:00-20:00"]},"floor_m2":"200.5","open_since":"2019-05-01"}'  # noqa: E501 - as it was written


def test_every_field_is_taken_as_it_is_said() -> None:
    (store,) = read(FULL)

    assert (store.country, store.subdivision, store.day_starts_at) == ("DE", "BY", "04:00")
    assert store.closed_on == (date(2026, 12, 24), date(2026, 12, 31))
    assert (store.week_starts_on, store.comp_start_date) == ("sun", date(2020, 5, 1))
    assert store.conversion_target == Decimal("22.5")
    assert store.sensors == (
        Sensor("cam-1", "people_counts", "door-A", date(2024, 1, 1), date(2025, 1, 1)),
        Sensor("cam-1", "demographics"),
        Sensor("ap-2", "wifi_sightings"),
        Sensor("q-1", "queue_events", "Q1"),
        Sensor("st-4", "zone_presence", "shoes"),
    )
    assert store.zones == (Zone("shoes", Decimal("80.25")), Zone("hats"))


def test_a_field_that_is_not_said_has_its_default() -> None:
    (store,) = read("stores: [{id: 1, timezone: UTC}]")

    assert store == Store("1", "UTC", name="1")
    assert (store.day_starts_at, store.week_starts_on, store.closed_on) == ("00:00", "mon", ())
    assert (store.sensors, store.zones, store.conversion_target, store.comp_start_date) == ((), (), None, None)


def test_an_empty_field_counts_as_not_said() -> None:
    empty = "country: , day_starts_at: '', closed_on: [], week_starts_on: , sensors: , zones: [], conversion_target: "

    assert read(f"stores: [{{id: 1, timezone: UTC, {empty}}}]") == read("stores: [{id: 1, timezone: UTC}]")


@pytest.mark.parametrize("text", [FULL, "stores: [{id: 1, timezone: UTC}]"])
def test_a_store_comes_back_from_the_registry_equal(text: str) -> None:
    (store,) = read(text)

    assert Store.from_json(store.to_json()) == store
    assert Store.from_json(store.to_json()).terms == store.terms


def test_a_store_that_was_registered_before_these_fields_is_still_read() -> None:
    store = Store.from_json(OLD)

    assert (store.id, store.currency, store.floor_m2) == ("1", Currency("CZK", 2), Decimal("200.5"))
    assert store.opening_hours == {"mon": ("08:00-20:00",)}
    assert (store.day_starts_at, store.sensors, store.country) == ("00:00", (), "")


def test_the_terms_of_a_store_are_what_its_records_are_read_with() -> None:
    (store,) = read(FULL)

    assert (store.terms.timezone, store.terms.day_starts_at) == ("Europe/Berlin", time(4))
    assert store.terms.zones == {"shoes", "hats"}
    assert store.terms.knows_sensor("cam-1", "people_counts")
    assert store.terms.knows_sensor("cam-1", "demographics")
    assert not store.terms.knows_sensor("cam-1", "queue_events")


@pytest.mark.parametrize(
    ("said", "code", "field"),
    [
        ("country: Slovakia", "unknown_value", "country"),
        ("country: sk", "unknown_value", "country"),
        ("country: [SK]", "wrong_type", "country"),
        ("subdivision: BY", "missing_field", "country"),
        ("country: DE, subdivision: {a: b}", "wrong_type", "subdivision"),
        ("day_starts_at: 04:10", "bad_time", "day_starts_at"),
        ("day_starts_at: 24:00", "bad_time", "day_starts_at"),
        ("day_starts_at: 4", "bad_time", "day_starts_at"),
        ("day_starts_at: '04:00:01'", "bad_time", "day_starts_at"),
        ("day_starts_at: '04:00+01:00'", "bad_time", "day_starts_at"),
        ("day_starts_at: [04:00]", "wrong_type", "day_starts_at"),
        ("closed_on: 2026-12-24", "wrong_type", "closed_on"),
        ("closed_on: [24.12.2026]", "bad_time", "closed_on[0]"),
        ("closed_on: [2026-12-24, 2026-02-29]", "bad_time", "closed_on[1]"),
        ("closed_on: ['']", "bad_time", "closed_on[0]"),
        ("closed_on: [[2026-12-24]]", "bad_time", "closed_on[0]"),
        ("week_starts_on: Monday", "unknown_value", "week_starts_on"),
        ("week_starts_on: 1", "unknown_value", "week_starts_on"),
        ("comp_start_date: soon", "bad_time", "comp_start_date"),
        ("open_since: 9999-12-31", "bad_time", "open_since"),
        ("open_since: 1799-12-31", "bad_time", "open_since"),
        ("comp_start_date: 2201-01-01", "bad_time", "comp_start_date"),
        ("closed_on: [0001-01-01]", "bad_time", "closed_on[0]"),
        ("sensors: [{id: a, source: demographics, from: 0001-01-01}]", "bad_time", "sensors[0].from"),
        ("groups: [{valid_from: 0001-01-01, region: West}]", "bad_time", "groups[0].valid_from"),
        ("conversion_target: 0", "out_of_range", "conversion_target"),
        ("conversion_target: 100.1", "out_of_range", "conversion_target"),
        ("conversion_target: -5", "out_of_range", "conversion_target"),
        ("conversion_target: 20%", "bad_number", "conversion_target"),
        ("conversion_target: 22.12345", "bad_number", "conversion_target"),
        ("conversion_target: 1e-999999999999", "bad_number", "conversion_target"),
        ("floor_m2: 80.255", "bad_number", "floor_m2"),
        ("floor_m2: 1e-999999999999", "bad_number", "floor_m2"),
        ("zones: [{id: a, m2: 1e-999999999999}]", "bad_number", "zones[0].m2"),
        ("sensors: cam-1", "wrong_type", "sensors"),
        ("sensors: {id: cam-1}", "wrong_type", "sensors"),
        ("sensors: [cam-1]", "wrong_type", "sensors[0]"),
        ("sensors: [{source: people_counts}]", "missing_field", "sensors[0].id"),
        ("sensors: [{id: '', source: people_counts}]", "missing_field", "sensors[0].id"),
        (f"sensors: [{{id: {'c' * 65}, source: people_counts}}]", "missing_field", "sensors[0].id"),
        ("sensors: [{id: a}]", "unknown_value", "sensors[0].source"),
        ("sensors: [{id: a, source: cameras}]", "unknown_value", "sensors[0].source"),
        ("sensors: [{id: a, source: demographics}, {id: b}]", "unknown_value", "sensors[1].source"),
        ("sensors: [{id: a, source: demographics, door: A}]", "unknown_field", "sensors[0].door"),
        ("sensors: [{id: a, source: demographics, line: [A]}]", "wrong_type", "sensors[0]"),
        ("sensors: [{id: a, source: demographics, from: yesterday}]", "bad_time", "sensors[0].from"),
        ("sensors: [{id: a, source: demographics, to: 2026-13-01}]", "bad_time", "sensors[0].to"),
        ("sensors: [{id: a, source: demographics, from: 2026-02-01, to: 2026-02-01}]", "out_of_range", "sensors[0].to"),
        ("zones: shoes", "wrong_type", "zones"),
        ("zones: [shoes]", "wrong_type", "zones[0]"),
        ("zones: [{m2: 8}]", "missing_field", "zones[0].id"),
        ("zones: [{id: a, m2: big}]", "bad_number", "zones[0].m2"),
        ("zones: [{id: a, m2: 0}]", "out_of_range", "zones[0].m2"),
        ("zones: [{id: a, m2: 10000001}]", "out_of_range", "zones[0].m2"),
        ("zones: [{id: a, area: 8}]", "unknown_field", "zones[0].area"),
        (f"zones: [{', '.join(['{id: a}'] * 1001)}]", "wrong_type", "zones"),
    ],
)
def test_a_wrong_field_is_refused_by_its_name(said: str, code: str, field: str) -> None:
    with pytest.raises(BadFileError) as caught:
        read(f"stores: [{{id: 1, timezone: UTC, {said}}}]")

    assert caught.value.code == code
    assert str(caught.value).startswith(f"`stores[0].{field}`")


def test_zeroes_behind_the_last_decimal_are_left_out() -> None:
    (store,) = read(f"stores: [{{id: 1, timezone: UTC, floor_m2: 80.25{'0' * 5_000}, conversion_target: 22.12340}}]")

    assert (str(store.floor_m2), str(store.conversion_target)) == ("80.25", "22.1234")


def test_the_sentence_names_the_limit_of_decimals() -> None:
    with pytest.raises(BadFileError, match=r"`stores\[0\].floor_m2` must have at most 2 decimals"):
        read("stores: [{id: 1, timezone: UTC, floor_m2: 0.001}]")


TINY = Decimal("1e-999999999999")


def test_a_number_that_was_registered_before_the_limit_is_rounded_and_none_if_nothing_is_left() -> None:
    tiny = Store(
        "1", "UTC", floor_m2=TINY, conversion_target=TINY, zones=(Zone("a", TINY), Zone("b", Decimal("8.256")))
    )

    assert Store.from_json(tiny.to_json()) == Store("1", "UTC", zones=(Zone("a"), Zone("b", Decimal("8.26"))))
    assert Store.from_json(Store("1", "UTC", floor_m2=200).to_json()).floor_m2 == 200


def test_the_first_and_the_last_day_of_all_are_taken() -> None:
    (store,) = read("stores: [{id: 1, timezone: UTC, open_since: 1800-01-01, comp_start_date: 2200-12-31}]")

    assert (store.open_since, store.comp_start_date) == (date(1800, 1, 1), date(2200, 12, 31))


def test_the_sentence_names_the_limits_of_days() -> None:
    with pytest.raises(BadFileError, match="must lie between 1800-01-01 and 2200-12-31"):
        read("stores: [{id: 1, timezone: UTC, open_since: 9999-12-31}]")


def test_a_day_that_was_registered_before_the_limits_is_the_limit() -> None:
    first, last = date(1, 1, 1), date(9999, 12, 31)
    far = Store(
        "1",
        "America/New_York",
        open_since=last,
        comp_start_date=first,
        sensors=(Sensor("a", "demographics", "", first, last),),
        groups=(GroupVersion(first, {"region": "West"}),),
    )

    found = Store.from_json(far.to_json())

    first, last = date(1800, 1, 1), date(2200, 12, 31)
    assert (found.open_since, found.comp_start_date) == (last, first)
    assert found.sensors == (Sensor("a", "demographics", "", first, last),)
    assert found.groups == (GroupVersion(first, {"region": "West"}),)
    assert left_out(replace(found, comp_start_date=None), FirstDates(date(2026, 3, 7), None)) is not None
    assert registered_span(found, found.sensors[0]).start < 0
