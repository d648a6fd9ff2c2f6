"""A rule that a newer release has written hides no other: it is listed as one that cannot be read, and can go."""

import pytest

from serving_layer.alerts.rules import AlertRules
from serving_layer.alerts.rules_file import apply_changes, plan_changes
from tests.fast.unit.serving.test_alert_rules import PATH, QUEUE, ids, sent
from tests.support import World
from tests.support.world_api import Asking

NEWER = '{"kind": "forecast", "id": "newer", "above": 9}'


@pytest.fixture
def asking() -> Asking:
    """With a rule of this release, and one that is written as no rule of it is."""
    found = Asking(World())
    sent(found, "POST", QUEUE)
    found.versions.follow("default/newer", NEWER, 0)
    return found


def test_it_is_listed_by_id_and_version_and_says_that_it_cannot_be_read(asking: Asking) -> None:
    newer, queue = asking.body(PATH)["rules"]

    assert (newer["id"], newer["version"], newer["rule"]) == ("newer", 1, None)
    assert (newer["unreadable"], newer["removed"]) == (True, False)
    assert newer["in_words"].startswith("Watches nothing: this release cannot read it")
    assert (queue["id"], queue["unreadable"]) == ("queue", False)


def test_it_can_be_replaced_by_who_has_seen_it_and_its_versions_stay(asking: Asking) -> None:
    stale, _ = sent(asking, "PUT", QUEUE | {"id": "newer"}, "newer", match='"2"')
    status, entry = sent(asking, "PUT", QUEUE | {"id": "newer"}, "newer", match='"1"')

    assert (stale, status, entry["version"], entry["unreadable"]) == (412, 200, 2, False)
    versions = asking.body(f"{PATH}/newer/versions")["versions"]
    assert [(each["unreadable"], each["removed"]) for each in versions] == [(False, False), (True, False)]


def test_it_can_be_removed_and_is_not_made_a_second_time(asking: Asking) -> None:
    again, problem = sent(asking, "POST", QUEUE | {"id": "newer"})
    removed, entry = sent(asking, "DELETE", id_="newer", match='"1"')

    assert (again, problem["code"]) == (409, "rule_exists")
    assert (removed, entry["removed"], entry["unreadable"]) == (200, True, False)
    assert ids(asking) == ["queue"]


@pytest.mark.parametrize(("wanted", "does"), [([("default", QUEUE | {"id": "newer"})], "change"), ([], "remove")])
def test_a_file_changes_it_or_has_it_removed(asking: Asking, wanted: list[tuple[str, object]], does: str) -> None:
    rules = AlertRules(asking.versions)

    steps = plan_changes(rules, {}, wanted, prune=["default"])
    apply_changes(rules, steps)

    assert {step.id: step.does for step in steps}["newer"] == does
    assert [entry.id for entry in rules.listed("default") if entry.unreadable] == []
