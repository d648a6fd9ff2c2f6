"""Shops of two tenants and two currencies, of which one has a sensor, on the morning after a Friday."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from master_dataset.registry.stores import Sensor, Store, currency
from serving_layer.admin.ledger import Ledger
from serving_layer.responses.reports import Report, read_report
from tests.support import World, receipt
from tests.support.sensors import source_of
from tests.support.world_api import OPERATOR_KEY, Asking

NOW = "2026-11-21T23:31:00Z"
KOSICE = Store(
    id="12",
    timezone="Europe/Bratislava",
    name="Kosice",
    sensors=(Sensor("door", "people_counts", "A", date(2026, 1, 1)),),
)
LONDON = Store(id="40", timezone="Europe/London", name="London", currency=currency("GBP"))
OTHER = Store(id="acme-1", timezone="UTC", name="Secret shop", tenant="acme")


def people(at: datetime, number: int) -> bytes:
    counted = {"operation_id": "12", "sensor_id": "door", "line": "A", "people_in": number, "people_out": number}
    happened = at.isoformat().replace("+00:00", "Z")
    return json.dumps(counted | {"happened_at": happened, "interval_ms": 900_000}).encode()


def count_people(world: World, first: datetime, last: datetime, number: int) -> None:
    """So many in each quarter of an hour."""
    at = first
    while at < last:
        world.receive(people(at, number), at + timedelta(minutes=15, seconds=1), source_of("people_counts"))
        at += timedelta(minutes=15)


@pytest.fixture
def world() -> World:
    """Kosice sold 10.00 a week before and 12.40 and 3.10 on Friday, London 20.00 on Saturday after the cut."""
    world = World(KOSICE, LONDON, OTHER)
    count_people(world, datetime(2026, 11, 19, 23, tzinfo=UTC), datetime(2026, 11, 20, 23, tzinfo=UTC), 1)
    sold = [
        ("2026-11-13T08:10:00Z", 1000, "12"),
        ("2026-11-20T08:10:00Z", 1240, "12"),
        ("2026-11-20T09:10:00Z", 310, "12"),
        ("2026-11-20T09:12:00Z", 7700, "acme-1"),
        ("2026-11-20T10:00:00Z", 500, "40"),
    ]
    for number, (at, minor, store) in enumerate(sold):
        world.receive(receipt(at, minor=minor, number=number, store=store), at)
    world.rebuild("2026-11-21T06:00:00Z")
    world.receive(receipt("2026-11-21T09:20:00Z", minor=2000, number=9, store="40"), "2026-11-21T09:20:01Z")
    world.pass_time(NOW)
    return world


@pytest.fixture
def asking(world: World) -> Asking:
    return Asking(world)


def report_of(asking: Asking, period: str = "daily", key: str = OPERATOR_KEY, **more: Any) -> Report:
    """A report as a client reads it."""
    response = asking.response(f"/v1/reports/{period}", key=key, **more)
    assert response.status_code == 200, response.text
    return read_report(response.content)


def corrected(world: World, rows: list[dict[str, Any]], view: str = "sales", store: str = "12") -> None:
    """The newest publication has a ledger with these rows of one store, by the day of their window."""
    entry = world.history[0]
    number = str(entry.publication)
    base = entry.publication - 1
    world.ledgers[number] = Ledger(number, entry.manifest, base, world.now(), {"cells": 1, "rows": len(rows)})
    by_day: dict[tuple[str, date], list[dict[str, Any]]] = {}
    for row in rows:
        day = datetime.fromtimestamp(row["window"], UTC).date()
        by_day.setdefault((store, day), []).append(row)
    known = world.corrections.setdefault((entry.manifest, view), {})
    known.update({place: json.dumps(of) for place, of in by_day.items()})


def correction(at: str, difference: int, state: str = "gross_sales", **more: Any) -> dict[str, Any]:
    window = int(datetime.fromisoformat(at).timestamp())
    usual = {"dimensions": {"currency": "EUR"}, "shown": 0, "corrected": difference, "cause": "waited"}
    return {"window": window, "state": state, "difference": difference, "events": [], "events_total": 1} | usual | more
