"""What the REST interface lets operators do, wired from settings."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from batch_layer.recompute.recompute import Recomputes
from deploy.cassandra import session_of
from deploy.dead_letters import desk_of, replaying_of
from deploy.recompute.launch import Launch, Trigger
from deploy.recompute.runner import Runner
from deploy.webhooks.service import webhooks_of
from master_dataset.registry.rule_versions import RuleVersions
from serving_layer.admin.corrections import Corrections
from serving_layer.admin.dead_letters import Letters
from serving_layer.admin.operations import Operations
from serving_layer.admin.rollbacks import Rollbacks, RollingBack
from serving_layer.alerts.alerts import Alerts
from serving_layer.alerts.rules import AlertRules
from serving_layer.alerts.service import Alerting
from serving_layer.store.readers import Readers
from serving_layer.tables import (
    AlertTables,
    BatchTables,
    Bridge,
    LedgerTables,
    PublishedTables,
    ReceiptTables,
    RecomputeTables,
    RuleTables,
    SpeedTables,
    StoreTables,
)
from views import registered_views

if TYPE_CHECKING:
    from deploy.settings import Settings
    from serving_layer.query.answers import Answers
    from views.control.recompute_request import RecomputeRequest


@dataclass(frozen=True)
class AirflowElseRunner:
    """Trigger: Airflow wherever there is one, even if it is down; else this process."""

    airflow: Callable[[], Trigger | None]
    runner: Trigger

    def trigger(self, recompute_id: str, request: "RecomputeRequest", reason: str) -> None:
        """As Trigger. AirflowUnavailable, TooBusy."""
        (self.airflow() or self.runner).trigger(recompute_id, request, reason)


def runner_of(settings: "Settings") -> Runner:
    """The runner of this process."""
    return Runner(Recomputes(session_of(settings.cassandra_address)), settings.home, settings.environment())


def operations_of(settings: "Settings", answers: "Answers", trigger: Trigger, rolling_back: RollingBack) -> Operations:
    """All of it. `trigger` does recomputes, `rolling_back` rollbacks."""
    session = session_of(settings.cassandra_address)
    recomputes = RecomputeTables(Bridge(session))
    corrections = corrections_of(settings, answers.readers)
    letters = Letters(desk_of(settings), replaying_of(settings), answers.stores.all)
    launch, rollbacks = Launch(Recomputes(session), trigger), Rollbacks(rolling_back)
    return Operations(launch, recomputes, rollbacks, corrections, letters, webhooks_of(settings))


def readers_of(settings: "Settings") -> Readers:
    """All of Cassandra's tables."""
    bridge = Bridge(session_of(settings.cassandra_address))
    return Readers(
        PublishedTables(bridge), BatchTables(bridge), SpeedTables(bridge), StoreTables(bridge), ReceiptTables(bridge)
    )


def alerting_of(settings: "Settings") -> Alerting:
    """Alerts that were told, and the rules that they come from."""
    session = session_of(settings.cassandra_address)
    versions = RuleVersions(session, timedelta(seconds=settings.alert_rules_seconds))
    rules = AlertRules(RuleTables(versions), settings.alert_rules_per_tenant)
    return Alerting(rules, Alerts(AlertTables(Bridge(session))))


def corrections_of(settings: "Settings", readers: Readers) -> Corrections:
    """The ledgers."""
    bridge = Bridge(session_of(settings.cassandra_address))
    views = {view.name: view for view in registered_views()}
    return Corrections(readers, LedgerTables(bridge), RecomputeTables(bridge), views)
