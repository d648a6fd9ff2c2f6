"""Alerts are looked at by what is published now, once, however many rebuilds end together or are interrupted."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from deploy.recomputing import alert_keeper
from deploy.recomputing.alert_keeper import AlertKeeper
from deploy.settings import Settings
from master_dataset.errors import BrokerUnavailable
from master_dataset.rule_versions import VersionRow
from views.alerts.rule_text import read_rule
from views.core.pointer_row import Publication

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEVEL = read_rule({"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3})
BOUND = read_rule({"kind": "threshold", "id": "much", "metric": "net_sales", "window": "hour", "above": 9})


class Unseen:
    """Steps: nobody looks."""

    def step(self, done: int, total: int, what: str) -> None:
        """Say nothing."""


class Deployment:
    """What Cassandra and the broker would say. `meanwhile`: what happens while alerts are looked at."""

    def __init__(self) -> None:
        self.published, self.audited = 3, 2
        self.looked: list[tuple[int, int]] = []
        self.rules: list[Any] = []
        self.newer: list[str] = []
        self.meanwhile: list[Any] = []
        self.moves: list[bool] = []

    def read(self) -> int:
        return self.audited

    def move(self, seen: int, to: int, _: Mapping[str, int]) -> bool:
        is_moved = self.audited == seen
        self.audited = to if is_moved else self.audited
        self.moves.append(is_moved)
        return is_moved

    def publication(self, number: int) -> Publication:
        return Publication(number, NOON, f"run-{number}", 1, NOON, "", "")

    def versions(self, *_: object) -> Any:
        bodies = [(rule.id, msgspec.json.encode(rule).decode()) for rule in self.rules]
        bodies += [("newer", body) for body in self.newer]
        rows = [VersionRow("rule", f"default/{name}", 1, NOON, body) for name, body in bodies]
        return SimpleNamespace(read=lambda: rows)

    def look(self, base: Publication | None, found: Publication) -> None:
        self.looked.append((base.number if base else 0, found.number))
        if self.meanwhile:
            self.meanwhile.pop(0)()


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """Of which publication 3 was not looked at."""
    found = Deployment()
    pointer = SimpleNamespace(read=lambda: SimpleNamespace(publication=found.published), publication=found.publication)
    for name, fake in {
        "session_of": lambda _: None, "Audited": lambda _: found, "PointerRow": lambda _: pointer,
        "RuleVersions": found.versions, "AlertLog": lambda _: SimpleNamespace(ask=lambda _: None),
    }.items():  # fmt: skip
        monkeypatch.setattr(alert_keeper, name, fake)
    monkeypatch.setattr(AlertKeeper, "_wait_for_relay", lambda *_: None)

    def corrections(*asked: Any) -> list[Any]:
        found.look(*asked[-2:])
        return []

    monkeypatch.setattr(AlertKeeper, "_corrections", corrections)
    return found


def test_without_a_rule_that_is_looked_at_the_publication_is_only_noted(deployment: Deployment) -> None:
    deployment.rules = [LEVEL]

    AlertKeeper(Settings()).catch_up(Unseen())

    assert deployment.looked == []
    assert deployment.audited == 3


def test_a_publication_is_looked_at_once_against_the_one_that_was_looked_at_last(deployment: Deployment) -> None:
    deployment.rules, deployment.published = [BOUND], 5

    for _ in range(2):
        AlertKeeper(Settings()).catch_up(Unseen())

    assert deployment.looked == [(2, 5)]


def test_what_another_rebuild_has_published_meanwhile_is_looked_at_too(deployment: Deployment) -> None:
    deployment.rules = [BOUND]
    deployment.meanwhile = [lambda: setattr(deployment, "published", 4)]

    AlertKeeper(Settings()).catch_up(Unseen())

    assert deployment.looked == [(2, 3), (2, 4)]
    assert deployment.audited == 4


def test_who_finds_that_another_has_moved_on_looks_again_by_the_newest_numbers(deployment: Deployment) -> None:
    """It may have asked for what the newer numbers deny, and the other one may not have seen that."""

    def overtake() -> None:
        deployment.published = deployment.audited = 4

    deployment.rules, deployment.meanwhile = [BOUND], [overtake]

    AlertKeeper(Settings()).catch_up(Unseen())

    assert deployment.looked == [(2, 3), (2, 4)]
    assert deployment.moves == [False, True]


def test_what_cannot_be_looked_at_now_is_left_to_the_next_rebuild(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise BrokerUnavailable("nobody answers", do="wait")

    deployment.rules = [BOUND]
    monkeypatch.setattr(AlertKeeper, "_wait_for_relay", away)

    AlertKeeper(Settings()).catch_up(Unseen())

    assert deployment.audited == 2


@pytest.mark.parametrize("odd", [KeyError("net_sales"), msgspec.DecodeError("odd"), ZeroDivisionError()])
def test_what_odd_rows_lead_to_is_written_down_whole_and_the_rebuild_is_done(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, odd: Exception
) -> None:
    def fail(*_: object) -> None:
        raise odd

    deployment.rules = [BOUND]
    monkeypatch.setattr(AlertKeeper, "_wait_for_relay", fail)

    with capture_logs() as said:
        AlertKeeper(Settings()).catch_up(Unseen())

    assert [(line["event"], line["exc_info"]) for line in said] == [("alerts.audit_put_off", True)]
    assert deployment.audited == 2


def test_a_rule_of_a_newer_release_is_left_out_and_the_others_are_looked_at(deployment: Deployment) -> None:
    deployment.rules, deployment.newer = [BOUND], ['{"kind": "forecast", "id": "newer", "above": 9}']

    AlertKeeper(Settings()).catch_up(Unseen())

    assert deployment.looked == [(2, 3)]
    assert deployment.audited == 3


def test_what_nothing_explains_is_noticed_before_it_is_asked_for(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.rules, done = [BOUND], list[tuple[str, str]]()
    table = SimpleNamespace(notice=lambda name, _, place, detail: done.append((name, f"{place}: {detail}")))
    odd = [SimpleNamespace(kind="retracted", cause=cause) for cause in ("unexplained", "late")]
    monkeypatch.setattr(AlertKeeper, "_corrections", lambda *_: odd)
    monkeypatch.setattr(alert_keeper, "AlarmTable", lambda _: table)
    log = SimpleNamespace(ask=lambda asked: done.append(("asked", f"{len(asked)}")))
    monkeypatch.setattr(alert_keeper, "AlertLog", lambda _: log)

    AlertKeeper(Settings()).catch_up(Unseen())

    noticed = ("alerts_unexplained", "publication 3: 1 corrections of alerts have no explanation.")
    assert done == [noticed, ("asked", "2")]
