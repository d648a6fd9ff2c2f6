"""Alerts over REST: newest first, a page at a time, and as of when the list is whole."""

from datetime import UTC, datetime
from typing import Any

import pytest

from master_dataset.registry.stores import Store
from serving_layer.alerts import history
from serving_layer.alerts.history import HistoryCoverage, StoredAlert
from tests.support import World
from tests.support.hostile_alerts import HOSTILE, body
from tests.support.world_api import OPERATOR_KEY, Asking, Body

PATH = "/v1/alerts"
AT = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def asking() -> Asking:
    """Three of the default tenant on two days, of which one is over and one was wrong; one of another tenant."""
    made = Asking(
        World(
            Store(id="1", timezone="UTC"),
            Store(id="2", timezone="UTC"),
            Store(id="9", timezone="UTC", tenant="another"),
        )
    )
    tables = made.alert_tables
    tables.known = HistoryCoverage(AT, None)
    tables.raised("2026-11-19T10:00:00Z", store="2")
    over = tables.raised("2026-11-20T10:00:00Z", rule="limit")
    tables.followed(over, "resolved", "2026-11-20T11:00:00Z")
    wrong = tables.raised("2026-11-20T10:00:00.500Z")
    tables.followed(wrong, "retracted", "2026-11-21T01:00:00Z", reason="waited")
    tables.raised("2026-11-21T09:00:00Z", store="9", tenant="another")
    return made


def days(body: Body) -> list[str]:
    return [each["raised_at"][8:10] + each["state"][:3] for each in body["alerts"]]


def test_alerts_come_newest_first_with_what_followed(asking: Asking) -> None:
    body = asking.body(PATH)

    assert days(body) == ["20ret", "20res", "19ope"]
    assert (body["alerts_as_of"], body["complete_from"], body["next"]) == ("2026-11-21T12:00:00Z", None, None)
    over = body["alerts"][1]
    assert {name: over[name] for name in ("rule", "store", "value", "threshold", "provisional", "late", "window")} == {
        "rule": "limit",
        "store": "1",
        "value": 6,
        "threshold": 4,
        "provisional": True,
        "late": False,
        "window": {"from": "2026-11-20T10:00:00Z", "to": None},
    }
    assert (over["resolved_at"], over["resolved_because"]) == ("2026-11-20T11:00:00Z", "over")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"store": "2"}, ["19ope"]),
        ({"rule": "limit"}, ["20res"]),
        ({"rule": "nobodys"}, []),
        ({"state": "open"}, ["19ope"]),
        ({"state": "resolved"}, ["20res"]),
        ({"state": "retracted"}, ["20ret"]),
        ({"from_": "2026-11-20"}, ["20ret", "20res"]),
        ({"to": "2026-11-20T10:00:00Z"}, ["19ope"]),
        ({"to": "2026-11-20T10:00:00.001Z"}, ["20res", "19ope"]),
        ({"from_": "2026-11-20T10:00:00Z", "to": "2026-11-20T10:00:00.500Z"}, ["20res"]),
        ({"state": "open", "from_": "2026-11-20"}, []),
    ],
)
def test_store_rule_state_and_time_choose(asking: Asking, arguments: dict[str, object], expected: list[str]) -> None:
    assert days(asking.body(PATH, **arguments)) == expected


@pytest.mark.parametrize("arguments", [{}, {"state": "open"}])
def test_pages_follow_each_other_until_the_last(asking: Asking, arguments: dict[str, object]) -> None:
    for minute in range(10, 17):
        asking.alert_tables.raised(f"2026-11-18T10:{minute}:00Z")
    whole = days(asking.body(PATH, **arguments))
    found: list[str] = []
    following: dict[str, object] | None = {}

    while following is not None:
        body = asking.body(PATH, limit=2, **arguments, **following)
        found += days(body)
        following = {"after": body["next"]} if body["next"] else None

    assert found == whole


def test_a_page_looks_at_so_many_and_says_where_to_go_on(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_LOOKED_AT", 2)

    first = asking.body(PATH, store="2")
    second = asking.body(PATH, store="2", after=first["next"])

    assert (days(first), days(second), second["next"]) == ([], ["19ope"], None)


def test_a_list_says_when_nobody_keeps_alerts_and_from_when_on_it_is_complete(asking: Asking) -> None:
    asking.alert_tables.known = HistoryCoverage(None, AT)

    body = asking.body(PATH)

    assert (body["alerts_as_of"], body["complete_from"]) == (None, "2026-11-21T12:00:00Z")


def test_a_list_is_as_old_as_its_oldest_partition() -> None:
    later = AT.replace(hour=13)

    assert HistoryCoverage.of([HistoryCoverage(later, None), HistoryCoverage(AT, None)]) == HistoryCoverage(AT, None)
    assert HistoryCoverage.of([HistoryCoverage(later, later), HistoryCoverage(None, AT)]) == HistoryCoverage(
        None, later
    )
    assert HistoryCoverage.of([]) == HistoryCoverage(None, None)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"state": "closed"}, (422, "bad_question")),
        ({"from_": "yesterday"}, (422, "bad_question")),
        ({"from_": "2026-11-22", "to": "2026-11-21"}, (422, "bad_question")),
        ({"limit": 0}, (422, "bad_question")),
        ({"limit": 1001}, (422, "bad_question")),
        ({"after": "nobodys"}, (422, "bad_question")),
        ({"after": "WzEsMl0="}, (422, "bad_question")),
        ({"store": "77"}, (404, "unknown_name")),
        ({"store": "9"}, (404, "unknown_name")),
        ({"tenant": "another"}, (404, "unknown_name")),
        ({"view": "sales"}, (422, "unknown_argument")),
    ],
)
def test_an_invalid_request_is_rejected(
    asking: Asking, arguments: dict[str, object], expected: tuple[int, str]
) -> None:
    problem = asking.refusal(PATH, **arguments)

    assert (problem["status"], problem["code"]) == expected


def test_alerts_are_returned_as_a_table(asking: Asking) -> None:
    response = asking.response(PATH, format="csv", state="open")

    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    lines = response.text.splitlines()
    assert lines[0].startswith("alert_id,state,tenant,store,rule,version,from,to,dimensions,value,threshold")
    assert lines[1].endswith(",true,false,2026-11-19T10:00:00Z,,,,,2026-11-21T12:00:00Z,")
    assert asking.response(PATH, format="parquet").content[:4] == b"PAR1"


def test_one_alert_is_returned_with_its_records_in_order(asking: Asking) -> None:
    wrong = asking.body(PATH)["alerts"][0]["alert_id"]

    body = asking.body(f"{PATH}/{wrong}")

    assert [each["kind"] for each in body["records"]] == ["raised", "retracted"]
    assert (body["state"], body["retracted_because"]) == ("retracted", "waited")
    assert body["alerts_as_of"] == "2026-11-21T12:00:00Z"


def test_the_alert_of_another_tenant_is_as_unknown_as_one_that_nobody_has(asking: Asking) -> None:
    [foreign] = asking.body(PATH, key=OPERATOR_KEY, store="9")["alerts"]

    tables = [asking.refusal(f"{PATH}/{id_}") for id_ in (foreign["alert_id"], "0" * 32)]

    assert [each["status"] for each in tables] == [404, 404]
    assert str(tables[0]).replace(foreign["alert_id"], "0" * 32) == str(tables[1])
    assert asking.body(f"{PATH}/{foreign['alert_id']}", key=OPERATOR_KEY)["store"] == "9"


def test_each_tenant_is_shown_its_own_and_the_operator_all(asking: Asking) -> None:
    key: Any = asking.keys.make("another")

    assert {each["store"] for each in asking.body(PATH, key=key)["alerts"]} == {"9"}
    assert {each["store"] for each in asking.body(PATH, key=OPERATOR_KEY)["alerts"]} == {"1", "2", "9"}
    assert {each["store"] for each in asking.body(PATH, key=OPERATOR_KEY, tenant="another")["alerts"]} == {"9"}


STORED = {what: value.decode(errors="replace") for what, value in HOSTILE.items() if "UTF-8" not in what}
"""The texts that a former release can have stored."""


@pytest.mark.parametrize("text", STORED.values(), ids=STORED)
def test_a_row_that_cannot_be_read_is_left_out_and_counted(asking: Asking, text: str) -> None:
    whole, id_ = asking.body(PATH), "0" * 32
    asking.alert_tables.rows[id_] = StoredAlert(AT, id_, text)
    asking.alert_tables.tenants[id_] = "default"
    before = history.UNREADABLE._value.get()  # noqa: SLF001 - the client has no other way

    assert asking.body(PATH) == whole
    assert history.UNREADABLE._value.get() == before + 1  # noqa: SLF001
    assert days(asking.body(PATH, state="open")) == ["19ope"]
    assert asking.refusal(f"{PATH}/{id_}")["status"] == 404


@pytest.mark.parametrize("text", [STORED["place is an array"], STORED["window starts at banana"], body().decode()])
@pytest.mark.parametrize("column", ["resolved", "retracted"])
def test_an_alert_stays_listed_without_a_follower_that_cannot_be_read(asking: Asking, column: str, text: str) -> None:
    tables = asking.alert_tables
    [id_] = [each["alert_id"] for each in asking.body(PATH)["alerts"] if each["state"] == "open"]
    tables.rows[id_] = tables.rows[id_]._replace(**{column: text})  # type: ignore[arg-type]

    assert days(asking.body(PATH)) == ["20ret", "20res", "19ope"]
    detail = asking.body(f"{PATH}/{id_}")
    assert (detail["state"], [each["kind"] for each in detail["records"]]) == ("open", ["raised"])


@pytest.mark.parametrize(("id_", "expected"), [("short-id", ([], ["20ret"])), ("a" * 999, (["20ret"], ["20res"]))])
def test_pages_go_on_after_rows_that_cannot_be_read(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, id_: str, expected: tuple[list[str], list[str]]
) -> None:
    monkeypatch.setattr(history, "MOST_LOOKED_AT", 1)
    asking.alert_tables.rows[id_] = StoredAlert(AT, id_, STORED["window starts at banana"])
    asking.alert_tables.tenants[id_] = "default"

    first = asking.body(PATH)
    second = asking.body(PATH, after=first["next"])

    assert (days(first), days(second)) == expected
