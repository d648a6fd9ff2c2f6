"""Alerts are looked at by what is published now, once, however many rebuilds end together or are interrupted."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from batch_layer.alerts import auditor
from batch_layer.alerts.alert_log import CorrectionRequest, EmittedAlerts, LastAudit
from batch_layer.alerts.auditor import AlertAuditor
from deploy import batch
from deploy.batch import context_of
from deploy.settings import Settings
from master_dataset.errors import BrokerUnavailableError
from master_dataset.registry.rule_versions import VersionRow
from tests.support.alert_signatures import signatures_of
from views.alerts.alert import Alert, Window
from views.alerts.rule_validation import parse_rule
from views.control.publication import Publication

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEVEL = parse_rule({"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3})
BOUND = parse_rule({"kind": "threshold", "id": "much", "metric": "net_sales", "window": "hour", "above": 9})


def retraction(id_: str, publication: int) -> Alert:
    """As a publication asks for it."""
    at = "2026-11-21T10:00:00Z"
    return Alert(
        alert_id=id_,
        kind="retracted",
        about="first",
        rule="much",
        version=1,
        tenant="default",
        store="1",
        window=Window(at),
        dimensions={},
        value=None,
        threshold=Decimal(9),
        sentence="It was not.",
        raised_at=at,
        publication=publication,
        cause="late",
    )


class Unseen:
    """Steps: nobody looks."""

    def step(self, done: int, total: int, what: str) -> None:
        """Say nothing."""


class Deployment:
    """What Cassandra and the broker would say. `meanwhile`: what happens while alerts are looked at.

    `found`: what comes of each look; `log`: what was requested for by then, `unseen`: what each look judges anew.
    """

    def __init__(self) -> None:
        self.published, self.audited = 3, 2
        self.noted: Mapping[int, int] = {}
        self.found: list[list[Any]] = []
        self.log: list[CorrectionRequest] = []
        self.unseen: list[set[str]] = []
        self.looked: list[tuple[int, int]] = []
        self.rules: list[Any] = []
        self.newer: list[str] = []
        self.meanwhile: list[Any] = []
        self.moves: list[bool] = []

    def read(self) -> LastAudit:
        return LastAudit(self.audited, self.noted)

    def move(self, seen: int, to: LastAudit, _: Mapping[str, int]) -> bool:
        is_moved = self.audited == seen
        if is_moved:
            self.audited, self.noted = to
        self.moves.append(is_moved)
        return is_moved

    def publication(self, number: int) -> Publication:
        return Publication(number, NOON, f"run-{number}", 1, NOON, "", "")

    def versions(self, *_: object) -> Any:
        bodies = [(rule.id, msgspec.json.encode(rule).decode()) for rule in self.rules]
        bodies += [("newer", body) for body in self.newer]
        rows = [VersionRow("rule", f"default/{name}", 1, NOON, body) for name, body in bodies]
        return SimpleNamespace(read=lambda: rows)

    def look(self, alerts: EmittedAlerts, base: Publication | None, found: Publication) -> list[Any]:
        self.looked.append((base.number if base else 0, found.number))
        alerts.statuses(0)
        self.unseen.append(alerts.unseen)
        if self.meanwhile:
            self.meanwhile.pop(0)()
        return self.found.pop(0) if self.found else []

    def emitted(self, _: int) -> list[Alert]:
        return []

    def begin_signing(self) -> None:
        """Requests are in memory, without headers."""

    def request(self, records: Sequence[Alert]) -> None:
        self.log += [CorrectionRequest(0, len(self.log) + number, each) for number, each in enumerate(records)]

    def request_ends(self) -> Mapping[int, int]:
        return {0: len(self.log)}

    def requests(
        self, _: int, ends: Mapping[int, int], begin: Mapping[int, int] | None = None
    ) -> list[CorrectionRequest]:
        return self.log[(begin or {}).get(0, 0) : ends[0]]


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """Of which publication 3 was not looked at."""
    found = Deployment()
    pointer = SimpleNamespace(read=lambda: SimpleNamespace(publication=found.published), publication=found.publication)
    for name, fake in {
        "AuditTable": lambda _: found,
        "PointerRow": lambda _: pointer,
        "RuleVersions": found.versions,
        "AlertLog": lambda *_: found,
    }.items():
        monkeypatch.setattr(auditor, name, fake)
    monkeypatch.setattr(batch, "alert_signatures_of", lambda _: signatures_of())
    monkeypatch.setattr(AlertAuditor, "_session", None)
    monkeypatch.setattr(AlertAuditor, "_wait_for_processor", lambda *_: None)

    def corrections(_: AlertAuditor, alerts: EmittedAlerts, *requested: Any) -> list[Any]:
        return found.look(alerts, *requested[-2:])

    monkeypatch.setattr(AlertAuditor, "_corrections", corrections)
    return found


def test_without_a_rule_that_is_looked_at_the_publication_is_only_noted(deployment: Deployment) -> None:
    deployment.rules = [LEVEL]

    AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert deployment.looked == []
    assert deployment.audited == 3


def test_a_publication_is_looked_at_once_against_the_one_that_was_looked_at_last(deployment: Deployment) -> None:
    deployment.rules, deployment.published = [BOUND], 5

    for _ in range(2):
        AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert deployment.looked == [(2, 5)]


def test_what_another_rebuild_has_published_meanwhile_is_looked_at_too(deployment: Deployment) -> None:
    deployment.rules = [BOUND]
    deployment.meanwhile = [lambda: setattr(deployment, "published", 4)]

    AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert deployment.looked == [(2, 3), (2, 4)]
    assert deployment.audited == 4


def test_who_finds_that_another_has_moved_on_looks_again_by_the_newest_numbers(deployment: Deployment) -> None:
    """It may have asked for what the newer numbers deny, and the other one may not have seen that."""

    def overtake() -> None:
        deployment.published = deployment.audited = 4

    deployment.rules, deployment.meanwhile = [BOUND], [overtake]

    AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert deployment.looked == [(2, 3), (2, 4)]
    assert deployment.moves == [False, True]


def overtaken_and_ended(deployment: Deployment) -> None:
    """A rebuild that judged publication 3 while another one published 4 and looked at it, and that ended then."""

    def overtake() -> None:
        deployment.published = deployment.audited = 4
        deployment.meanwhile = [end]

    def end() -> None:
        raise BrokerUnavailableError("nobody answers", do="wait")

    deployment.rules, deployment.meanwhile, deployment.found = [BOUND], [overtake], [[retraction("wrong", 3)]]
    AlertAuditor(context_of(Settings())).catch_up(Unseen())
    assert (deployment.moves, deployment.audited) == ([False], 4)


def test_requests_of_an_overtaken_rebuild_are_judged_again_by_the_next_one(
    deployment: Deployment,
) -> None:
    overtaken_and_ended(deployment)

    for _ in range(2):  # nothing was published since
        AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert deployment.looked == [(2, 3), (2, 4), (4, 4)]
    assert deployment.unseen[-1] == {"wrong"}
    assert (deployment.audited, deployment.noted) == (4, {0: 1})


def test_what_was_judged_anew_is_not_judged_anew_again(deployment: Deployment) -> None:
    overtaken_and_ended(deployment)
    deployment.published = 5

    AlertAuditor(context_of(Settings())).catch_up(Unseen())
    deployment.published = 6
    AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert deployment.looked[2:] == [(4, 5), (5, 6)]
    assert deployment.unseen[2:] == [{"wrong"}, set()]


def test_without_a_row_or_a_known_topic_all_requests_are_judged_again(
    deployment: Deployment,
) -> None:
    deployment.rules, deployment.noted = [BOUND], {0: 9}
    deployment.request([retraction("wrong", 1)])

    AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert deployment.unseen == [{"wrong"}]


def test_without_a_rule_that_is_looked_at_how_far_requests_were_read_stays(deployment: Deployment) -> None:
    deployment.rules, deployment.noted = [LEVEL], {0: 7}

    AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert (deployment.audited, deployment.noted) == (3, {0: 7})


def test_what_cannot_be_looked_at_now_is_left_to_the_next_rebuild(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise BrokerUnavailableError("nobody answers", do="wait")

    deployment.rules = [BOUND]
    monkeypatch.setattr(AlertAuditor, "_wait_for_processor", away)

    AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert deployment.audited == 2


@pytest.mark.parametrize("unexplained", [KeyError("net_sales"), msgspec.DecodeError("odd"), ZeroDivisionError()])
def test_what_odd_rows_lead_to_is_written_down_whole_and_the_rebuild_is_done(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, unexplained: Exception
) -> None:
    def fail(*_: object) -> None:
        raise unexplained

    deployment.rules = [BOUND]
    monkeypatch.setattr(AlertAuditor, "_wait_for_processor", fail)

    with capture_logs() as said:
        AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert [(line["event"], line["exc_info"]) for line in said] == [("alerts.audit_postponed", True)]
    assert deployment.audited == 2


def test_a_rule_of_a_newer_release_is_left_out_and_the_others_are_looked_at(deployment: Deployment) -> None:
    deployment.rules, deployment.newer = [BOUND], ['{"kind": "forecast", "id": "newer", "above": 9}']

    AlertAuditor(context_of(Settings())).catch_up(Unseen())

    assert deployment.looked == [(2, 3)]
    assert deployment.audited == 3


def test_the_unexplained_is_recorded_as_an_alarm_before_it_is_requested(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.rules, done = [BOUND], list[tuple[str, str]]()
    table = SimpleNamespace(notice=lambda name, _, place, detail: done.append((name, f"{place}: {detail}")))
    unexplained = [SimpleNamespace(kind="retracted", cause=cause) for cause in ("unexplained", "late")]
    monkeypatch.setattr(AlertAuditor, "_corrections", lambda *_: unexplained)
    monkeypatch.setattr(auditor, "AlarmTable", lambda _: table)
    monkeypatch.setattr(deployment, "request", lambda requested: done.append(("asked", f"{len(requested)}")))

    AlertAuditor(context_of(Settings())).catch_up(Unseen())

    noticed = ("alerts_unexplained", "publication 3: 1 corrections of alerts have no explanation.")
    assert done == [noticed, ("asked", "2")]
