"""Rules of alerts over REST: each tenant its own, each change a version, and nobody overwrites anybody."""

import asyncio
import threading
from typing import Any

import pytest

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.stores import Store
from serving_layer.alerts import rules as alerting
from serving_layer.alerts.rules import AlertService
from serving_layer.errors import TooBusyError
from tests.fast.unit.alerts.test_refused_rules import REFUSED
from tests.support import World
from tests.support.world_api import MOST_RULES, OPERATOR_KEY, Asking, Body

PATH = "/v1/alert-rules"
QUEUE = {"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3}
HOURS = {"mon": ("08:00-20:00",)}
KINDS: list[dict[str, Any]] = [
    QUEUE,
    {"kind": "level", "id": "limit", "of": "occupancy", "above": 50, "minutes": 0},
    {"kind": "silence", "id": "tills", "source": "pos_transactions", "minutes": 20},
    {"kind": "silence", "id": "sensors", "source": "sensor_heartbeats", "minutes": 10, "per": "sensor"},
    {"kind": "threshold", "id": "returns", "metric": "returns_value", "window": "hour", "above": 100.10},
    {"kind": "threshold", "id": "voids", "metric": "sales.zero_tx", "window": "15m", "above": 2},
    {
        "kind": "threshold",
        "id": "weak",
        "metric": "net_sales",
        "window": "hour",
        "below": 50,
        "versus": "previous_week",
    },
]


@pytest.fixture
def asking() -> Asking:
    return Asking(
        World(
            Store(id="1", timezone="UTC", opening_hours=HOURS),
            Store(id="2", timezone="UTC", tenant="another"),
            Store(id="3", timezone="UTC"),
        )
    )


def sent(asking: Asking, method: str, said: object = None, id_: str = "", **more: Any) -> tuple[int, Body]:
    path = f"{PATH}/{id_}" if id_ else PATH
    response = asking.response(path, method=method, said=said, **{"key": OPERATOR_KEY, **more})
    return response.status_code, response.json()


def ids(asking: Asking, **more: Any) -> list[str]:
    return [each["id"] for each in asking.body(PATH, **more)["rules"]]


@pytest.mark.parametrize("said", KINDS, ids=lambda said: said["id"])
def test_every_kind_of_rule_can_be_made_and_is_read_as_it_was_written(asking: Asking, said: dict[str, Any]) -> None:
    made = asking.response(PATH, method="POST", key=OPERATOR_KEY, said=said)

    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    read = asking.body(made.headers["location"])
    assert read == made.json()
    assert {name: read["rule"][name] for name in said} == said
    assert (read["version"], read["tenant"], read["removed"]) == (1, "default", False)
    assert read["in_words"].startswith("Alerts when ")


def test_a_rule_holds_a_while_after_it_was_written(asking: Asking) -> None:
    asking.world.pass_time("2026-11-21T10:00:00Z")

    _, made = sent(asking, "POST", QUEUE)

    assert made["effective_at"] == "2026-11-21T10:01:00Z"


def test_a_change_is_a_version_and_the_versions_stay_also_when_the_rule_is_gone(asking: Asking) -> None:
    sent(asking, "POST", QUEUE)

    changed, _ = sent(asking, "PUT", QUEUE | {"above": 5}, "queue", match='"1"')
    same, again = sent(asking, "PUT", QUEUE | {"above": 5}, "queue", match='"2"')
    removed, last = sent(asking, "DELETE", id_="queue", match='"2"')

    assert (changed, same, removed) == (200, 200, 200)
    assert (again["version"], last["version"], last["removed"], last["rule"]) == (2, 3, True, None)
    assert sent(asking, "GET", id_="queue")[0] == 404
    assert ids(asking) == []
    versions = asking.body(f"{PATH}/queue/versions", limit=2)
    assert [(each["version"], each["removed"]) for each in versions["versions"]] == [(3, True), (2, False)]
    older = asking.body(f"{PATH}/queue/versions", limit=2, before=versions["next"])
    assert [each["rule"]["above"] for each in older["versions"]] == [4]
    assert older["next"] is None


def test_a_rule_that_was_removed_can_be_made_again_behind_its_versions(asking: Asking) -> None:
    sent(asking, "POST", QUEUE)
    sent(asking, "DELETE", id_="queue", match="*")

    status, made = sent(asking, "POST", QUEUE)

    assert (status, made["version"]) == (201, 3)


def test_the_second_of_two_concurrent_edits_is_a_conflict(asking: Asking) -> None:
    sent(asking, "POST", QUEUE)
    first, _ = sent(asking, "PUT", QUEUE | {"above": 5}, "queue", match='"1"')
    second, problem = sent(asking, "PUT", QUEUE | {"above": 6}, "queue", match='"1"')
    third, _ = sent(asking, "DELETE", id_="queue", match='"1"')

    assert (first, second, third) == (200, 412, 412)
    assert (problem["code"], "Read it again" in problem["detail"]) == ("rule_moved", True)
    assert asking.body(f"{PATH}/queue")["rule"]["above"] == 5


def test_who_is_overtaken_between_reading_and_writing_overwrites_nothing(asking: Asking) -> None:
    sent(asking, "POST", QUEUE)
    asking.versions.is_overtaken = True

    assert sent(asking, "PUT", QUEUE | {"above": 5}, "queue", match='"1"')[0] == 412
    assert sent(asking, "DELETE", id_="queue", match="*")[0] == 412
    assert sent(asking, "POST", QUEUE | {"id": "other"})[0] == 412


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (None, (428, "version_not_said")),
        ("1", (422, "bad_question")),
        ('W/"1"', (422, "bad_question")),
        ('"1", "2"', (422, "bad_question")),
    ],
)
def test_who_does_not_say_which_version_they_have_seen_changes_nothing(
    asking: Asking, match: str | None, expected: tuple[int, str]
) -> None:
    sent(asking, "POST", QUEUE)

    for method, said in (("PUT", QUEUE | {"above": 5}), ("DELETE", None)):
        status, problem = sent(asking, method, said, "queue", match=match)
        assert (status, problem["code"]) == expected
    assert asking.body(f"{PATH}/queue")["version"] == 1


@pytest.mark.parametrize("bound", [b"1e-99999999999999999999", b"1e99999999999999999999"])
def test_a_number_that_no_decimal_can_hold_is_bad_input(asking: Asking, bound: bytes) -> None:
    said = b'{"kind":"threshold","id":"low","metric":"net_sales","window":"day","above":' + bound + b"}"

    refused = asking.refusal(f"{PATH}/preview", method="POST", said=said)

    assert (refused["status"], refused["code"]) == (422, "bad_question")


def test_a_rule_of_that_id_is_not_made_twice(asking: Asking) -> None:
    sent(asking, "POST", QUEUE)

    status, problem = sent(asking, "POST", QUEUE | {"above": 9})

    assert (status, problem["code"]) == (409, "rule_exists")


@pytest.mark.parametrize(("said", "field", "do"), REFUSED)
def test_an_invalid_rule_is_rejected_with_its_field_and_the_next_step(
    asking: Asking, said: Any, field: str, do: str
) -> None:
    status, problem = sent(asking, "POST", said)
    preview = asking.body(f"{PATH}/preview", method="POST", said=said)

    assert (status, problem["code"], problem["field"]) == (422, "bad_rule", field)
    assert do in problem["detail"]
    assert (preview["accepted"], preview["problem"]["title"]) == (False, problem["title"])
    assert asking.versions.rows == []


@pytest.mark.parametrize(
    ("said", "fires"),
    [
        ({"kind": "threshold", "id": "r", "metric": "traffic_in", "window": "day", "below": 0}, "never"),
        ({"kind": "threshold", "id": "r", "metric": "traffic_in", "window": "day", "above": -1}, "always"),
        ({"kind": "silence", "id": "r", "source": "pos_transactions", "minutes": 721}, "never"),
        ({"kind": "silence", "id": "r", "source": "pos_transactions", "minutes": 1, "hours": "always"}, "always"),
        ({"kind": "level", "id": "r", "of": "queue", "above": 1000, "minutes": 0}, "never"),
        ({"kind": "threshold", "id": "r", "metric": "net_sale", "window": "day", "above": 1}, None),
    ],
)
def test_a_preview_says_whether_a_rule_never_or_always_fires(
    asking: Asking, said: dict[str, Any], fires: str | None
) -> None:
    body = asking.body(f"{PATH}/preview", method="POST", said=said)

    assert (body["accepted"], body["fires"]) == (False, fires)
    assert body["problem"]["detail"]


def test_a_preview_says_what_would_be_watched_and_writes_nothing(asking: Asking) -> None:
    sent(asking, "POST", QUEUE)

    body = asking.body(f"{PATH}/preview", method="POST", said=QUEUE | {"above": 7})

    assert (body["accepted"], body["stores"], body["stores_total"]) == (True, ["1", "3"], 2)
    assert (body["before"]["above"], body["rule"]["above"]) == (4, 7)
    assert body["in_words"] == "Alerts when a queue is longer than 7 for 3 minutes, in every store."
    assert len(asking.versions.rows) == 1


def test_a_tenant_has_so_many_rules_and_no_more(asking: Asking) -> None:
    statuses = [sent(asking, "POST", QUEUE | {"id": f"r{number}"})[0] for number in range(MOST_RULES + 1)]
    _, problem = sent(asking, "POST", QUEUE)
    elsewhere, _ = sent(asking, "POST", QUEUE, tenant="another")

    assert statuses == [201] * MOST_RULES + [422]
    assert (problem["field"], "GALATEA_ALERT_RULES_PER_TENANT" in problem["detail"]) == ("id", True)
    assert asking.body(f"{PATH}/preview", method="POST", said=QUEUE)["accepted"] is False
    assert elsewhere == 201


def test_a_tenant_changes_its_own_rules_with_a_key_that_may_configure(asking: Asking) -> None:
    key = asking.keys.make("another", "read", "configure")

    status, made = sent(asking, "POST", QUEUE | {"stores": ["2"]}, key=key)

    assert (status, made["tenant"]) == (201, "another")
    assert ids(asking, key=key) == ["queue"]
    assert ids(asking) == []
    assert asking.acts[-1][1:] == (f"POST {PATH}", 201)


@pytest.mark.parametrize("scopes", [("read",), ("read", "ingest"), ("read", "operate")])
def test_a_key_that_may_not_configure_changes_nothing(asking: Asking, scopes: tuple[Any, ...]) -> None:
    key = asking.keys.make("another", *scopes)

    for method, id_ in (("POST", ""), ("PUT", "queue"), ("DELETE", "queue")):
        status, problem = sent(asking, method, QUEUE, id_, key=key, match="*")
        assert (status, problem["code"]) == (403, "scope_missing")
        assert sent(asking, method, QUEUE, id_, key=None, match="*")[0] == 401
    assert asking.versions.rows == []


def test_the_rule_of_another_tenant_is_as_unknown_as_one_that_nobody_has(asking: Asking) -> None:
    sent(asking, "POST", QUEUE)
    key = asking.keys.make("another", "read", "configure")

    refusals = [
        sent(asking, method, said, id_, key=key, match="*")
        for id_ in ("queue", "nobodys")
        for method, said in (("GET", None), ("PUT", QUEUE | {"id": id_}), ("DELETE", None))
    ]
    history = [asking.refusal(f"{PATH}/{id_}/versions", key=key) for id_ in ("queue", "nobodys")]

    assert {status for status, _ in refusals} == {404}
    assert str(refusals[:3]).replace("queue", "nobodys") == str(refusals[3:])
    assert str(history[0]).replace("queue", "nobodys") == str(history[1])
    assert sent(asking, "GET", id_="queue")[1]["version"] == 1


def test_nobody_speaks_for_another_tenant(asking: Asking) -> None:
    key = asking.keys.make("another", "read", "configure")

    assert sent(asking, "POST", QUEUE | {"tenant": "default"}, key=key)[1]["field"] == "tenant"
    assert sent(asking, "POST", QUEUE, key=key, tenant="default")[0] == 404
    assert sent(asking, "POST", QUEUE | {"stores": ["1"]}, key=key)[1]["field"] == "stores"


def test_a_body_that_is_no_rule_is_refused(asking: Asking) -> None:
    refusals = [sent(asking, "POST", said)[0] for said in (b"{", b"", b'{"id": NaN}', b"[" * 5000, [QUEUE])]
    long = sent(asking, "POST", QUEUE | {"name": "x" * 1_000_000})[0]
    other = asking.request(
        "POST", PATH, content=b"{}", headers={"Authorization": f"Bearer {OPERATOR_KEY}", "Content-Type": "text/plain"}
    )

    assert refusals == [422] * 5
    assert (long, other.status_code) == (413, 415)


def test_the_id_in_the_path_is_the_one_that_is_changed(asking: Asking) -> None:
    sent(asking, "POST", QUEUE)

    other, problem = sent(asking, "PUT", QUEUE | {"id": "other"}, "queue", match="*")
    without, _ = sent(asking, "PUT", {k: v for k, v in QUEUE.items() if k != "id"} | {"above": 8}, "queue", match="*")

    assert (other, problem["field"], without) == (422, "id", 200)


def test_while_the_store_is_away_everything_about_rules_is_503(asking: Asking) -> None:
    asking.versions.refuses = CassandraUnavailableError("It is away.", do="Wait.")

    assert sent(asking, "GET")[0] == 503
    assert sent(asking, "POST", QUEUE)[0] == 503


def test_a_tenant_leaves_room_for_the_rules_of_others() -> None:
    goes_on, service = threading.Event(), AlertService(None, None)  # type: ignore[arg-type]  # nothing is read

    async def outcomes() -> list[bool]:
        def work(_: object) -> bool:
            return goes_on.wait(10)

        own = [asyncio.ensure_future(service.in_thread("acme", work)) for _ in range(alerting.MAX_WAITING)]
        await asyncio.sleep(0.01)
        other = asyncio.ensure_future(service.in_thread("default", lambda _: True))
        await asyncio.sleep(0.01)
        goes_on.set()
        found = await asyncio.gather(*own, other, return_exceptions=True)
        return [not isinstance(each, TooBusyError) for each in found]

    *own, other = asyncio.run(outcomes())
    assert other
    assert own.count(True) == 12


def test_more_questions_about_rules_than_a_process_takes_are_refused(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerting, "MAX_WAITING", 0)

    assert sent(asking, "GET")[1]["code"] == "too_busy"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (PATH, "GET, HEAD, POST"),
        (f"{PATH}/queue", "DELETE, GET, HEAD, PUT"),
        (f"{PATH}/preview", "POST"),
        ("/v1/stores", "GET, HEAD"),
    ],
)
def test_a_method_that_a_path_does_not_have_is_refused_with_all_that_it_has(
    asking: Asking, path: str, allowed: str
) -> None:
    refused = asking.request("PATCH", path)

    assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
