"""Dead letters over REST: listed a page at a time, shown with their bytes, mended and sent again."""

from typing import Any

import pytest
from prometheus_client import REGISTRY

from master_dataset.registry.stores import Store, currency
from serving_layer.admin import dead_letters as stored
from tests.support import World
from tests.support.archiving import TILLS
from tests.support.corpus.case import receipt
from tests.support.world_api import OPERATOR_KEY, Asking, Body

PATH = "/v1/dead-letters"
NO_TIME = receipt({"happened_at": '"yesterday"'})
A_TIME = {"set": {"/happened_at": "2026-11-21T11:00:00Z"}}


@pytest.fixture
def asking() -> Asking:
    """Offsets 0 to 2: two records without a time, then one that is no JSON."""
    made = Asking(World())
    made.dead_letters.archive.receive(NO_TIME, receipt({"happened_at": "7", "transaction_id": "43"}), b'{"\xff')
    return made


def listed(asking: Asking, **arguments: object) -> Body:
    return asking.body(PATH, key=OPERATOR_KEY, **arguments)


def replay(asking: Asking, **said: object) -> Body:
    return asking.body(f"{PATH}/replay", method="POST", key=OPERATOR_KEY, said=said)


def refusal(asking: Asking, path: str, **arguments: Any) -> tuple[int, str]:
    problem = asking.refusal(path, key=OPERATOR_KEY, **arguments)
    return problem["status"], problem["code"]


def test_dead_letters_come_newest_first_with_the_number_of_each_reason(asking: Asking) -> None:
    body = listed(asking)

    assert (body["counts"], body["replayed"], body["next"]) == ({"bad_time": 2, "not_utf8": 1}, {}, None)
    assert [each["id"] for each in body["dead_letters"]] == [f"{TILLS}/0/{offset}" for offset in (2, 1, 0)]
    assert body["dead_letters"][2] == {
        "id": "pos_transactions/0/0",
        "reason": "bad_time",
        "field": "/happened_at",
        "sentence": "`/happened_at` must be a time such as 2026-11-21T09:00:00Z, with an offset or Z.",
        "received_at": "2026-11-21T12:00:00Z",
        "replays": [],
    }


def test_a_page_leads_to_the_next_one(asking: Asking) -> None:
    first = listed(asking, limit=2)
    second = listed(asking, limit=2, after=first["next"])

    assert [each["id"][-1] for each in first["dead_letters"] + second["dead_letters"]] == ["2", "1", "0"]
    assert second["next"] is None


def test_reason_source_time_and_replays_choose(asking: Asking) -> None:
    replay(asking, ids=["pos_transactions/0/0"], mend=A_TIME)

    def ids(**arguments: object) -> str:
        return "".join(each["id"][-1] for each in listed(asking, **arguments)["dead_letters"])

    assert ids(reason="bad_time") == "10"
    assert ids(source="people_counts") == ""
    assert ids(from_="2026-11-21T12:00:01Z", to="2026-11-21T12:00:02Z") == "1"
    assert ids(from_="2026-11-22") == ""
    assert (ids(replayed="true"), ids(replayed="false")) == ("0", "21")
    assert listed(asking)["replayed"] == {"bad_time": 1}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"reason": "bad_tim"}, (422, "bad_question")),
        ({"source": "tills"}, (404, "unknown_name")),
        ({"from_": "yesterday"}, (422, "bad_question")),
        ({"from_": "2026-11-22", "to": "2026-11-21"}, (422, "bad_question")),
        ({"limit": 0}, (422, "bad_question")),
        ({"after": "nobody's"}, (422, "bad_question")),
        ({"after": "WzEwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMCwiYSIsMCwwXQ=="}, (422, "bad_question")),
        ({"store": "1"}, (422, "unknown_argument")),
    ],
)
def test_an_invalid_request_is_rejected(
    asking: Asking, arguments: dict[str, object], expected: tuple[int, str]
) -> None:
    assert refusal(asking, PATH, **arguments) == expected


def test_one_is_shown_with_its_bytes_and_headers(asking: Asking) -> None:
    [place] = asking.dead_letters.archive.receive(b"\xff", key=None, headers=[("trace", b"7")])

    body = asking.body(f"{PATH}/{place.id}", key=OPERATOR_KEY)

    as_shown = {name: body[name] for name in ("id", "key", "headers", "bytes", "text", "base64", "replays")}
    assert as_shown == {
        "id": place.id,
        "key": None,
        "headers": [{"key": "trace", "value": "7"}],
        "bytes": 1,
        "text": "\\xff",
        "base64": "/w==",
        "replays": [],
    }


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("pos_transactions/0/99", (404, "unknown_name")),
        ("nobody/0/0", (404, "unknown_name")),
        ("pos_transactions/0/x", (422, "bad_question")),
        (f"pos_transactions/0/{2**63}", (422, "bad_question")),
        ("pos_transactions/-1/0", (422, "bad_question")),
    ],
)
def test_what_is_no_dead_letter_is_not_found(asking: Asking, place: str, expected: tuple[int, str]) -> None:
    assert refusal(asking, f"{PATH}/{place}") == expected


def test_a_patched_dead_letter_is_sent_once_and_its_digits_as_they_were_written(asking: Asking) -> None:
    said = (
        b'{"ids": ["pos_transactions/0/0"], "mend": {"set": {"/happened_at": "2026-11-21T11:00:00Z",'
        b'"/transactions/0/price": 1.10, "/transactions/0/total": 2.20}}}'
    )

    first = asking.body(f"{PATH}/replay", method="POST", key=OPERATOR_KEY, said=said)
    asking.dead_letters.archive.catch_up()
    second = asking.body(f"{PATH}/replay", method="POST", key=OPERATOR_KEY, said=said)
    [shown] = asking.body(f"{PATH}/pos_transactions/0/0", key=OPERATOR_KEY)["replays"]

    assert first["counts"] == {"sent": 1}
    assert first["items"] == [
        {
            "id": "pos_transactions/0/0",
            "outcome": "sent",
            "sent_to": "pos_transactions/0/3",
            "duplicate_of": None,
            "store": "1",
            "reason": None,
            "field": None,
            "sentence": None,
        }
    ]
    assert b'"price":1.10' in asking.dead_letters.sender.carried[0].value
    assert (second["counts"], second["items"][0]["duplicate_of"]) == ({"duplicate": 1}, "pos_transactions/0/3")
    assert (shown["outcome"], shown["by"], shown["at"]) == ("event", "operator", "2026-11-21T13:00:00Z")


def test_a_dry_run_says_of_each_what_it_would_become(asking: Asking) -> None:
    body = replay(asking, filter={"source": TILLS}, mend=A_TIME, dry_run=True)

    assert (body["dry_run"], body["counts"], body["next"]) == (True, {"event": 2, "refused": 1}, None)
    assert [(each["id"][-1], each["outcome"], each["reason"]) for each in body["items"]] == [
        ("0", "event", None),
        ("1", "event", None),
        ("2", "refused", "not_utf8"),
    ]
    assert asking.dead_letters.sender.carried == []


def test_a_filter_goes_on_behind_what_was_looked_at(asking: Asking) -> None:
    first = replay(asking, filter={"source": TILLS}, mend=A_TIME, limit=2)
    second = replay(asking, filter={"source": TILLS}, mend=A_TIME, limit=2, after=first["next"])

    assert (first["counts"], second["counts"], second["next"]) == ({"sent": 2}, {"refused": 1}, None)


def test_a_complete_record_replaces_one_dead_letter(asking: Asking) -> None:
    body = receipt({"happened_at": '"2026-11-21T11:00:00Z"'}).decode()

    assert replay(asking, ids=["pos_transactions/0/2"], mend={"body": body})["counts"] == {"sent": 1}
    labels = {"topic": TILLS, "outcome": "sent"}
    assert REGISTRY.get_sample_value("galatea_replayed_letters_total", labels)
    assert asking.dead_letters.sender.carried[0].value == body.encode()


def test_a_record_is_judged_in_the_currency_of_its_store() -> None:
    asking = Asking(World(Store(id="1", timezone="Asia/Tokyo", currency=currency("JPY"))))
    [place] = asking.dead_letters.archive.receive(NO_TIME)

    [item] = replay(asking, ids=[place.id], mend=A_TIME)["items"]

    assert (item["outcome"], item["reason"], item["field"]) == ("refused", "bad_number", "/transactions/0/total")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, (422, "bad_question")),
        ({"filter": {}}, (422, "bad_question")),
        ({"ids": ["pos_transactions/0/0"], "filter": {"source": TILLS}}, (422, "bad_question")),
        ({"ids": ["pos_transactions/0"]}, (422, "bad_question")),
        ({"ids": [f"pos_transactions/0/{2**63}"]}, (422, "bad_question")),
        ({"ids": ["pos_transactions/0/99"]}, (404, "unknown_name")),
        ({"ids": [f"pos_transactions/0/{number}" for number in range(501)]}, (422, "bad_question")),
        ({"filter": {"source": "tills"}}, (404, "unknown_name")),
        ({"filter": {"from": "yesterday"}}, (422, "bad_question")),
        ({"filter": {"store": "1"}}, (422, "unknown_argument")),
        ({"filter": {"source": TILLS}, "mend": {"body": "{}"}}, (422, "bad_question")),
        ({"ids": ["pos_transactions/0/0"], "mend": {"body": "{}", "set": {"/a": 1}}}, (422, "bad_question")),
        ({"ids": ["pos_transactions/0/0"], "mend": {"set": {"a": 1}}}, (422, "bad_question")),
        ({"ids": ["pos_transactions/0/0"], "mend": {"set": []}}, (422, "bad_question")),
        ({"ids": ["pos_transactions/0/0"], "dry_run": "yes"}, (422, "bad_question")),
        (b'{"ids": ["pos_transactions/0/0"], "mend": {"body": "\\ud800"}}', (422, "bad_question")),
        (b"{" + b" " * 2_200_000, (413, "body_too_large")),
    ],
)
def test_an_invalid_replay_request_sends_nothing(asking: Asking, said: object, expected: tuple[int, str]) -> None:
    assert refusal(asking, f"{PATH}/replay", method="POST", said=said) == expected
    assert asking.dead_letters.sender.carried == []


def test_without_a_broker_a_replay_is_refused_and_lists_are_answered(asking: Asking) -> None:
    asking.dead_letters.sender.is_away = True

    refused = refusal(asking, f"{PATH}/replay", method="POST", said={"ids": ["pos_transactions/0/0"], "mend": A_TIME})

    assert refused == (503, "broker_unavailable")
    assert len(listed(asking)["dead_letters"]) == 3


def test_more_than_a_process_takes_is_refused(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MAX_WAITING", 0)

    assert refusal(asking, PATH) == (503, "too_busy")
