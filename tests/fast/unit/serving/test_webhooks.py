"""Webhooks over REST: made, looked at, changed, tried, resumed, skipped and removed, each by whose they are."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import pytest

from master_dataset.webhooks.endpoint import MOST_URL, BlockedRecord, Endpoint, EndpointState, RegisteredEndpoint
from serving_layer.responses.webhooks import WebhookTrial
from tests.support import World
from tests.support.world_api import MOST_WEBHOOKS, OPERATOR_KEY, Asking, Body

PATH = "/v1/webhooks"
URL = "https://acme.example/alerts"
SECRETS = {"acme": "whsec_Canary-acme", "globex": "whsec_Canary-globex"}
OF = {"acme": "a1", "globex": "b1"}
AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
BLOCKING = BlockedRecord("alerts", 1, 42, "201", AT, "the endpoint answered 503")
STATE = EndpointState(AT, 503, AT, AT - timedelta(hours=1), 4, AT, (BLOCKING,), AT)
ACTS = [
    ("GET", "", None),
    ("PATCH", "", {"batch": 3}),
    ("POST", "/rotate", None),
    ("POST", "/test", None),
    ("POST", "/resume", None),
    ("POST", "/skip", {"record": BLOCKING.id}),
    ("DELETE", "", None),
]


@pytest.fixture
def asking() -> Asking:
    world = World()
    world.rebuild("2026-11-21T10:00:00Z")
    asking = Asking(world)
    for tenant, id_ in OF.items():
        endpoint = Endpoint(id_, tenant, f"https://{tenant}-canary.example/", SECRETS[tenant], 100, 1_795_000_000_000)
        asking.endpoints.put(RegisteredEndpoint(endpoint, AT if tenant == "globex" else None, STATE))
    return asking


def acme(asking: Asking) -> str:
    return asking.keys.make("acme", "read", "configure")


def made(asking: Asking, said: object = None, key: str | None = None, status: int = 201) -> Body:
    response = asking.response(PATH, method="POST", key=key or acme(asking), said=said or {"url": URL})
    assert response.status_code == status, response.text
    found: Body = response.json()
    return found


def act(asking: Asking, method: str, path: str, said: object = None, key: str | None = None) -> httpx.Response:
    return asking.response(f"{PATH}/{path}", method=method, key=key or acme(asking), said=said)


def test_a_new_address_gets_alerts_from_now_on_and_its_secret_is_shown_once(asking: Asking) -> None:
    key = acme(asking)

    body = made(asking, {"url": URL, "batch": 7}, key)
    again = act(asking, "GET", body["id"], key=key).json()

    assert (again["tenant"], again["url"], again["batch"], again["state"]) == ("acme", URL, 7, "ok")
    assert body["secret"].startswith("whsec_")
    assert len(body["secret"]) > 40
    assert "secret" not in again
    assert asking.endpoints.kept[body["id"]].endpoint.secret == body["secret"]


def test_the_answer_with_a_secret_is_kept_by_nobody_and_says_where_the_webhook_is(asking: Asking) -> None:
    response = asking.response(PATH, method="POST", key=acme(asking), said={"url": URL})

    assert response.headers["cache-control"] == "no-store"
    assert act(asking, "GET", response.headers["location"].rsplit("/", 1)[1]).json()["url"] == URL


def test_the_state_of_an_endpoint_is_as_its_worker_saw_it(asking: Asking) -> None:
    found = act(asking, "GET", "a1").json()

    assert (found["state"], found["since"]) == ("retrying", "2026-11-21T09:30:00Z")
    assert (found["last_status"], found["last_delivered_at"]) == (503, "2026-11-21T08:30:00Z")
    assert found["lag"]["records"] == 4
    assert found["lag"]["seconds"] == (asking.world.now() - AT).total_seconds()
    assert found["blocking"] == [
        {"record": "alerts/1/42", "store": "201", "since": "2026-11-21T09:30:00Z", "why": "the endpoint answered 503"}
    ]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"url": "http://acme.example/"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"url": f"https://acme.example/{'a' * (MOST_URL - 20)}"}, "url"),
        ({"url": "https://n:w@acme.example/"}, "url"),
    ],
)
def test_an_address_that_cannot_be_called_is_refused_with_the_field_and_what_to_write(
    asking: Asking, said: object, field: str
) -> None:
    refused = made(asking, said, status=422)

    assert (refused["code"], refused["field"], refused["detail"]) == ("bad_endpoint", field, "https://host/path")


@pytest.mark.parametrize("said", [{}, {"url": URL, "batch": 0}, {"url": URL, "batch": 501}, {"url": URL, "more": 1}])
def test_what_makes_no_webhook_is_refused(asking: Asking, said: dict[str, object]) -> None:
    assert asking.response(PATH, method="POST", key=acme(asking), said=said).status_code == 422


@pytest.mark.parametrize("batch", [1, 500])
def test_as_many_alerts_a_call_as_there_may_be_are_taken(asking: Asking, batch: int) -> None:
    assert made(asking, {"url": URL, "batch": batch})["batch"] == batch


def test_an_address_that_is_just_as_long_as_it_may_be_is_taken(asking: Asking) -> None:
    url = f"{URL}?{'a' * MOST_URL}"[:MOST_URL]

    assert made(asking, {"url": url})["url"] == url


def test_a_tenant_has_so_many_and_no_more_and_others_have_theirs(asking: Asking) -> None:
    key = acme(asking)
    for _ in range(MOST_WEBHOOKS - 1):
        made(asking, key=key)

    refused = made(asking, key=key, status=409)

    assert (refused["code"], "Remove one" in refused["detail"]) == ("too_many_webhooks", True)
    made(asking, key=asking.keys.make("globex", "configure"))


def test_a_change_says_what_is_otherwise_and_leaves_the_rest(asking: Asking) -> None:
    changed = act(asking, "PATCH", "a1", {"batch": 3}).json()
    moved = act(asking, "PATCH", "a1", {"url": URL}).json()
    refused = act(asking, "PATCH", "a1", {"url": "http://acme.example/"})

    assert (changed["batch"], changed["url"]) == (3, "https://acme-canary.example/")
    assert (moved["batch"], moved["url"]) == (3, URL)
    assert (refused.status_code, refused.json()["field"]) == (422, "url")
    assert asking.endpoints.kept["a1"].endpoint.secret == SECRETS["acme"]


def test_a_rotated_secret_is_another_one_and_shown_once(asking: Asking) -> None:
    renewed = act(asking, "POST", "a1/rotate").json()

    assert renewed["secret"] == asking.endpoints.kept["a1"].endpoint.secret != SECRETS["acme"]
    assert "secret" not in act(asking, "GET", "a1").json()


@pytest.mark.parametrize(
    "trial",
    [
        WebhookTrial("done", 204, None, 3),
        WebhookTrial("failed", None, "no answer in 10 s", 10_000),
        WebhookTrial("refused", 301, "the endpoint answered 301", 2),
    ],
)
def test_the_outcome_of_a_test_call_is_returned(asking: Asking, trial: WebhookTrial) -> None:
    asking.trying.trial = trial

    assert act(asking, "POST", "a1/test").json() == msgspec.to_builtins(trial)
    assert [each.id for each in asking.trying.called] == ["a1"]


def test_a_suspended_one_is_resumed_and_how_long_it_failed_counts_anew(asking: Asking) -> None:
    key = asking.keys.make("globex", "configure")
    before = act(asking, "GET", "b1", key=key).json()

    after = act(asking, "POST", "b1/resume", key=key).json()

    assert (before["state"], before["since"]) == ("suspended", "2026-11-21T09:30:00Z")
    assert (after["state"], after["since"]) == ("ok", None)
    assert act(asking, "GET", "b1", key=key).json() == after


def test_the_one_record_that_blocks_is_skipped_by_name_and_becomes_a_dead_letter(asking: Asking) -> None:
    key = acme(asking)
    response = act(asking, "POST", "a1/skip", {"record": "alerts/1/42"}, key)

    [by] = asking.keys.kept
    assert (response.status_code, response.json()["dead_letter"]) == (202, "webhook.a1/1/42")
    assert asking.endpoints.skipped == [("a1", ("alerts", 1, 42), by.id)]
    assert asking.acts == [(by.id, "POST /v1/webhooks/a1/skip", 202)]


@pytest.mark.parametrize("record", ["alerts/1/41", "alerts/1/43", "alerts/0/42", "other/1/42", "42", "alerts/1/042"])
def test_what_does_not_block_is_not_skipped(asking: Asking, record: str) -> None:
    refused = act(asking, "POST", "a1/skip", {"record": record})

    assert (refused.status_code, refused.json()["code"]) == (409, "not_blocking")
    assert refused.json()["detail"] == "Name one of these: `alerts/1/42`."
    assert asking.endpoints.skipped == []


def test_what_is_removed_is_gone(asking: Asking) -> None:
    removed = act(asking, "DELETE", "a1")

    assert (removed.status_code, removed.content) == (204, b"")
    assert act(asking, "GET", "a1").status_code == 404
    assert "a1" not in asking.endpoints.kept


@pytest.mark.parametrize(("method", "path", "said"), ACTS)
def test_what_is_anothers_is_as_unknown_as_what_nobody_has(
    asking: Asking, method: str, path: str, said: object
) -> None:
    kept, key = dict(asking.endpoints.kept), acme(asking)

    foreign, nobodys = (act(asking, method, f"{id_}{path}", said, key) for id_ in ("b1", "c1"))

    assert (foreign.status_code, nobodys.status_code) == (404, 404)
    assert foreign.text.replace("b1", "c1") == nobodys.text
    assert (asking.endpoints.kept, asking.endpoints.skipped, asking.trying.called) == (kept, [], [])


def test_a_tenants_key_makes_none_for_another_tenant_and_lists_its_own_alone(asking: Asking) -> None:
    key = acme(asking)

    refused = made(asking, {"url": URL, "tenant": "globex"}, key, status=404)
    listed = asking.body(PATH, key=key)["webhooks"]

    assert refused["code"] == "unknown_name"
    assert asking.response(PATH, key=key, tenant="globex").status_code == 404
    assert [each["id"] for each in listed] == ["a1"]


@pytest.mark.parametrize(("method", "path", "said"), [*ACTS, ("GET", None, None), ("POST", None, {"url": URL})])
@pytest.mark.parametrize(("scopes", "status"), [((), 401), (("read", "ingest"), 403)])
def test_who_may_not_configure_is_let_near_none_of_it(  # noqa: PLR0913, PLR0917 - the tables
    asking: Asking, method: str, path: str | None, said: object, scopes: tuple[str, ...], status: int
) -> None:
    key = asking.keys.make("acme", *scopes) if scopes else None  # type: ignore[arg-type]
    kept = dict(asking.endpoints.kept)

    response = asking.response(PATH if path is None else f"{PATH}/a1{path}", method=method, key=key, said=said)

    assert response.status_code == status
    assert asking.endpoints.kept == kept


def test_operators_see_those_of_all_tenants_page_by_page(asking: Asking) -> None:
    first = asking.body(PATH, key=OPERATOR_KEY, limit=1)
    second = asking.body(PATH, key=OPERATOR_KEY, limit=1, after=first["next"])
    named = asking.body(PATH, key=OPERATOR_KEY, tenant="globex")["webhooks"]

    assert [each["id"] for page in (first, second) for each in page["webhooks"]] == ["a1", "b1"]
    assert second["next"] is None
    assert [each["tenant"] for each in named] == ["globex"]
    assert made(asking, {"url": URL, "tenant": "initech"}, OPERATOR_KEY)["tenant"] == "initech"


def test_no_route_tells_a_secret_or_what_is_anothers(asking: Asking) -> None:
    described = asking.app.openapi()["paths"]
    received: dict[str, list[str]] = {"acme": [], "globex": []}

    for tenant, id_ in OF.items():
        key = asking.keys.make(tenant, "read", "ingest", "configure")
        for path, methods in described.items():
            for method in methods:
                if "/live/" not in path and method.upper() != "DELETE" and not path.endswith("/rotate"):
                    place = path.format(
                        metric="net_sales",
                        view="sales",
                        source="pos_transactions",
                        topic="pos_transactions",
                        period="daily",
                        number=1,
                        partition=0,
                        offset=0,
                        webhook=id_,
                        store="any",
                        id="any",
                        alert_id="any",
                    )
                    answer = asking.response(place, method=method.upper(), key=key, said=b"{}")
                    received[tenant].append(answer.text + str(answer.headers))

    assert [path for path in described if "webhook" in path]
    assert [each for texts in received.values() for each in texts if "Canary-" in each] == []
    assert any("acme-canary" in each for each in received["acme"])
    assert [each for each in received["acme"] if "globex-canary" in each or '"b1"' in each] == []
    assert [each for each in received["globex"] if "acme-canary" in each or '"a1"' in each] == []


@pytest.mark.parametrize(
    ("path", "methods"),
    [(PATH, {"GET", "POST"}), (f"{PATH}/a1", {"GET", "PATCH", "DELETE"}), (f"{PATH}/a1/test", {"POST"})],
)
def test_a_method_that_a_path_lacks_is_answered_with_those_that_it_has(
    asking: Asking, path: str, methods: set[str]
) -> None:
    response = asking.response(path, method="PUT", key=OPERATOR_KEY)

    assert response.status_code == 405
    assert {each.strip() for each in response.headers["allow"].split(",")} - {"HEAD"} == methods


def test_one_that_refuses_everything_says_since_when_unless_it_also_fails_or_is_suspended() -> None:
    refusing = EndpointState(refusing_since=AT)
    endpoint = Endpoint("e1", "acme", "https://acme.example/", "secret")
    later = AT + timedelta(hours=1)

    received = [
        RegisteredEndpoint(endpoint, None, refusing),
        RegisteredEndpoint(endpoint, None, replace(refusing, failing_since=later)),
        RegisteredEndpoint(endpoint, later, refusing),
        RegisteredEndpoint(endpoint),
    ]

    assert [(each.word, each.since) for each in received] == [
        ("refusing", AT),
        ("retrying", later),
        ("suspended", later),
        ("ok", None),
    ]
