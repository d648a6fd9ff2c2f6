"""Builds the services behind the REST interface and the command line from the settings."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from deploy.cassandra import session_of
from deploy.recompute_runner import Launch, Runner, Trigger
from deploy.secrets_key import secrets_key_of
from deploy.webhooks.service import webhooks_of
from master_dataset.dead_letters.deliveries import ArchivedEvents
from master_dataset.dead_letters.queries import DeadLetterQueries
from master_dataset.dead_letters.replay import Replayer, ReplaySender
from master_dataset.dead_letters.replay_history import ReplayTable
from master_dataset.dead_letters.table import DeadLetterTable
from master_dataset.kafka.topics import Topics
from master_dataset.registry.floor_plans import FloorPlanTables
from master_dataset.registry.products import ProductTables
from master_dataset.registry.rule_versions import RuleVersions
from master_dataset.registry.targets import TargetTables
from master_dataset.sources import registered_sources
from serving_layer.admin.corrections import CorrectionsService
from serving_layer.admin.dead_letters import DeadLetterService
from serving_layer.admin.floor_plans import FloorPlanService
from serving_layer.admin.loaded_files import ProductService, TargetService
from serving_layer.admin.operations import OperatorService
from serving_layer.admin.publications import RollbackRunner, RollbackService
from serving_layer.alerts.history import AlertListing
from serving_layer.alerts.rules import AlertRules, AlertService
from serving_layer.products.reader import ProductReader
from serving_layer.query.targets import TargetReader
from serving_layer.saved.annotations import Annotations
from serving_layer.saved.service import SavedService
from serving_layer.saved.shares import ShareLinks
from serving_layer.saved.views import SavedViews
from serving_layer.store.at_least import AtLeast
from serving_layer.store.readers import Readers
from serving_layer.store.topic_logs import TopicLogs
from serving_layer.tables import (
    AlertTables,
    AnnotationTables,
    AsyncSession,
    BatchTables,
    KeyTables,
    LedgerTables,
    PublishedTables,
    ReceiptTables,
    RecomputeTables,
    RuleTables,
    SavedViewTables,
    ShareTables,
    SpeedTables,
    StoreTables,
    TopicTables,
)
from serving_layer.tables.registry import ProductBlockTables, TargetBlockTables
from views import registered_views
from views.control.recompute import Recomputes
from views.control.token import TopicEnds, topic_tag
from views.core.waiting import WaitingRule

if TYPE_CHECKING:
    from deploy.settings import Settings
    from serving_layer.service import QueryService
    from views.control.recompute import RecomputeRequest


def dead_letters_of(settings: "Settings") -> DeadLetterQueries:
    """Build the queries over dead letters."""
    replays = ReplayTable(settings.paths.master_uri)
    return DeadLetterQueries(
        DeadLetterTable(settings.paths.master_uri, replays), replays, ArchivedEvents(settings.paths.master_uri)
    )


def replayer_of(settings: "Settings") -> Replayer:
    """Build what sends dead letters to their topics again."""
    replays = ReplayTable(settings.paths.master_uri)
    dead_letters, events = (
        DeadLetterTable(settings.paths.master_uri, replays),
        ArchivedEvents(settings.paths.master_uri),
    )
    return Replayer(dead_letters, replays, events, ReplaySender(settings.kafka.connection), partial(datetime.now, UTC))


@dataclass(frozen=True)
class AirflowElseRunner:
    """A trigger that uses Airflow if the deployment has one, even if it is down, and else this process."""

    airflow: Callable[[], Trigger | None]
    runner: Trigger

    def trigger(self, recompute_id: str, request: "RecomputeRequest", reason: str) -> None:
        """Start a recompute. AirflowUnavailableError, TooBusyError."""
        (self.airflow() or self.runner).trigger(recompute_id, request, reason)


def runner_of(settings: "Settings", process: str) -> Runner:
    """Build the runner of recomputes in the api process of that name."""
    return Runner(
        Recomputes(session_of(settings.cassandra.address)),
        settings.home,
        settings.as_user("batch").environment(),
        process=process,
    )


def operations_of(
    settings: "Settings", answers: "QueryService", trigger: Trigger, rolling_back: RollbackRunner
) -> OperatorService:
    """Build what operators may do over REST. `trigger` starts recomputes, `rolling_back` does rollbacks."""
    session = session_of(settings.cassandra.address)
    recomputes = RecomputeTables(AsyncSession(session))
    corrections = corrections_of(settings, answers.readers)
    dead_letters = DeadLetterService(dead_letters_of(settings), replayer_of(settings), answers.stores.all)
    launch, rollbacks = Launch(Recomputes(session), trigger), RollbackService(rolling_back)
    keys = KeyTables(AsyncSession(session), secrets_key_of(settings))
    return OperatorService(launch, recomputes, rollbacks, corrections, dead_letters, webhooks_of(settings), keys)


def readers_of(settings: "Settings") -> Readers:
    """Build the readers of all tables in Cassandra."""
    session = AsyncSession(session_of(settings.cassandra.address))
    return Readers(
        PublishedTables(session),
        BatchTables(session),
        SpeedTables(session),
        StoreTables(session),
        ReceiptTables(session),
    )


def topic_logs_of(settings: "Settings") -> TopicLogs:
    """Build the reader of what Kafka says of the topics. It connects when it is first asked, in a thread of its own."""
    sources, thread = list(registered_sources()), ThreadPoolExecutor(1, "topics")
    connected = cache(lambda: Topics(settings.kafka.connection))

    def read() -> Mapping[str, TopicEnds]:
        logs = connected().logs(sources)
        return {topic: TopicEnds(topic_tag(log.id), log.ends) for topic, log in logs.items()}

    async def ask() -> Mapping[str, TopicEnds]:
        return await asyncio.get_running_loop().run_in_executor(thread, read)

    return TopicLogs(ask, time.monotonic)


def at_least_of(settings: "Settings", logs: TopicLogs | None = None) -> AtLeast:
    """Build what waits for answers that contain certain events. `logs`: None in a process without Kafka."""
    topics = TopicTables(AsyncSession(session_of(settings.cassandra.address)))
    return AtLeast(topics, registered_sources(), settings.api.at_least_seconds, time.monotonic, logs)


def waiting_rule_of(settings: "Settings") -> WaitingRule:
    """Which events only batch counts."""
    return WaitingRule.of(registered_views(), settings.speed.oldest, settings.layers.visits)


def targets_of(settings: "Settings") -> TargetReader:
    """Build the reader of targets."""
    return TargetReader(TargetBlockTables(AsyncSession(session_of(settings.cassandra.address))), time.monotonic)


def target_service_of(settings: "Settings", answers: "QueryService") -> TargetService:
    """Build what loads targets."""
    tables = TargetTables(session_of(settings.cassandra.address))
    return TargetService(tables, answers.stores.all, answers.catalogue)


def floor_plans_of(settings: "Settings") -> FloorPlanService:
    """Build the service of floor plans."""
    return FloorPlanService(FloorPlanTables(session_of(settings.cassandra.address)))


def products_of(settings: "Settings") -> ProductService:
    """Build the service of product masters."""
    session = session_of(settings.cassandra.address)
    reader = ProductReader(ProductBlockTables(AsyncSession(session)), time.monotonic)
    return ProductService(reader, ProductTables(session))


def alert_service_of(settings: "Settings") -> AlertService:
    """Build the service of alerts and their rules."""
    session = session_of(settings.cassandra.address)
    versions = RuleVersions(session, timedelta(seconds=settings.alerts.rules_seconds))
    rules = AlertRules(RuleTables(versions), settings.alerts.rules_per_tenant)
    return AlertService(rules, AlertListing(AlertTables(AsyncSession(session))))


def saved_service_of(settings: "Settings") -> SavedService:
    """Build the service of annotations, saved views and share links."""
    session, now = AsyncSession(session_of(settings.cassandra.address)), partial(datetime.now, UTC)
    shares = ShareLinks(ShareTables(session), now, time.monotonic, settings.api.frame_origins)
    return SavedService(Annotations(AnnotationTables(session)), SavedViews(SavedViewTables(session)), shares, now)


def corrections_of(settings: "Settings", readers: Readers) -> CorrectionsService:
    """Build the service of corrections."""
    session = AsyncSession(session_of(settings.cassandra.address))
    views = {view.name: view for view in registered_views()}
    return CorrectionsService(readers, LedgerTables(session), RecomputeTables(session), views)
