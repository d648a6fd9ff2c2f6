"""A deployment of two tenants. Every text that one of them owns contains its mark: names, ids, sentences, addresses.

A viewer who sees the mark of an owner, or is answered otherwise because the owner has another one, sees too much.
"""

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import httpx
from fastapi import FastAPI

from master_dataset.registry.floor_plans_file import ZonesEntry, read_image
from master_dataset.registry.stores import GroupVersion, Sensor, Store, Zone, currency
from master_dataset.webhooks.endpoint import BlockedRecord, Endpoint, EndpointState, RegisteredEndpoint
from serving_layer.admin.ledger import Ledger
from serving_layer.admin.publications import RecomputeRecord
from serving_layer.saved.annotations import Annotation
from serving_layer.saved.shares import ShareLink
from serving_layer.saved.views import SavedView
from tests.support.floor_plans import png
from tests.support.receipts import receipt
from tests.support.sensors import BEGIN, record, source_of, topics
from tests.support.world import World
from tests.support.world_api import OPERATOR_KEY, Asking
from views.control.recompute import RecomputeRequest

DAY = date(2026, 3, 27)
"""Of every event. Times are in UTC."""
MINUTE = timedelta(minutes=1)
EVENTS = 4
"""Of each source and tenant; half of them are in the publication, the other half with the speed layer."""


@dataclass(frozen=True)
class MarkedTenant:
    """A tenant with one store. `minor`: what its receipts begin with; `offset`: of its dead letter."""

    mark: str
    minor: int
    offset: int
    money: str = "EUR"

    @property
    def tenant(self) -> str:
        return f"tenant-{self.mark}"

    @property
    def store(self) -> str:
        return f"store-{self.mark}"

    @property
    def sku(self) -> str:
        return f"sku-{self.mark}"

    @property
    def title(self) -> str:
        return f"title-{self.mark}"

    @property
    def brand(self) -> str:
        return f"brand-{self.mark}"

    @property
    def category(self) -> str:
        return f"category-{self.mark}"

    @property
    def group(self) -> str:
        return f"group_{self.mark}"

    @property
    def till(self) -> str:
        return f"till-{self.mark}"

    @property
    def rule(self) -> str:
        return f"rule-{self.mark}"

    @property
    def webhook(self) -> str:
        return f"webhook-{self.mark}"

    @property
    def annotation(self) -> str:
        return f"{DAY}-{self.mark}"

    @property
    def view(self) -> str:
        return f"view-{self.mark}"

    @property
    def share(self) -> str:
        return f"share-{self.mark}"

    @property
    def recompute(self) -> str:
        return f"recompute-{self.mark}"

    @cached_property
    def registered(self) -> Store:
        """The store."""
        return Store(
            id=self.store,
            timezone="UTC",
            tenant=self.tenant,
            name=f"name-{self.mark}",
            currency=currency(self.money),
            opening_hours={"fri": ("08:00-20:00",)},
            open_since=date(2020, 1, 1),
            floor_m2=self.minor,
            groups=(GroupVersion(None, {"region": f"region-{self.mark}", self.group: f"value-{self.mark}"}),),
            sensors=(Sensor("s", "people_counts", f"place-{self.mark}"),),
            zones=(Zone(f"zone-{self.mark}", Decimal(10)),),
        )

    @property
    def alert_rule(self) -> dict[str, object]:
        """A rule about its store."""
        said = {"kind": "level", "of": "queue", "above": self.minor, "minutes": 3}
        return said | {"id": self.rule, "name": f"rule-name-{self.mark}", "stores": [self.store]}

    @property
    def plan(self) -> bytes:
        """The image of its floor plan, of a size that no other tenant's has."""
        return png(60 + self.minor // 100, 60)

    @property
    def drawn_zone(self) -> dict[str, object]:
        """A zone on it."""
        return {"zone": f"zone-{self.mark}", "rectangle": {"x": 0.1, "y": 0.1, "width": 0.5, "height": 0.5}}

    def receipt(self, number: int, minor: int | None = None) -> bytes:
        """A receipt of its store: an item that everybody sells, one that only this tenant does, and a return."""
        price = (self.minor if minor is None else minor) / 100
        lines: list[dict[str, object]] = [
            {"title": f"{self.title}-{sku}", "price": price, "amount": 1, "sku": sku, "discount": 0.01}
            for sku in ("1", self.sku)
        ]
        lines.append({"title": self.title, "price": 0.02, "amount": -1, "sku": self.sku})
        at = BEGIN + number * MINUTE
        pays = [{"type": "cash", "amount": 2 * price}]
        return receipt(at.isoformat(), lines, number=number, till=self.till, store=self.store, payments=pays)


@dataclass(frozen=True)
class MarkedDeployment:
    """What the tenants own in a process that serves. `alerts`: the id of an alert by tenant."""

    asking: Asking
    tenants: tuple[MarkedTenant, ...]
    alerts: dict[str, str]

    def state_of(self, tenant: MarkedTenant) -> dict[str, object]:
        """Whatever a request could change of what the tenant owns."""
        asking = self.asking
        return {
            "rules": [row for row in asking.versions.rows if tenant.mark in row.id],
            "webhooks": [each for each in asking.endpoints.kept.values() if each.endpoint.tenant == tenant.tenant],
            "skipped": [each for each in asking.endpoints.skipped if each[0] == tenant.webhook],
            "tried": [each for each in asking.trying.called if each.tenant == tenant.tenant],
            "annotations": [each for (of, _), each in asking.annotations.kept.items() if of == tenant.tenant],
            "views": [each for (of, _), each in asking.views.kept.items() if of == tenant.tenant],
            "shares": [each for each in asking.shares.kept.values() if each.tenant == tenant.tenant],
            "products": asking.products.masters[tenant.tenant],
            "targets": asking.targets.sets[tenant.tenant],
            "floor plan": asking.floor_plans.plans.get((tenant.tenant, tenant.store)),
            "recomputes": dict(asking.world.recomputes),
            "publication": asking.world.pointer.publication,
            "replayed": list(asking.dead_letters.sender.carried),
            "events": [each for sent in asking.broker.topics.values() for each in sent if tenant.mark in str(each)],
        }


def world_of(*tenants: MarkedTenant) -> World:
    """Events of every source in the store of each tenant, at the same times whatever the marks are."""
    world = World(*(each.registered for each in tenants))
    for number in range(EVENTS):
        if number == EVENTS // 2:
            world.rebuild(BEGIN + 60 * MINUTE)
            world.begin_micro_batch()
        for tenant in tenants:
            at = BEGIN + (number % 2 + 1 + 60 * (number // 2)) * MINUTE
            world.receive(tenant.receipt(number + 1 + 60 * (number // 2)), at + 3 * MINUTE)
            for topic in topics():
                drawn = int((at - BEGIN) / MINUTE), tenant.minor + number, number
                world.receive(record(topic, drawn, tenant.store), at + 3 * MINUTE, source_of(topic))
    world.pass_time("2026-03-28T10:00:00Z")
    for number in {each.publication for each in world.history} - {0}:
        run = f"run-{number}"
        world.ledgers[str(number)] = Ledger(str(number), run, number - 1, world.now(), {"cells": 2, "rows": 2})
        world.corrections[run, "sales"] = {
            (each.store, DAY): json.dumps([_correction(each)]) for each in sorted(tenants, key=lambda each: each.store)
        }
    for tenant in tenants:
        asked = RecomputeRequest(stores=(tenant.store,))
        now = world.now().astimezone(UTC)
        world.recomputes[tenant.recompute] = RecomputeRecord(
            tenant.recompute, "asked", asked, "operator", tenant.mark, now, now, None, None, None, None, None
        )
    return world


def _correction(tenant: MarkedTenant) -> dict[str, Any]:
    return {
        "window": int(BEGIN.timestamp()),
        "dimensions": {"currency": tenant.money},
        "state": "gross_sales",
        "shown": None,
        "corrected": tenant.minor,
        "difference": tenant.minor,
        "cause": "waited",
        "events": [f"identity-{tenant.mark}"],
        "events_total": 1,
    }


def deployment(asking: Asking, *tenants: MarkedTenant) -> MarkedDeployment:
    """Load what the tenants own beside their events. `asking`: over `world_of` the same tenants."""
    alerts = {}
    operator = {"content-type": "text/csv", "authorization": f"Bearer {OPERATOR_KEY}"}
    for tenant in tenants:
        _load_dead_letter(asking, tenant)
        products = "sku,title,brand,category\n" + "".join(
            f"{sku},{tenant.title},{tenant.brand},{tenant.category}\n" for sku in ("1", tenant.sku)
        )
        targets = f"store,day,metric,value\n{tenant.store},{DAY},net_sales,{tenant.minor}\n"
        for path, body in {"products": products, "targets": targets}.items():
            of = f"/v1/{path}?{urlencode({'tenant': tenant.tenant})}"
            loaded = asking.request("POST", of, headers=operator, content=body.encode())
            assert loaded.status_code == 200, loaded.text
        asking.floor_plans.save(
            tenant.tenant,
            tenant.store,
            image=read_image(tenant.plan),
            zones=ZonesEntry.model_validate({"zones": [tenant.drawn_zone]}).drawn(()),
        )
        made = asking.response(
            "/v1/alert-rules", method="POST", key=OPERATOR_KEY, said=tenant.alert_rule, tenant=tenant.tenant
        )
        assert made.status_code == 201, made.text
        for second in range(2):  # one is over, the other is not
            said = {"tenant": tenant.tenant, "store": tenant.store, "rule": tenant.rule}
            alert = asking.alert_tables.raised(
                f"2026-03-27T13:00:0{second}Z", sentence=f"sentence-{tenant.mark}", **said
            )
            if second:
                asking.alert_tables.followed(alert, "resolved", "2026-03-27T13:30:00Z")
            else:
                alerts[tenant.tenant] = alert
        asking.endpoints.put(_webhook(tenant))
        _keep(asking, tenant)
    return MarkedDeployment(asking, tenants, alerts)


def _keep(asking: Asking, tenant: MarkedTenant) -> None:
    """An annotation, a saved view and a share link."""
    at, name, by = asking.world.now(), tenant.tenant, f"key-{tenant.mark}"
    note = Annotation(name, DAY, DAY, "note", f"note-{tenant.mark}", (tenant.store,), by, at, id=tenant.annotation)
    asking.annotations.kept[name, note.id] = note
    view = SavedView(name, tenant.view, f"view-name-{tenant.mark}", f"/stores/{tenant.store}", by, at)
    asking.views.kept[name, view.id] = view
    stores, ends = frozenset([tenant.store]), at + timedelta(days=1)
    link = ShareLink(name, tenant.share, f"/stores/{tenant.store}", stores, "", by, at, ends)
    asking.shares.kept[link.id] = link


def _load_dead_letter(asking: Asking, tenant: MarkedTenant) -> None:
    """A receipt without a time."""
    line = {"title": tenant.title, "price": 1, "amount": 1, "sku": tenant.sku}
    value = receipt("yesterday", [line], store=tenant.store)
    [position] = asking.dead_letters.archive.receive(value, key=tenant.store.encode())
    assert position.offset == tenant.offset


def _webhook(tenant: MarkedTenant) -> RegisteredEndpoint:
    at = datetime(2026, 3, 27, 13, tzinfo=UTC)
    blocking = BlockedRecord("alerts", 0, tenant.offset, tenant.store, at, f"why-{tenant.mark}")
    url, secret = f"https://{tenant.mark}.example/", f"secret-{tenant.mark}"
    endpoint = Endpoint(tenant.webhook, tenant.tenant, url, secret, 100, 1_774_600_000_000)
    state = EndpointState(at, 503, at, at - timedelta(hours=1), 4, at, (blocking,), at)
    return RegisteredEndpoint(endpoint, None, state)


def begin_of_stream(app: FastAPI, path: str, query: dict[str, object], headers: dict[str, str]) -> httpx.Response:
    """The response to a GET that may have no end: up to the first part of its body, after which the client is gone."""
    sent: list[Any] = []

    async def ask() -> None:
        arrived, asked = asyncio.Event(), False

        async def receive() -> dict[str, object]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await arrived.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if message.get("body"):
                arrived.set()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": urlencode(query).encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "server": ("galatea", 80),
            "client": ("127.0.0.1", 1),
        }
        await asyncio.wait_for(app(scope, receive, send), 20)

    asyncio.run(ask())
    start, *parts = sent
    return httpx.Response(start["status"], headers=start["headers"], content=b"".join(each["body"] for each in parts))
