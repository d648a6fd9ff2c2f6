"""Three invented stores, with weeks of events, alerts and dead letters, so that every part of a page has data."""

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from master_dataset.registry.floor_plans_file import read_image, read_lines
from master_dataset.registry.products import Product, ProductSpool
from master_dataset.registry.stores import GroupVersion, Sensor, Store, Zone, currency
from serving_layer.admin.ledger import Ledger
from serving_layer.admin.publications import RecomputeRecord
from serving_layer.alerts.history import HistoryCoverage
from serving_layer.alerts.rules import AlertRules, RuleAuthor
from serving_layer.health.watched import LagMeasurement
from serving_layer.keys.key import Key, Scope
from serving_layer.responses.publications import (
    CorrectionTotals,
    Done,
    RecomputeProblem,
    RecomputeProgress,
    RecomputeReport,
    RecomputeState,
)
from serving_layer.saved.annotations import Annotation
from serving_layer.saved.shares import ShareLink
from serving_layer.saved.views import SavedView
from serving_layer.store.readers import Position, SpeedBlock
from tests.support import World, receipt
from tests.support.archiving import WorldDeadLetters
from tests.support.floor_plans import png
from tests.support.process_metrics import WorldWatch
from tests.support.sensors import observation, source_of
from tests.support.world_api import EMBEDDER, Asking
from tests.support.world_tables import WorldTables
from views.alerts.alert import Window
from views.control.recompute import RecomputeMode, RecomputeRequest

NOW = datetime(2026, 11, 21, 14, 7, 12, tzinfo=UTC)
CUT = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAYS = 16
WEST, EAST = (GroupVersion(None, {"region": region}) for region in ("West", "East"))
HOURS = dict.fromkeys(("mon", "tue", "wed", "thu", "fri", "sat"), ("08:00-20:00",))
SENSORS = (Sensor("door", "people_counts", "A", date(2026, 1, 1)),)
ZONES = {"shoes": 0.4, "hats": 0.15, "bags": 0.2, "fitting rooms": 0.1, "sale": 0.15}
"""Of one store, each with the share of the visitors who enter it."""
PLAN = """shoes 4 6 34 38
hats 42 6 22 22
bags 4 52 34 40
fitting rooms 70,6 96,6 96,50 82,50 82,30 70,30
checkout 72 62 24 30"""
STORES = (
    Store(
        id="12",
        timezone="Europe/Bratislava",
        name="Kosice, Hlavna",
        opening_hours=HOURS,
        country="SK",
        conversion_target=Decimal(40),
        sensors=SENSORS,
        zones=tuple(Zone(zone) for zone in (*ZONES, "checkout", "window")),
        groups=(EAST,),
    ),
    Store(
        id="7",
        timezone="Europe/Bratislava",
        name="Bratislava, Old Town",
        opening_hours=HOURS,
        country="SK",
        groups=(WEST,),
    ),
    Store(
        id="40",
        timezone="Asia/Tokyo",
        name="Tokyo, Ginza",
        currency=currency("JPY"),
        country="JP",
        sensors=(
            Sensor("door-1", "people_counts", "A", until=date(2026, 11, 18)),
            Sensor("door-2", "people_counts", "A", date(2026, 11, 18)),
            Sensor("ap-1", "wifi_sightings"),
            Sensor("q-1", "queue_events", "Q1"),
            Sensor("face-1", "demographics", "entrance"),
        ),
    ),
    Store(id="acme-1", timezone="Europe/Bratislava", name="Praha, Andel", tenant="acme"),
)
PRODUCTS = {
    1290: Product("S-1", "Wool socks, two pairs", "Norden", ("Clothing", "Socks")),
    2490: Product("T-7", "T-shirt, organic cotton", "Norden", ("Clothing", "Shirts")),
    3990: Product("J-2", "Linen shirt", "Halden", ("Clothing", "Shirts")),
    5990: Product("B-4", "Canvas backpack, 20 l", "Halden", ("Bags",)),
    990: Product("C-9", "Coffee mug", "", ("Home", "Kitchen")),
}
"""By price, in minor units."""
OFTEN_WITH = {5990: 990, 3990: 1290}
"""What is on the same receipt now and then."""
SHAPE = {8: 2, 9: 4, 10: 6, 11: 7, 12: 5, 13: 4, 14: 5, 15: 6, 16: 8, 17: 9, 18: 6, 19: 3}
"""Visitors by hour of the day, before randomness."""


def written(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


class StoreDays:
    """The events of one store, hour by hour, in the order in which they happened."""

    def __init__(self, store: Store, seed: int, size: float, *, has_sensors: bool) -> None:
        self.store, self.size, self.has_sensors = store, size, has_sensors
        self.price = 100 if store.currency.code == "JPY" else 1
        self.chance = random.Random(seed)
        self.number = 0

    def records(self) -> Iterator[tuple[datetime, str, bytes]]:
        """Instant, topic, value."""
        for back in range(DAYS, -1, -1):
            day = (NOW - timedelta(days=back)).replace(hour=0, minute=0, second=0)
            if day.weekday() == 6:  # closed
                continue
            for hour in range(24):
                yield from self._hour(day + timedelta(hours=hour - 1), SHAPE.get(hour, 0), is_lately=back <= 0)

    def _hour(self, at: datetime, shape: int, *, is_lately: bool) -> Iterator[tuple[datetime, str, bytes]]:
        people = round(shape * self.size * self.chance.uniform(0.8, 1.2))
        for _ in range(round(people * self.chance.uniform(0.28, 0.42))):
            self.number += 1
            when = at + timedelta(seconds=self.chance.randrange(3600))
            lines = self._lines(self.chance.choice((1290, 2490, 3990, 5990, 990)))
            yield when, "pos_transactions", receipt(written(when), lines, number=self.number, store=self.store.id)
        if not self.has_sensors:
            return
        for quarter in range(4):
            start = at + timedelta(minutes=15 * quarter)
            counted = {"people_in": people // 4 + quarter % 2 * (people > 0), "people_out": people // 4}
            said = self._record(start, sensor_id="door", interval_ms=900_000, line="A", **counted)
            yield start, "people_counts", said
        rain = 1.2 if at.hour in (9, 10) else 0.0
        if self.store.id == "40":
            yield from self._beats(at)
        yield from self._browsing(at, people)
        weather = observation(written(at), 9 - abs(14 - at.hour) / 3, rain_mm=rain, wind_m_s=3, store=self.store.id)
        yield at, "weather_observations", weather
        if is_lately:
            yield from self._lately(at, people)

    def _beats(self, at: datetime) -> Iterator[tuple[datetime, str, bytes]]:
        """The access point went silent a few hours ago; the queue counter is off at night."""
        for quarter in range(4):
            start = at + timedelta(minutes=15 * quarter)
            beat = {"interval_ms": 900_000}
            if start < NOW - timedelta(hours=5):
                said = self._record(start, sensor_id="ap-1", source="wifi_sightings", **beat)
                yield start, "sensor_heartbeats", said
            if at.hour < 21:
                said = self._record(start, sensor_id="q-1", source="queue_events", **beat)
                yield start, "sensor_heartbeats", said

    def _browsing(self, at: datetime, people: int) -> Iterator[tuple[datetime, str, bytes]]:
        """Who enters and leaves the zones."""
        if not self.store.zones:
            return
        for place, (zone, part) in enumerate(ZONES.items()):
            for number in range(round(people * part)):
                entered = at + timedelta(seconds=self.chance.randrange(3000))
                left = entered + timedelta(seconds=self.chance.randrange(2, 90 * (place + 1)))
                who = {"sensor_id": "st", "zone": zone, "track": f"{at:%d%H}-{place}-{number}"}
                yield entered, "zone_presence", self._record(entered, kind="enter", **who)
                yield left, "zone_presence", self._record(left, kind="exit", entered_at=written(entered), **who)

    def _lines(self, price: int) -> list[dict[str, object]]:
        prices = [price, *([OFTEN_WITH[price]] if price in OFTEN_WITH and self.number % 3 == 0 else [])]
        return [
            {"title": (of := PRODUCTS[each]).title, "sku": of.sku, "price": each * self.price / 100, "amount": 1}
            for each in prices
        ]

    def _lately(self, at: datetime, people: int) -> Iterator[tuple[datetime, str, bytes]]:
        """Phones and queues, on the last day only, because they are many."""
        for _ in range(people):
            device = f"{self.chance.getrandbits(128):032x}"
            start = at + timedelta(seconds=self.chance.randrange(1500))
            stays = self.chance.choice((0, 0, 3, 6, 12, 18, 25))
            for minute in range(0, stays + 1, 3):
                zone = "inside" if stays else "outside"
                when = start + timedelta(minutes=minute)
                yield (
                    when,
                    "wifi_sightings",
                    self._record(
                        when, sensor_id="ap", device=device, salt_id=f"{at:%Y-%m-%d}", zone=zone, signal_dbm=-60
                    ),
                )
        for number in range(people // 3):
            joined = at + timedelta(seconds=self.chance.randrange(3000))
            wait = timedelta(seconds=self.chance.randrange(20, 400))
            track = f"{at:%d%H}-{number}"
            where = {"sensor_id": "q", "queue": "Q1", "track": track, "length_after": self.chance.randrange(6)}
            yield joined, "queue_events", self._record(joined, kind="join", **where)
            served = joined + wait
            kind = "abandon" if number % 9 == 8 else "service_start"
            yield served, "queue_events", self._record(served, kind=kind, joined_at=written(joined), **where)

    def _record(self, at: datetime, **fields: object) -> bytes:
        return json.dumps({"operation_id": self.store.id, "happened_at": written(at), **fields}).encode()


def trading_days() -> World:
    """All events until NOW, published at CUT and twice before."""
    world = World(*STORES)
    world.epoch = timedelta(minutes=15)
    made = [
        StoreDays(STORES[0], 1, 5.0, has_sensors=True),
        StoreDays(STORES[1], 2, 3.0, has_sensors=False),
        StoreDays(STORES[2], 3, 4.0, has_sensors=True),
        StoreDays(STORES[3], 4, 0.3, has_sensors=False),
    ]
    every = sorted((each for days in made for each in days.records()), key=lambda each: each[0])
    for at, topic, value in every:
        if at < NOW:
            world.receive(value, at + timedelta(seconds=2), source_of(topic) if topic != "pos_transactions" else _TILLS)
    for cut in (CUT - timedelta(days=2), CUT - timedelta(days=1), CUT):
        world.rebuild(cut)
    world.pass_time(NOW)
    _correct(world)
    return world


def _correct(world: World) -> None:
    totals = {"cells": 2, "rows": 2, "causes": {"waited": {"cells": 2}}}
    world.ledgers["3"] = Ledger("3", "run-3", 2, CUT + timedelta(seconds=20), totals)
    window = int(datetime(2026, 11, 18, 10, tzinfo=UTC).timestamp())
    row: dict[str, Any] = {
        "window": window,
        "dimensions": {"currency": "EUR"},
        "state": "gross_sales",
        "shown": 4380,
        "corrected": 5670,
        "difference": 1290,
        "cause": "waited",
        "events": ["12 · 123 · 88"],
        "events_total": 1,
    }
    world.corrections["run-3", "sales"] = {
        ("12", date(2026, 11, 18)): json.dumps([row, row | {"window": window + 900}])
    }


def add_dead_letters(dead_letters: WorldDeadLetters) -> None:
    """Records that are not valid events: from a new version of a till, and from a counter without its interval."""
    till = json.loads(receipt("2026-11-21T12:58:00Z", minor=4190, number=4711, store="12"))
    for number, happened_at in enumerate(("21.11.2026 13:58", "21.11.2026 13:59", "21.11.2026 14:01")):
        said = till | {"happened_at": happened_at, "transaction_id": 4711 + number}
        dead_letters.archive.receive(json.dumps(said, indent=2).encode(), key=b"12", headers=[("till", b"4.2.0")])
    dead_letters.archive.receive(b'{"happened_at": "2026-11-21T12:30:00Z", "operation_id": 7, \xff\xfe', b"{", key=b"7")
    counted = {"operation_id": "12", "sensor_id": "door", "line": "A", "people_in": 3, "people_out": 2}
    quarters = [counted | {"happened_at": f"2026-11-21T1{hour}:00:00Z"} for hour in range(4)]
    dead_letters.archive.receive(*(json.dumps(each).encode() for each in quarters), topic="people_counts", key=b"12")


RULES: tuple[dict[str, object], ...] = (
    {"kind": "level", "id": "queue", "name": "Queue too long", "of": "queue", "above": 4, "minutes": 3},
    {"kind": "silence", "id": "tills", "name": "No receipts", "source": "pos_transactions", "minutes": 20},
    {"kind": "threshold", "id": "returns", "metric": "returns_value", "window": "hour", "above": 100, "stores": ["12"]},
    {
        "kind": "threshold",
        "id": "weak-hour",
        "name": "Weak hour",
        "metric": "net_sales",
        "window": "hour",
        "below": 50,
        "versus": "previous_week",
    },
)


def raise_alerts(asking: Asking, now: datetime) -> None:
    """Rules and alerts until then. Not over REST, because an event loop may already run in this thread."""
    rules, author = AlertRules(asking.versions), RuleAuthor("default", asking.world.stores)
    for rule in RULES:
        rules.create(author, rule)
    asking.versions.rows[:] = [row._replace(effective_at=now - timedelta(days=3)) for row in asking.versions.rows]
    alerts = asking.alert_tables
    alerts.known = HistoryCoverage(now - timedelta(seconds=1), None)
    alerts.raised(
        _at(now, 6),
        store="12",
        sentence="The queue Q1 of store 12 has been above 4 for 3 minutes.",
        dimensions={"queue": "Q1"},
    )
    alerts.raised(
        _at(now, 25),
        store="40",
        rule="weak-hour",
        value=Decimal(182_300),
        baseline=Decimal(410_900),
        threshold=Decimal(50),
        window=_hour(now, 2),
        sentence="Net sales of store 40: 182300, more than 50 % below the 410900 of the same time a week before.",
    )
    late = alerts.raised(
        _at(now, 200),
        store="12",
        rule="returns",
        value=Decimal("129.90"),
        threshold=Decimal(100),
        late=True,
        window=_hour(now, 4),
        sentence="Returns of store 12: 129.90, above 100.",
    )
    alerts.followed(late, "resolved", _at(now, 130))
    wrong = alerts.raised(
        _at(now, 310),
        store="7",
        rule="tills",
        value=Decimal(20),
        threshold=Decimal(20),
        sentence="The source pos_transactions of store 7 has been silent for 20 minutes.",
    )
    alerts.followed(wrong, "retracted", _at(now, 126), reason="waited")
    for day in range(1, 4):
        id_ = alerts.raised(
            _at(now, day * 1440 + 65 * day),
            store="12",
            dimensions={"queue": "Q1"},
            sentence="The queue Q1 of store 12 has been above 4 for 3 minutes.",
        )
        alerts.followed(id_, "resolved", _at(now, day * 1440 + 65 * day - 9))


def _at(now: datetime, minutes: int) -> str:
    at = now - timedelta(minutes=minutes)
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _hour(now: datetime, back: int) -> Window:
    start = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=back)
    return Window(
        start.isoformat().replace("+00:00", "Z"), (start + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    )


def measured() -> list[LagMeasurement]:
    """The measurements of the readers just before NOW."""
    at = NOW - timedelta(seconds=1)
    return [
        LagMeasurement("archive", "pos_transactions", 0, 18_220, 18_222, 2, at - timedelta(seconds=1), at, at),
        LagMeasurement("speed", "pos_transactions", 0, 18_222, 18_222, 0, None, at, at),
    ]


def draw_plan(asking: Asking) -> None:
    """The floor plan of the first store: a room with shelves and a checkout."""
    shelves = [(60, 80 + 60 * row, 420, 110 + 60 * row) for row in range(5)]
    shelves += [(60, 560 + 60 * row, 420, 590 + 60 * row) for row in range(5)]
    shelves += [(540, 90, 740, 130), (540, 190, 740, 230), (900, 600, 1120, 640), (1000, 60, 1010, 480)]
    image = read_image(png(1200, 900, tuple(shelves)))
    zones = read_lines(PLAN, STORES[0].terms.zones)
    asking.floor_plans.save(STORES[0].tenant, STORES[0].id, image=image, zones=zones)


def load_products(asking: Asking) -> None:
    """What the products are called, and their categories. Not over REST, as with alerts."""
    with ProductSpool() as spool:
        for line, product in enumerate(PRODUCTS.values(), 1):
            spool.add(line, product)
        asking.products.load("default", spool, replace=True)


def sample_stack() -> Asking:
    """The application over all of it."""
    world = trading_days()
    watch = WorldWatch(world)
    watch.measured = measured()
    asking = Asking(world, readers=RememberedTables(world).readers, watched=watch)
    load_products(asking)
    add_dead_letters(asking.dead_letters)
    raise_alerts(asking, NOW)
    draw_plan(asking)
    keep(asking)
    recompute(world)
    make_keys(asking)
    return asking


def make_keys(asking: Asking) -> None:
    """Keys of programs: one for reading, one for the tills, and one that was revoked."""
    made: tuple[tuple[str, str, tuple[Scope, ...], str, int], ...] = (
        ("5f0c81d2a9b3", "default", ("read",), "Dashboard of the office", 200),
        ("9a2b5f0c81d3", "default", ("ingest",), "Tills", 30),
        ("b35f0c81d2a9", "acme", ("read", "configure"), "Old report", 300),
    )
    for id_, tenant, scopes, name, days in made:
        _, key = Key.new(tenant, scopes, name, NOW - timedelta(days=days), NOW + timedelta(days=365 - days))
        asking.keys.kept.append(replace(key, id=id_))
    asking.keys.kept[-1] = replace(asking.keys.kept[-1], revoked_at=NOW - timedelta(days=12))


def recompute(world: World) -> None:
    """Recomputes: one that runs, one that published, one that changed nothing and one that failed."""
    days = date(2026, 11, 16), date(2026, 11, 18)
    corrections = CorrectionTotals(cells=2, rows=2)
    report = RecomputeReport(
        base=2, cut=written(CUT), days=3, partitions_total=12, blocks=9, repeats=4, conflicts=0, corrections=corrections
    )
    running = RecomputeProgress(Done(7, 12), Done(10_240, 18_222), 2_480.0, 3.2, "sales")
    problem = RecomputeProblem(
        "cassandra_unavailable", "Cassandra did not answer for 60 seconds.", "Check `nodetool status`, then try again."
    )

    def add(id_: str, state: RecomputeState, why: str, minutes: int, took: int | None, **known: Any) -> None:
        began = NOW - timedelta(minutes=minutes)
        ended = began + timedelta(seconds=took) if took is not None else None
        mode: RecomputeMode = "preview" if state == "unchanged" else "publish"
        request = RecomputeRequest(("sales", "traffic"), *days, ("12",), mode=mode)
        fields: dict[str, Any] = dict.fromkeys(("progress", "publication", "problem", "report")) | known
        world.recomputes[id_] = RecomputeRecord(
            id_, state, request, "operator", why, began, ended or NOW, ended, **fields
        )

    add("running", "computing", "Prices of the autumn sale were loaded late", 1, None, progress=running)
    add("published", "published", "Late receipts of till 3", 150, 48, publication=3, report=report)
    add("unchanged", "unchanged", "Check of last week", 1_500, 31, report=report)
    add("failed", "failed", "Late receipts of till 3", 1_530, 75, problem=problem)


SHARE_TOKEN, OVERVIEW_TOKEN = "s" * 43, "o" * 43


def keep(asking: Asking) -> None:
    """Annotations, saved views and share links. Not over REST, as above."""
    at = NOW - timedelta(days=2, hours=3)
    notes = (
        Annotation("default", date(2026, 11, 20), date(2026, 11, 22), "promotion", "Black week", (), "command", at),
        Annotation("default", date(2026, 11, 21), date(2026, 11, 21), "outage", "Till 3 is broken", ("12",), "ops", at),
        Annotation("default", date(2026, 12, 24), date(2026, 12, 26), "holiday", "Christmas", (), "operator", at),
    )
    asking.annotations.kept = {(each.tenant, each.id): each for each in (note.with_id() for note in notes)}
    views = (
        SavedView("*", "5f0c81d2a9b3", "Kosice on a Saturday", "/stores/12?day=2026-11-14", "operator", at),
        SavedView("*", "9a2b5f0c81d3", "Alerts of the old town", "/alerts?store=7", "5f0c81d2a9b3", at),
    )
    asking.views.kept = {(each.tenant, each.id): each for each in views}
    week, day = timedelta(days=7), timedelta(days=1)
    links = {
        SHARE_TOKEN: ShareLink(
            "default", "0c81d2a9b35f", "/stores/12", frozenset(["12"]), EMBEDDER, "operator", at, at + week
        ),
        OVERVIEW_TOKEN: ShareLink("default", "d2a9b35f0c81", "/", None, "", "operator", at, at + 90 * day),
        "e" * 43: ShareLink("acme", "b35f0c81d2a9", "/", None, "", "9a2b5f0c81d3", at, at + day),
    }
    asking.shares.kept = {link.id: link for link in links.values()}
    asking.shares.digests = {hashlib.sha256(token.encode()).digest(): link.id for token, link in links.items()}


class RememberedTables(WorldTables):
    """As those of World, but cached for many requests: speed writes nothing here while nothing is received."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._blocks: dict[tuple[str, int], list[tuple[str, SpeedBlock]]] = {}

    async def archived(self, topic: str) -> list[Position]:
        kept = sum(each.event.topic == topic for of in self.world.deliveries.values() for each in of)
        return [Position(topic, 0, kept, NOW - timedelta(seconds=2))]

    async def rows(self, view: str, store: str, received_day: date, generation: int, cut: datetime) -> list[SpeedBlock]:
        assert generation == self.world.pointer.generation
        key = store, len(self.world.of(store))
        if key not in self._blocks:
            self._blocks[key] = list(self.world.speed_blocks(store))
        found = [row for name, row in self._blocks[key] if name == view]
        return [row for row in found if row.epoch >= cut and row.epoch.astimezone(UTC).date() == received_day]


_TILLS = source_of("pos_transactions")
