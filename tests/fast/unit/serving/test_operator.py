"""Who may ask what: readers what shops may see, the operator alone what changes something for all of them."""

import pytest

from master_dataset.webhooks.endpoint import BlockedRecord, Endpoint, EndpointState, RegisteredEndpoint
from serving_layer.admin.publications import RecomputeRecord
from serving_layer.alerts.rules import AlertRules, RuleAuthor
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from views.alerts.alert import Window, raised_id
from views.control.recompute import RecomputeRequest

DAY = {"store": "1", "from_": "2026-11-21", "to": "2026-11-22"}
BECAUSE = {"reason": "a test"}
FOR_ALL = [
    ("/v1/metrics", {}),
    ("/v1/metrics/net_sales", DAY),
    ("/v1/metrics/net_sales", DAY | {"as_of": 1}),
    ("/v1/index/net_sales", DAY),
    ("/v1/views/sales/cells", DAY),
    ("/v1/raw/pos_transactions", {"store": "1", "day": "2026-11-21"}),
    ("/v1/freshness", {}),
    ("/v1/stores", {}),
    ("/v1/sensors", {}),
    ("/v1/products", {}),
    ("/v1/publications", {}),
    ("/healthz", {}),
    ("/readyz", {}),
]
RULE = {"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3}
ALERT_ID = raised_id("queue", 1, ("default", "1"), Window("2026-11-21T09:00:00Z"), {})
FOR_ALL += [
    ("/v1/alerts", {}),
    (f"/v1/alerts/{ALERT_ID}", {}),
    ("/v1/alert-rules", {}),
    ("/v1/alert-rules/queue", {}),
    ("/v1/alert-rules/queue/versions", {}),
]
FOR_OPERATORS = [
    ("POST", "/v1/alert-rules", RULE | {"id": "another"}, 201),
    ("PUT", "/v1/alert-rules/queue", RULE, 200),
    ("DELETE", "/v1/alert-rules/queue", None, 200),
    ("GET", "/v1/webhooks", None, 200),
    ("POST", "/v1/webhooks", {"url": "https://acme.example/"}, 201),
    ("GET", "/v1/webhooks/hook", None, 200),
    ("PATCH", "/v1/webhooks/hook", {"batch": 3}, 200),
    ("POST", "/v1/webhooks/hook/rotate", None, 200),
    ("POST", "/v1/webhooks/hook/test", None, 200),
    ("POST", "/v1/webhooks/hook/resume", None, 200),
    ("POST", "/v1/webhooks/hook/skip", {"record": "alerts/0/42"}, 202),
    ("DELETE", "/v1/webhooks/hook", None, 204),
    ("GET", "/metrics", None, 200),
    ("GET", "/v1/corrections", None, 200),
    ("GET", "/v1/recomputes", None, 200),
    ("GET", "/v1/recomputes/known", None, 200),
    ("GET", "/v1/dead-letters", None, 200),
    ("GET", "/v1/dead-letters/wifi_sightings/0/0", None, 200),
    ("POST", "/v1/dead-letters/replay", {"ids": ["wifi_sightings/0/0"], "dry_run": True}, 200),
    ("POST", "/v1/recomputes", BECAUSE, 202),
    ("POST", "/v1/publications/1/rollback", BECAUSE, 200),
    ("POST", "/v1/events/pos_transactions", receipt("2026-11-21T09:00:00Z", minor=100), 202),
]
KEYS = [(None, 401, "key_missing"), ("a guess", 401, "key_wrong"), ("a reader's", 403, "scope_missing")]
NEEDS_NOTHING = ("/healthz", "/readyz")


@pytest.fixture
def asking() -> Asking:
    world = World()
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T09:30:00Z")
    world.rebuild("2026-11-21T10:00:00Z")
    rest = (None, None, None, None, None, None, None)
    world.recomputes["known"] = RecomputeRecord("known", "asked", RecomputeRequest(), "operator", "a test", *rest)
    asking = Asking(world)
    asking.dead_letters.archive.receive(b"{", topic="wifi_sightings")
    AlertRules(asking.versions).create(RuleAuthor("default", world.stores), RULE)
    asking.alert_tables.raised("2026-11-21T09:00:00Z")
    blocking = BlockedRecord("alerts", 0, 42, "1", world.now(), "the endpoint answered 503")
    endpoint = Endpoint("hook", "default", "https://acme.example/", "secret")
    asking.endpoints.put(RegisteredEndpoint(endpoint, None, EndpointState(blocking=(blocking,))))
    return asking


def test_every_route_is_in_one_of_both_tables(asking: Asking) -> None:
    described = asking.app.openapi()["paths"]
    operations = {(method.upper(), path) for path, methods in described.items() for method in methods}
    named = {path: path.replace("net_sales", "{metric}").replace("sales/", "{view}/") for path, _ in FOR_ALL}
    tried = {("GET", path.replace("queue", "{id}").replace(ALERT_ID, "{alert_id}")) for path in named.values()}
    names = {
        "known": "{id}",
        "1": "{number}",
        "pos_transactions": "{source}",
        "wifi_sightings": "{topic}",
        "hook": "{webhook}",
        "queue": "{id}",
    }
    for method, path, *_ in FOR_OPERATORS:
        known = "/".join(names.get(part, part) for part in path.split("/"))
        tried.add((method, known.replace("{topic}/0/0", "{topic}/{partition}/{offset}")))

    tried |= {("GET", "/v1/live/{metric}")}  # has no end: see test_live.py
    tried |= {("POST", "/v1/alert-rules/preview")}  # changes nothing, and is for readers: see test_alert_rules.py
    tried |= {("POST", "/v1/products"), ("POST", "/v1/targets")}  # take files: see test_products.py, test_targets.py
    plan = "/v1/stores/{store}/floor-plan"  # see test_floor_plans.py
    tried |= {("GET", plan), ("PUT", plan), ("DELETE", plan), ("GET", f"{plan}/image"), ("PUT", f"{plan}/image")}
    saved = {each for each in operations if each[1].startswith(("/v1/annotations", "/v1/saved-views", "/v1/shares"))}
    reports = {("GET", "/v1/reports/{period}")}

    assert operations == tried | saved | reports  # of every scope: see tests/fast/unit/saved, tests/fast/unit/reports


@pytest.mark.parametrize(("path", "question"), FOR_ALL)
@pytest.mark.parametrize("key", [None, "a reader's", OPERATOR_KEY])
def test_what_is_for_readers_is_answered_to_them(
    asking: Asking, path: str, question: dict[str, object], key: str | None
) -> None:
    sent = made(asking, key)

    assert asking.response(path, key=sent, **question).status_code == 200  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "question"), FOR_ALL)
def test_a_wrong_key_is_no_key_at_all(asking: Asking, path: str, question: dict[str, object]) -> None:
    response = asking.response(path, key="a guess", **question)  # type: ignore[arg-type]

    assert response.status_code == (200 if path in NEEDS_NOTHING else 401)


def made(asking: Asking, key: str | None) -> str | None:
    return asking.keys.make("default", "read") if key == "a reader's" else key


@pytest.mark.parametrize(("method", "path", "said", "_status"), FOR_OPERATORS)
@pytest.mark.parametrize(("key", "status", "code"), KEYS)
def test_what_is_for_operators_is_refused_to_others_before_anything_is_done(  # noqa: PLR0913, PLR0917 - the tables
    asking: Asking, method: str, path: str, said: object, _status: int, key: str | None, status: int, code: str
) -> None:
    response = asking.response(path, method=method, key=made(asking, key), said=said, match="*")

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
    assert asking.recomputing.requests == []
    assert asking.dead_letters.sender.carried == []
    assert asking.body("/v1/publications")["publications"][0]["publication"] == 2


@pytest.mark.parametrize(("method", "path", "said", "status"), FOR_OPERATORS)
def test_what_is_for_operators_is_answered_to_them(
    asking: Asking, method: str, path: str, said: object, status: int
) -> None:
    assert asking.response(path, method=method, key=OPERATOR_KEY, said=said, match="*").status_code == status
