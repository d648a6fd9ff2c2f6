"""Nothing reveals the stores of another tenant: no number, no hint, no header."""

from collections.abc import Mapping

import pytest
from fastapi.routing import APIRoute

from master_dataset.registry.stores import GroupVersion, Store
from serving_layer.api.openapi import scopes
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing

ACME, GLOBEX = "acme", "globex"
SHOPS = {ACME: ("101", "102"), GLOBEX: ("201",), "default": ("301",)}
CANARY = {ACME: "Canary-Vienna-77", GLOBEX: "Canary-Oslo-88", "default": "Canary-Riga-99"}
DEAD_LETTER_CANARY = {tenant: f"Letter-{said}" for tenant, said in CANARY.items()}
DEAD_LETTERS = [
    ("GET", "/v1/dead-letters", None),
    ("GET", "/v1/dead-letters/pos_transactions/0/0", None),
    ("GET", "/v1/dead-letters/pos_transactions/0/99", None),
    ("POST", "/v1/dead-letters/replay", {"ids": ["pos_transactions/0/0"]}),
    ("POST", "/v1/dead-letters/replay", {"filter": {"source": "pos_transactions"}, "dry_run": True}),
]
DAY = {"from_": "2026-11-21", "to": "2026-11-22"}
PER_STORE = [
    ("/v1/metrics/net_sales", DAY),
    ("/v1/metrics/net_sales", DAY | {"as_of": 1}),
    ("/v1/metrics/net_sales", DAY | {"compare": "previous_week", "context": "weather"}),
    ("/v1/index/net_sales", DAY),
    ("/v1/views/sales/cells", DAY),
]
CHAIN = [
    ("/v1/metrics/net_sales", DAY | {"by": "total"}),
    ("/v1/metrics/net_sales", DAY | {"by": "group:region"}),
    ("/v1/metrics/net_sales", DAY | {"by": "group:region", "attributes": "current", "sort": "name", "share": "true"}),
    ("/v1/metrics/net_sales", DAY | {"sort": "-value", "top": 1}),
    ("/v1/metrics/net_sales", DAY | {"by": "group:region", "format": "csv"}),
    ("/v1/metrics/sku_net_sales", DAY | {"by": "sku"}),
    ("/v1/metrics/sku_net_sales", DAY | {"by": "total,sku", "format": "csv"}),
    ("/v1/metrics/sku_net_sales", DAY | {"by": "total,category,brand"}),
    ("/v1/products", {}),
    ("/v1/products", {"search": "Canary"}),
]
"""What is asked about a chain: groups, products and their categories."""
LEVEL = {"kind": "level", "of": "queue", "above": 4, "minutes": 3}
OPEN = {"/healthz", "/readyz"}


@pytest.fixture
def asking() -> Asking:
    return of(*SHOPS)


@pytest.fixture(scope="module")
def everybody() -> Asking:
    """The same, for tests that only ask."""
    return of(*SHOPS)


@pytest.fixture(scope="module")
def alone() -> Mapping[str, Asking]:
    """By tenant a deployment that has no other; likewise."""
    return {tenant: of(tenant) for tenant in SHOPS}


def groups_of(tenant: str) -> tuple[GroupVersion, ...]:
    """Groups whose names and values nobody else has, but `region`, which everybody has with other values."""
    own = f"chain_{tenant}"
    return (GroupVersion(None, {"region": f"{CANARY[tenant]}-region", own: f"{CANARY[tenant]}-chain"}),)


def products_of(tenant: str) -> bytes:
    """The product that all have sold, with a title, brand and category of the tenant."""
    said = CANARY[tenant]
    return f"sku,title,brand,category\n1,{said}-title,{said}-brand,{said}-category\n".encode()


def of(*tenants: str) -> Asking:
    """A deployment with the shops of these tenants."""
    world = World(
        *(
            Store(id=store, timezone="UTC", tenant=tenant, name=CANARY[tenant], groups=groups_of(tenant))
            for tenant in tenants
            for store in SHOPS[tenant]
        )
    )
    for number, store in enumerate(store for tenant in tenants for store in SHOPS[tenant]):
        world.receive(receipt("2026-11-21T09:00:00Z", minor=100 + number, store=store), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    asking = Asking(world)
    for tenant in tenants:  # a till that sends no time, of each
        [store, *_] = SHOPS[tenant]
        lines = [{"title": DEAD_LETTER_CANARY[tenant], "price": 1, "amount": 1, "sku": "1"}]
        asking.dead_letters.archive.receive(receipt("yesterday", lines, store=store), key=store.encode())
        sent = {"content-type": "text/csv", "authorization": f"Bearer {OPERATOR_KEY}"}
        loaded = asking.request("POST", f"/v1/products?tenant={tenant}", headers=sent, content=products_of(tenant))
        assert loaded.status_code == 200, loaded.text
        said = LEVEL | {"id": f"rule-of-{tenant}", "name": CANARY[tenant], "stores": [store]}
        made = asking.response("/v1/alert-rules", method="POST", key=OPERATOR_KEY, said=said, tenant=tenant)
        assert made.status_code == 201, made.text
        for second in range(2):  # one is over, the other is not
            id_ = asking.alert_tables.raised(
                f"2026-11-21T09:00:0{second}Z", tenant=tenant, store=store, sentence=CANARY[tenant]
            )
            if second:
                asking.alert_tables.followed(id_, "resolved", "2026-11-21T09:30:00Z")
    return asking


def key(asking: Asking, tenant: str) -> str:
    return asking.keys.make(tenant, "read")


@pytest.mark.parametrize("tenant", SHOPS)
@pytest.mark.parametrize(("path", "question"), PER_STORE)
def test_without_a_name_only_ones_own_shops_are_answered(
    everybody: Asking, path: str, question: dict[str, object], tenant: str
) -> None:
    body = everybody.body(path, key=key(everybody, tenant), **question)

    assert {each["store"] for each in body["cells" if "cells" in body else "series"]} == set(SHOPS[tenant])


@pytest.mark.parametrize("tenant", SHOPS)
@pytest.mark.parametrize("other", SHOPS)
@pytest.mark.parametrize(("path", "question"), [*PER_STORE, ("/v1/raw/pos_transactions", {"day": "2026-11-21"})])
def test_anothers_shop_is_as_unknown_as_one_that_nobody_has(  # noqa: PLR0913, PLR0917 - each with each
    everybody: Asking,
    alone: Mapping[str, Asking],
    path: str,
    question: dict[str, object],
    tenant: str,
    other: str,
) -> None:
    if tenant == other:
        return
    parameters = question | {"store": SHOPS[other][0]}

    foreign = everybody.refusal(path, key=key(everybody, tenant), **parameters)

    assert (foreign["status"], foreign["code"]) == (404, "unknown_name")
    assert foreign == alone[tenant].refusal(path, key=key(alone[tenant], tenant), **parameters)


@pytest.mark.parametrize("tenant", SHOPS)
def test_no_answer_of_any_route_has_a_trace_of_another_tenant(asking: Asking, tenant: str) -> None:
    sent = key(asking, tenant)
    others = [CANARY[other] for other in SHOPS if other != tenant]
    others += [f'"{store}"' for other, stores in SHOPS.items() if other != tenant for store in stores]

    for path, question in [
        *PER_STORE[:3],
        *PER_STORE[4:],
        *CHAIN,
        ("/v1/stores", {}),
        ("/v1/sensors", {}),
        ("/v1/metrics", {}),
        ("/v1/publications", {}),
        ("/v1/alerts", {}),
        ("/v1/alerts", {"state": "open"}),
        ("/v1/alerts", {"format": "csv"}),
        ("/v1/alert-rules", {}),
        (f"/v1/alert-rules/rule-of-{tenant}", {}),
        (f"/v1/alert-rules/rule-of-{tenant}/versions", {}),
    ]:
        answer = asking.response(path, key=sent, **question)  # type: ignore[arg-type]
        assert answer.status_code == 200, answer.text
        texts = answer.text + str(answer.headers)
        assert [each for each in others if each in texts] == [], path


@pytest.mark.parametrize("tenant", SHOPS)
def test_a_total_counts_ones_own_stores_alone(asking: Asking, tenant: str) -> None:
    [series] = asking.body("/v1/metrics/net_sales", key=key(asking, tenant), **DAY, by="total")["series"]
    alone = asking.body("/v1/metrics/net_sales", key=key(asking, tenant), **DAY)["series"]

    assert series["stores"]["counted"] == len(SHOPS[tenant])
    assert series["points"][0]["value"] == sum(each["points"][0]["value"] for each in alone)


@pytest.mark.parametrize("tenant", SHOPS)
@pytest.mark.parametrize("other", SHOPS)
@pytest.mark.parametrize(
    "question",
    [
        {"metric": "net_sales", "by": "group:chain_{}"},
        {"metric": "sku_net_sales", "category": "{canary}-category"},
        {"metric": "sku_net_sales", "brand": "{canary}-brand", "by": "total"},
    ],
)
def test_anothers_group_category_and_brand_are_as_unknown_as_any(
    everybody: Asking, alone: Mapping[str, Asking], question: dict[str, str], tenant: str, other: str
) -> None:
    if tenant == other:
        return
    asked = {name: text.format(other, canary=CANARY[other]) for name, text in question.items()}
    path = f"/v1/metrics/{asked.pop('metric')}"

    foreign = everybody.refusal(path, key=key(everybody, tenant), **DAY, **asked)

    assert (foreign["status"], foreign["code"]) == (404, "unknown_name")
    assert foreign == alone[tenant].refusal(path, key=key(alone[tenant], tenant), **DAY, **asked)


@pytest.mark.parametrize("tenant", SHOPS)
def test_no_route_of_the_document_tells_a_tenant_of_another_s_rules_and_alerts_or_changes_them(
    asking: Asking, tenant: str
) -> None:
    own = asking.keys.make(tenant, "read", "ingest", "configure")
    before = list(asking.versions.rows)
    others = [other for other in SHOPS if other != tenant]
    texts = []

    for other in others:
        theirs = {id_: each for id_, each in asking.alert_tables.tenants.items() if each == other}
        for path, methods in asking.app.openapi()["paths"].items():
            for method in methods:
                if path.startswith(("/v1/alert", "/v1/stores")):
                    named = path.format(id=f"rule-of-{other}", alert_id=next(iter(theirs)), store=SHOPS[other][0])
                    for parameters in ({}, {"tenant": other}):
                        said = LEVEL | {"stores": [SHOPS[other][0]]}
                        answer = asking.response(
                            named, method=method.upper(), key=own, said=said, match="*", **parameters
                        )
                        assert answer.status_code in (200, 404, 422), (named, answer.text)
                        texts.append(answer.text + str(answer.headers))

    assert [CANARY[other] for other in others if any(CANARY[other] in text for text in texts)] == []
    assert asking.versions.rows == before


def test_answers_are_not_remembered_across_tenants(asking: Asking) -> None:
    first = asking.body("/v1/metrics/net_sales", key=key(asking, ACME), **DAY)
    second = asking.body("/v1/metrics/net_sales", key=key(asking, GLOBEX), **DAY)

    assert {each["store"] for each in first["series"]} == set(SHOPS[ACME])
    assert {each["store"] for each in second["series"]} == set(SHOPS[GLOBEX])


def test_without_a_key_the_stores_of_the_default_tenant_are_shown(asking: Asking) -> None:
    assert {each["id"] for each in asking.body("/v1/stores")["stores"]} == set(SHOPS["default"])


def test_the_operator_sees_all(asking: Asking) -> None:
    shown = asking.body("/v1/stores", key=OPERATOR_KEY)["stores"]

    assert {each["id"] for each in shown} == {store for stores in SHOPS.values() for store in stores}


def test_only_who_sees_all_is_shown_a_store_that_nobody_registered(asking: Asking) -> None:
    question = {"store": "999", **DAY}

    assert asking.refusal("/v1/metrics/net_sales", key=key(asking, ACME), **question)["status"] == 404
    assert asking.response("/v1/metrics/net_sales", key=OPERATOR_KEY, **question).status_code == 200


def test_every_route_names_the_scope_that_it_needs(asking: Asking) -> None:
    routes = [route for route in asking.app.routes if isinstance(route, APIRoute) and route.include_in_schema]

    without = {route.path for route in routes if not list(scopes(route.dependant))}

    assert without == OPEN


@pytest.mark.parametrize("tenant", [*SHOPS, None])
@pytest.mark.parametrize(("method", "path", "said"), DEAD_LETTERS)
def test_dead_letters_are_the_operators_alone_whatever_a_key_of_one_tenant_may(
    asking: Asking, method: str, path: str, said: object, tenant: str | None
) -> None:
    may = asking.keys.make(tenant, "read", "ingest", "operate") if tenant else None  # no command makes such a key

    response = asking.response(path, method=method, key=may, said=said)

    assert (response.status_code, response.json()["code"]) == ((403, "scope_missing") if may else (401, "key_missing"))
    assert "pos_transactions" not in response.text
    assert asking.dead_letters.sender.carried == []


def test_a_dead_letter_leaves_no_trace_on_any_route_but_the_operators(asking: Asking) -> None:
    keys = [asking.keys.make(tenant, "read", "ingest") for tenant in SHOPS]
    operations = [(method, path) for path, methods in asking.app.openapi()["paths"].items() for method in methods]
    texts = []

    for key_ in [*keys, None]:
        for method, path in operations:
            if "/live/" not in path:  # has no end
                named = path.format(
                    metric="net_sales",
                    view="sales",
                    source="pos_transactions",
                    topic="pos_transactions",
                    id="any",
                    number=1,
                    partition=0,
                    offset=0,
                    webhook="any",
                    period="daily",
                    store="any",
                    alert_id="0" * 32,
                )
                question = {"day": "2026-11-21", "store": "101"} if "/raw/" in path else DAY if "{" in path else {}
                answer = asking.response(named, method=method.upper(), key=key_, said=b"{}", **question)
                texts.append(answer.text + str(answer.headers))
    shown = asking.response("/v1/dead-letters/pos_transactions/0/0", key=OPERATOR_KEY).text

    assert [each for each in DEAD_LETTER_CANARY.values() if any(each in said for said in texts)] == []
    assert DEAD_LETTER_CANARY[ACME] in shown


def test_a_dead_letter_leaves_no_trace_on_any_page_but_the_operators(asking: Asking) -> None:
    paths = ["/", "/layers", "/views", "/publications", "/corrections", "/recomputes", "/stack", "/dead-letters"]
    paths += ["/dead-letters/pos_transactions/0/0", "/stores/101", "/stores/201", "/stores/301"]
    texts = []

    for tenant in SHOPS:
        browsing = Browsing(asking)
        browsing.sign_in(asking.keys.make(tenant, "read", "ingest", "operate"))
        texts += [browsing.response("GET", path).text for path in paths]
    operator = Browsing(asking)
    operator.sign_in()

    assert [each for each in DEAD_LETTER_CANARY.values() if any(each in said for said in texts)] == []
    assert DEAD_LETTER_CANARY[ACME] in operator.get("/dead-letters/pos_transactions/0/0")
