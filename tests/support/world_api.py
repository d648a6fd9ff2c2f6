"""The REST API over a World, without a network: keys, endpoints, operations and a broker in memory."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx
import orjson
from fastapi import FastAPI

from master_dataset.errors import BrokerUnavailableError, CassandraUnavailableError, RequestError, UnknownNameError
from master_dataset.kafka.producer import Delivery, DeliveryStatus, ProducerRecord, SentRecords
from master_dataset.sources import registered_sources
from master_dataset.visits.visit import RULES
from master_dataset.webhooks.endpoint import Endpoint, RegisteredEndpoint
from serving_layer.admin.corrections import CorrectionsService
from serving_layer.admin.dead_letters import DeadLetterService
from serving_layer.admin.floor_plans import FloorPlanService
from serving_layer.admin.ledger import LedgerReader
from serving_layer.admin.loaded_files import ProductService, TargetService
from serving_layer.admin.operations import OperatorService
from serving_layer.admin.publications import RecomputeReader, RecomputeRecord, RollbackResult, RollbackService
from serving_layer.alerts.history import AlertListing
from serving_layer.alerts.rules import AlertRules, AlertService
from serving_layer.app import create_app
from serving_layer.health.freshness import FreshnessService
from serving_layer.health.watched import HealthReader
from serving_layer.http.hosts import AllowedHosts
from serving_layer.ingest.ingest import IngestService
from serving_layer.ingest.tokens import TokenWriter
from serving_layer.keys.authenticator import Authenticator, ConcurrencyLimiter, KeyCache
from serving_layer.keys.key import Key, Scope
from serving_layer.keys.rates import RateLimiter
from serving_layer.limits import LIMITS, Limits
from serving_layer.pages.sessions import SessionPlace, Sessions, StoredSession
from serving_layer.products.reader import ProductReader
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.targets import TargetReader
from serving_layer.responses.webhooks import WebhookTrial
from serving_layer.saved.annotations import Annotations
from serving_layer.saved.service import SavedService
from serving_layer.saved.shares import ShareLinks
from serving_layer.saved.views import SavedViews
from serving_layer.service import Clocks, QueryService
from serving_layer.store.at_least import AtLeast, Opening
from serving_layer.store.readers import Readers
from serving_layer.store.topic_logs import TopicLogs
from serving_layer.webhooks.service import RecordPosition, WebhookService
from tests.support import event_loop
from tests.support.alert_tables import WorldAlertTables, WorldVersions
from tests.support.archiving import WorldDeadLetters
from tests.support.floor_plans import WorldFloorPlans
from tests.support.openapi_contract import refuse_unannounced
from tests.support.process_metrics import WorldWatch
from tests.support.products import WorldProducts
from tests.support.saved import WorldAnnotations, WorldShares, WorldViews
from tests.support.targets import WorldTargets
from tests.support.world import World
from tests.support.world_tables import WorldTables
from views.control.recompute import RecomputeRequest
from views.control.token import TopicEnds, topic_tag
from views.core.waiting import WaitingRule
from views.metrics import registered_metrics
from views.registry import registered_views

if TYPE_CHECKING:
    from master_dataset.errors import GalateaError

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class WorldKeys:
    """KeyStore."""

    kept: list[Key] = field(default_factory=list)

    def make(self, tenant: str, *scopes: Scope) -> str:
        """A key that never ends."""
        text, key = Key.new(tenant, scopes or ("read",), "a test", BEGAN, None)
        self.kept.append(key)
        return text

    async def keys(self) -> Sequence[Key]:
        return self.kept

    async def keep(self, key: Key) -> None:
        self.kept = [each for each in self.kept if each.id != key.id] + [key]

    async def end(self, id_: str, how: Callable[[Key], Key]) -> Key:
        found = {key.id: key for key in self.kept}
        if id_ not in found:
            raise UnknownNameError("key", id_, found)
        await self.keep(ended := how(found[id_]))
        return ended


WELL = WebhookTrial("done", 204, None, 12)


@dataclass
class WorldEndpoints:
    """Endpoints in memory. `skipped`: endpoint, place and by whom."""

    kept: dict[str, RegisteredEndpoint] = field(default_factory=dict)
    skipped: list[tuple[str, RecordPosition, str]] = field(default_factory=list)

    def put(self, registered: RegisteredEndpoint) -> None:
        """As the dispatcher would leave it."""
        self.kept[registered.endpoint.id] = registered

    async def all(self) -> Sequence[RegisteredEndpoint]:
        return list(self.kept.values())

    async def add(self, endpoint: Endpoint) -> None:
        self.put(RegisteredEndpoint(endpoint))

    async def change(self, endpoint: Endpoint) -> None:
        self.put(self.kept[endpoint.id]._replace(endpoint=endpoint))

    async def remove(self, endpoint: Endpoint) -> None:
        del self.kept[endpoint.id]

    async def resume(self, endpoint: Endpoint) -> None:
        old = self.kept[endpoint.id]
        self.put(old._replace(suspended_at=None, state=replace(old.state, failing_since=None)))

    async def renew(self, endpoint: Endpoint) -> None:
        self.put(self.kept[endpoint.id]._replace(endpoint=endpoint))

    async def skip(self, endpoint: Endpoint, place: RecordPosition, by: str) -> None:
        self.skipped.append((endpoint.id, place, by))


@dataclass
class WorldTrying:
    """Trying: says what `trial` says."""

    trial: WebhookTrial = WELL
    called: list[Endpoint] = field(default_factory=list)

    async def call(self, endpoint: Endpoint) -> WebhookTrial:
        self.called.append(endpoint)
        return self.trial


class WorldRecomputing:
    """Recomputing. `refuses`: what is raised instead."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.requests: list[RecomputeRequest] = []
        self.refuses: GalateaError | None = None

    def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        if self.refuses:
            raise self.refuses
        self.requests.append(request)
        id_ = f"recompute-{len(self.requests)}"
        now = self.world.now().astimezone(UTC)
        self.world.recomputes[id_] = RecomputeRecord(
            id_, "asked", request, by, reason, now, now, None, None, None, None, None
        )
        return id_


class WorldRollingBack:
    """RollingBack. `refuses`: what is raised instead."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.refuses: GalateaError | None = None

    def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RollbackResult:
        assert why
        assert by
        if self.refuses:
            raise self.refuses
        known = {each.publication: each for each in self.world.history if each.publication > 0}
        if number not in known:
            raise UnknownNameError("publication", str(number), map(str, known))
        old = known[number]
        now = self.world.pointer
        if number == now.publication:
            raise RequestError(f"publication {number} is what readers see", do="galatea publications")
        result = RollbackResult(
            now.publication + 1, number, old.cut, now.generation, len(self.world.manifests), dry_run
        )
        if not dry_run:
            self.world.restore(number)
        return result


def takes_all(_: ProducerRecord) -> DeliveryStatus | None:
    return DeliveryStatus.ACKNOWLEDGED


class WorldBroker:
    """EventProducer. `says`: the status of a record, None if it never comes. `is_full`: there is no room.

    Every topic has one partition. `received_ms`: the broker's clock.
    """

    def __init__(self, received_ms: Callable[[], int]) -> None:
        self.topics: dict[str, list[ProducerRecord]] = {}
        self.received_ms = received_ms
        self.says: Callable[[ProducerRecord], DeliveryStatus | None] = takes_all
        self.is_full = False

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> SentRecords:
        if self.is_full:
            raise BufferError
        kept = self.topics.setdefault(topic, [])
        first = len(kept)
        kept.extend(records)
        loop = asyncio.get_running_loop()
        sent = SentRecords(len(records), loop)
        for number, record in enumerate(records):
            status = self.says(record)
            if status is not None and sent.report(number, Delivery(status, 0, first + number, self.received_ms())):
                loop.call_soon(sent.settle)
        return sent

    def values(self, topic: str) -> list[bytes]:
        """What stands in the topic, in order."""
        return [record.value for record in self.topics.get(topic, [])]


TOPIC_ID = "an id that Kafka gave"


class WorldTopics:
    """TopicReader, and what Kafka says of the topics of a World and its broker.

    `ids`: of the topics now. `recorded`: those of the generation, unless they are the same. `grown`: partitions that
    were added. `ends`: instead of those that the broker says. `is_away`: Kafka does not answer.
    """

    def __init__(self, broker: WorldBroker) -> None:
        self.broker = broker
        self.ids = dict.fromkeys(registered_sources(), TOPIC_ID)
        self.recorded: dict[str, str] | None = None
        self.grown: list[Opening] = []
        self.ends: dict[str, dict[int, int]] = {}
        self.is_away = False
        self.asked = 0

    async def tags(self, generation: int) -> dict[str, str]:
        assert generation
        recorded = self.ids if self.recorded is None else self.recorded
        return {topic: topic_tag(id_) for topic, id_ in recorded.items()}

    async def openings(self) -> Sequence[Opening]:
        return self.grown

    async def logs(self) -> dict[str, TopicEnds]:
        """As `TopicLogs` asks for."""
        self.asked += 1
        if self.is_away:
            raise BrokerUnavailableError("The broker does not answer.", do="galatea status")
        own = {topic: {0: len(self.broker.topics.get(topic, []))} for topic in self.ids} | self.ends
        return {topic: TopicEnds(topic_tag(id_), own[topic]) for topic, id_ in self.ids.items()}


OPERATOR_KEY = "the operator's key"
MOST_WEBHOOKS = 3
MOST_RULES = 5
MOST_SAVED = 6
"""Annotations, saved views and share links of one tenant."""
EMBEDDER = "https://intranet.example"
"""An origin that may show shared pages in frames."""
Body = dict[str, Any]


class WorldSessions:
    """SessionStore. `is_away`: nothing can be read or written."""

    def __init__(self) -> None:
        self.kept: dict[bytes, StoredSession] = {}
        self.owned: dict[bytes, list[SessionPlace]] = {}
        self.is_away = False

    async def put(self, place: SessionPlace, sealed: bytes, seconds: int) -> None:
        assert seconds > 0
        self._answer()
        self.kept[place.digest] = StoredSession(sealed, place.ends_at)
        self.owned.setdefault(place.owner, []).insert(0, place)

    async def of_owner(self, owner: bytes, most: int) -> Sequence[SessionPlace]:
        self._answer()
        return self.owned.get(owner, [])[:most]

    async def get(self, digest: bytes) -> StoredSession | None:
        self._answer()
        return self.kept.get(digest)

    async def remove(self, place: SessionPlace) -> None:
        self._answer()
        self.kept.pop(place.digest, None)
        self.owned[place.owner] = [each for each in self.owned.get(place.owner, []) if each != place]

    def _answer(self) -> None:
        if self.is_away:
            raise CassandraUnavailableError("Cassandra did not answer.", do="Ask again.")


async def _no_pause(_seconds: float) -> None:
    """As its clock goes on by itself, there is nothing to wait for."""


_CLIENT = httpx.AsyncClient(base_url="http://galatea")
"""Only builds requests: it has no cookies, and follows no redirections."""


async def answer_of(app: FastAPI, request: httpx.Request) -> httpx.Response:
    """The whole response of an application."""
    response = await httpx.ASGITransport(app, raise_app_exceptions=False).handle_async_request(request)
    response.request = request
    await response.aread()
    return response


class Asking:
    """One process that serves. Its answers are remembered from question to question, as in the real one.

    `beside`: another process of the same deployment, with which it shares what is stored and nothing else.
    """

    recent_seconds = 0.0  # what an answer rests on is read for each
    at_least_seconds = 100.0  # how long a question waits for what it demands: ten looks at the clock
    step = 10  # seconds that pass whenever somebody looks at the clock: every question finds all versions old

    def __init__(  # noqa: PLR0913 - a test says what is not as ever
        self,
        world: World,
        readers: Readers | None = None,
        watched: HealthReader | None = None,
        ledgers: LedgerReader | None = None,
        recomputes: RecomputeReader | None = None,
        *,
        limits: Limits = LIMITS,
        cors_origins: Sequence[str] = (),
        hosts: AllowedHosts | None = None,
        refuse_low: Callable[[], None] = lambda: None,
        beside: "Asking | None" = None,
    ) -> None:
        self.world = world
        catalogue = Catalogue({view.name: view for view in registered_views()}, registered_metrics())
        clock = count(step=self.step)
        read_from = readers or WorldTables(world).readers
        ttl = timedelta(days=7)
        clocks = self.clocks(lambda: float(next(clock)))
        self.products: WorldProducts = beside.products if beside else WorldProducts(world.now, world=world)
        products = ProductReader(self.products, lambda: float(next(clock)))
        self.targets: WorldTargets = beside.targets if beside else WorldTargets(world.now)
        self.floor_plans: WorldFloorPlans = beside.floor_plans if beside else WorldFloorPlans(world.now)
        self.clock_us = 1_800_000_000_000_000  # by which events that are sent are from the future; in 2027
        self.broker: WorldBroker = beside.broker if beside else WorldBroker(lambda: self.clock_us // 1000)
        self.topics: WorldTopics = beside.topics if beside else WorldTopics(self.broker)
        logs = TopicLogs(self.topics.logs, clocks.monotonic)
        self.answers = QueryService(
            read_from,
            catalogue,
            products,
            ttl,
            clocks,
            recent_seconds=self.recent_seconds,
            targets=TargetReader(self.targets, lambda: float(next(clock))),
            at_least=AtLeast(self.topics, registered_sources(), self.at_least_seconds, clocks.monotonic, logs),
        )
        freshness = FreshnessService(self.answers, watched or WorldWatch(world), ttl, world.now)
        ledgers, recomputes = ledgers or WorldTables(world), recomputes or WorldTables(world)
        self.recomputing, self.rolling_back = WorldRecomputing(world), WorldRollingBack(world)
        corrections = CorrectionsService(read_from, ledgers, recomputes, catalogue.views)
        self.dead_letters = WorldDeadLetters()
        service = DeadLetterService(self.dead_letters.queries, self.dead_letters.replaying, self.answers.stores.all)
        self.endpoints, self.trying = WorldEndpoints(), WorldTrying()
        webhooks = WebhookService(self.endpoints, self.trying, MOST_WEBHOOKS, world.now)
        rollbacks = RollbackService(self.rolling_back)
        self.keys: WorldKeys = beside.keys if beside else WorldKeys()
        operations = OperatorService(self.recomputing, recomputes, rollbacks, corrections, service, webhooks, self.keys)
        self.sessions: WorldSessions = beside.sessions if beside else WorldSessions()
        keys = KeyCache(self.keys, OPERATOR_KEY, "default", lambda: float(next(clock)), world.now)
        self.acts: list[tuple[str, str, int]] = []
        self.tokens = TokenWriter(logs, WaitingRule.of(registered_views(), timedelta(hours=23), RULES))
        ingest = IngestService(
            self.broker,
            self.answers.stores.all,
            lambda: self.clock_us,
            limits,
            refuse_low,
            tokens=self.tokens,
        )
        self.versions: WorldVersions = beside.versions if beside else WorldVersions(world.now)
        self.alert_tables = WorldAlertTables()
        alerting = AlertService(AlertRules(self.versions, most=MOST_RULES), AlertListing(self.alert_tables))
        self.annotations: WorldAnnotations = beside.annotations if beside else WorldAnnotations()
        self.views: WorldViews = beside.views if beside else WorldViews()
        self.shares: WorldShares = beside.shares if beside else WorldShares()
        saved = SavedService(
            Annotations(self.annotations, MOST_SAVED),
            SavedViews(self.views, MOST_SAVED),
            ShareLinks(self.shares, world.now, lambda: float(next(clock)), [EMBEDDER], MOST_SAVED),
            world.now,
        )
        authenticator = Authenticator(keys, RateLimiter(10_000, 10_000), ConcurrencyLimiter(limits.requests_per_key))
        self.app = create_app(
            self.answers,
            freshness,
            operations,
            authenticator,
            ingest,
            alerting=alerting,
            sessions=Sessions(self.sessions, lambda: float(next(clock)), world.now),
            products=ProductService(products, self.products),
            targets=TargetService(self.targets, self.answers.stores.all, catalogue),
            plans=FloorPlanService(self.floor_plans),
            saved_service=saved,
            limits=limits,
            cors_origins=cors_origins,
            hosts=hosts,
            audit=self._audit,
        )

    def clocks(self, monotonic: Callable[[], float]) -> Clocks:
        """The clocks of its answers, by which a pause takes no time."""
        return Clocks(monotonic, self.world.now, _no_pause)

    def _audit(self, by: str, act: str, status: int) -> None:
        self.acts.append((by, act, status))

    def response(  # noqa: PLR0913 - what a request may say
        self,
        path: str,
        *,
        method: str = "GET",
        key: str | None = None,
        said: object = None,
        known: str | None = None,
        match: str | None = None,
        **arguments: object,
    ) -> httpx.Response:
        """The response to a question. `from_` stands for `from`; `said`: the body, as JSON unless it is bytes.

        `known`: what the caller has already, as `If-None-Match` says it. `match`: as `If-Match` says it.
        """
        query = {name.rstrip("_"): value for name, value in arguments.items()}
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        headers |= {} if known is None else {"If-None-Match": known}
        headers |= {} if match is None else {"If-Match": match}
        sent = said if isinstance(said, bytes) or said is None else orjson.dumps(said)
        return self.request(method, path, params=query or None, headers=headers, content=sent)

    def newest(self, path: str, **arguments: object) -> httpx.Response:
        """The response to a question of which no answer of a moment ago will do."""
        query = {name.rstrip("_"): value for name, value in arguments.items()}
        return self.request("GET", path, params=query, headers={"Cache-Control": "no-cache"})

    def sent(self, said: bytes, source: str = "pos_transactions", **headers: str) -> httpx.Response:
        """The response to events, sent with the operator's key. `content_type` stands for `Content-Type`."""
        usual = {"content_type": "application/json", "authorization": f"Bearer {OPERATOR_KEY}"}
        named = {name.replace("_", "-"): value for name, value in {**usual, **headers}.items()}
        return self.request("POST", f"/v1/events/{source}", headers=named, content=said)

    def request(self, method: str, path: str, **said: Any) -> httpx.Response:
        """The response to a request as httpx makes it. AssertionError if the OpenAPI document does not announce it."""

        response = event_loop.run(answer_of(self.app, _CLIENT.build_request(method, path, **said)))
        refuse_unannounced(method, response)
        return response

    def body(self, path: str, **arguments: object) -> Body:
        """The body of an answer that must be one."""
        response = self.response(path, **arguments)  # type: ignore[arg-type]
        assert response.status_code == 200, response.text
        found: Body = response.json()
        return found

    def refusal(self, path: str, **arguments: object) -> Body:
        """The problem that a refused question gets."""
        response = self.response(path, **arguments)  # type: ignore[arg-type]
        assert response.headers["content-type"] == "application/problem+json", response.text
        found: Body = response.json()
        assert found["status"] == response.status_code
        return found
