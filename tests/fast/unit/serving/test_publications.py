"""The history of what readers saw, and the way back in it."""

import asyncio
import threading
from dataclasses import replace

import pytest

from master_dataset.errors import OperatorError, UnknownNameError
from serving_layer.admin.publications import RollbackResult, RollbackService
from serving_layer.errors import TooBusyError
from tests.support import World, receipt
from tests.support.world import at
from tests.support.world_api import OPERATOR_KEY, Asking

LISTED = "/v1/publications"
ROLLBACK = "/v1/publications/1/rollback"
BECAUSE = {"reason": "a wrong price list"}


def published(times: int) -> World:
    """One sale, and so many publications, an hour apart."""
    world = World()
    world.receive(receipt("2026-11-21T07:00:00Z", minor=100), "2026-11-21T07:00:01Z")
    for hour in range(times):
        world.rebuild(f"2026-11-21T{8 + hour:02}:00:00Z")
    return world


def test_publications_are_listed_newest_first() -> None:
    body = Asking(published(1)).body(LISTED, key=OPERATOR_KEY)

    assert [entry["publication"] for entry in body["publications"]] == [1, 0]
    assert body["next"] is None
    assert body["publications"][0] == {
        "publication": 1,
        "cut": "2026-11-21T08:00:00Z",
        "published_at": "2026-11-21T08:00:00Z",
        "by": "world",
        "why": "a test",
        "collected": False,
        "restores": None,
        "partitions": None,
        "days": None,
        "blocks": None,
        "rows": None,
        "seconds": None,
        "views": None,
    }


def test_the_counts_of_a_recompute_are_returned() -> None:
    world = published(1)
    views = {"sales": {"days": 2, "events": 30}, "sales_by_sku": {"days": 2, "events": 12}}
    counted = {"partitions": 4, "days": 2, "blocks": 9, "seconds": 3.5, "views": views, "read_at": "now"}
    world.history[0] = replace(world.history[0], stats=counted)

    entry = Asking(world).body(LISTED, key=OPERATOR_KEY)["publications"][0]

    shown = [entry[name] for name in ("partitions", "days", "blocks", "rows", "seconds", "views")]
    assert shown == [4, 2, 9, 42, 3.5, views]
    assert "read_at" not in entry


def test_who_published_why_and_what_was_counted_is_for_operators() -> None:
    world = published(1)
    counted = {"partitions": 4, "days": 2, "blocks": 9, "seconds": 3.5, "views": {"sales": {"days": 2, "events": 30}}}
    world.history[0] = replace(world.history[0], stats=counted)
    asking = Asking(world)
    whole = asking.body(LISTED, key=OPERATOR_KEY)["publications"][0]
    counts = dict.fromkeys(("partitions", "days", "blocks", "rows", "seconds", "views"))

    for key in (None, asking.keys.make("default"), asking.keys.make("*"), asking.keys.make("*", "read", "configure")):
        entry = asking.body(LISTED, key=key)["publications"][0]
        assert entry == {name: counts.get(name, each) for name, each in whole.items() if name not in {"by", "why"}}


def test_what_was_collected_and_what_was_restored_is_marked() -> None:
    world = published(2)
    world.restore(1)
    world.collect(2)

    listed = Asking(world).body(LISTED)["publications"]

    assert [(each["publication"], each["collected"], each["restores"]) for each in listed] == [
        (3, False, 1),
        (2, True, None),
        (1, False, None),
        (0, False, None),
    ]


def test_pages_follow_each_other_without_a_gap() -> None:
    asking, numbers = Asking(published(5)), []
    before: dict[str, int] = {}

    while True:
        page = asking.body(LISTED, limit=4, **before)
        numbers.append([each["publication"] for each in page["publications"]])
        if page["next"] is None:
            break
        before = {"before": page["next"]}

    assert numbers == [[5, 4, 3, 2], [1, 0]]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"limit": 0}, "bad_question"),
        ({"limit": 1001}, "bad_question"),
        ({"before": -1}, "bad_question"),
        ({"before": 2**63}, "bad_question"),
        ({"after": 1}, "unknown_argument"),
    ],
)
def test_a_page_that_cannot_be_is_refused(arguments: dict[str, object], code: str) -> None:
    problem = Asking(published(1)).refusal(LISTED, **arguments)

    assert (problem["status"], problem["code"]) == (422, code)


def test_a_rollback_says_what_it_published() -> None:
    asking = Asking(published(2))

    response = asking.response(ROLLBACK, method="POST", key=OPERATOR_KEY, said=BECAUSE)

    assert (response.status_code, response.json()) == (
        200,
        {
            "publication": 3,
            "restores": 1,
            "cut": "2026-11-21T08:00:00Z",
            "generation": 1,
            "partitions": 3,
            "dry_run": False,
        },
    )
    assert asking.body(LISTED)["publications"][0]["restores"] == 1


def test_a_rollback_that_is_only_tried_changes_nothing() -> None:
    asking = Asking(published(2))
    before = asking.body(LISTED)

    tried = asking.response(ROLLBACK, method="POST", key=OPERATOR_KEY, said=BECAUSE | {"dry_run": True})

    assert (tried.json()["publication"], tried.json()["dry_run"]) == (3, True)
    assert asking.body(LISTED) == before


@pytest.mark.parametrize(
    ("path", "said", "code"),
    [
        (ROLLBACK, {}, "missing_argument"),
        (ROLLBACK, {"reason": "  "}, "bad_question"),
        (ROLLBACK, {"reason": "x" * 501}, "bad_question"),
        (ROLLBACK, {"reason": "a\x00b"}, "bad_question"),
        (ROLLBACK, BECAUSE | {"dry_run": "perhaps"}, "bad_question"),
        (ROLLBACK, BECAUSE | {"force": True}, "unknown_argument"),
        ("/v1/publications/last/rollback", BECAUSE, "bad_question"),
        ("/v1/publications/-1/rollback", BECAUSE, "bad_question"),
    ],
)
def test_a_rollback_that_cannot_be_understood_is_refused(path: str, said: dict[str, object], code: str) -> None:
    problem = Asking(published(2)).refusal(path, method="POST", key=OPERATOR_KEY, said=said)

    assert (problem["status"], problem["code"]) == (422, code)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OperatorError("the speed rows begin after that cut", do="galatea rollback 1"), 409),
        (UnknownNameError("publication", "1", ["2"]), 404),
    ],
)
def test_what_stands_against_a_rollback_is_a_problem(error: OperatorError | UnknownNameError, status: int) -> None:
    asking = Asking(published(2))
    asking.rolling_back.refuses = error

    problem = asking.refusal(ROLLBACK, method="POST", key=OPERATOR_KEY, said=BECAUSE)

    assert (problem["status"], problem["code"], problem["detail"]) == (status, error.code, error.do)


def test_a_second_rollback_is_refused_while_one_is_under_way() -> None:
    may_end = threading.Event()

    class Slow:
        """RollingBack that takes as long as it is let."""

        def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RollbackResult:
            assert (why, by) == ("why", "operator")
            may_end.wait(60)
            return RollbackResult(3, number, at("2026-11-21T08:00:00Z"), 1, 3, dry_run)

    async def both() -> tuple[RollbackResult, str, RollbackResult]:
        rollbacks = RollbackService(Slow())
        first = asyncio.create_task(rollbacks.run(1, "why", "operator", dry_run=False))
        await asyncio.sleep(0)
        with pytest.raises(TooBusyError) as refused:
            await rollbacks.run(2, "why", "operator", dry_run=False)
        may_end.set()
        return await first, refused.value.code, await rollbacks.run(2, "why", "operator", dry_run=False)

    first, code, after = asyncio.run(both())

    assert (first.restores, code, after.restores) == (1, "too_busy", 2)
