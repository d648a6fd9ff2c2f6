"""Time passes for alerts as long as the process lives: what passes by itself is tried again, anything else ends it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from cassandra import OperationTimedOut, ReadTimeout
from cassandra.cluster import NoHostAvailable
from confluent_kafka import Producer

from deploy.services.alert_processor import TickLoop
from deploy.services.alerts import heartbeat_count
from master_dataset.errors import BrokerUnavailableError, CassandraUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.registry.rule_versions import RuleVersions
from master_dataset.registry.stores import Store
from speed_layer.alerts.rule_store import CassandraRuleStore, Ticker, ticked_topics
from tests.support.alerting import FOR_EVER, SHOP, WorldLog, rule_history_of
from views.alerts.rule_history import RuleHistory, StoredVersion, rule_version, store_version
from views.alerts.rule_validation import parse_rule

RULE = {"kind": "silence", "id": "tills", "source": "pos_transactions", "minutes": 20, "hours": "always"}
RULE_HISTORY = rule_history_of(RULE)
AWAY = [
    OperationTimedOut(),
    NoHostAvailable("none", {}),
    ReadTimeout("late"),
    CassandraUnavailableError("gone", do="wait"),
]
STORES = {SHOP.id: SHOP}
A_BROKER = {"bootstrap.servers": "nowhere:1", "test.mock.num.brokers": 1}  # librdkafka's own, within this process


@dataclass
class Neighbours:
    """Registry, rule store and ticker with scripted outcomes. `fails`: by step what is raised there, the first time."""

    fails: dict[str, Exception] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    beats: int = 0

    def stores(self) -> Mapping[str, Store]:
        self._do("stores")
        return STORES

    def record_stores(self, stores: Mapping[str, Store], beat: Callable[[], None]) -> None:
        beat()
        assert stores == STORES
        self._do("note")

    def read(self) -> RuleHistory:
        self._do("read")
        return RULE_HISTORY

    def tick(self, rule_history: RuleHistory) -> None:
        assert rule_history is RULE_HISTORY
        self._do("tick")

    def beat(self) -> None:
        self.beats += 1

    def _do(self, step: str) -> None:
        if step in self.fails:
            raise self.fails.pop(step)
        self.done.append(step)


@pytest.fixture
def broker() -> Iterator[KafkaConnection]:
    """librdkafka's own; a topic that is asked for has four partitions."""
    owner = Producer(A_BROKER)
    brokers = owner.list_topics(timeout=30).brokers.values()
    yield KafkaConnection(",".join(f"{each.host}:{each.port}" for each in brokers))
    owner.flush(0)


def ticking(world: Neighbours) -> TickLoop:
    return TickLoop(world, world.stores, world, world.beat)


@pytest.mark.parametrize("step", ["stores", "note", "read"])
@pytest.mark.parametrize("away", AWAY, ids=lambda each: type(each).__name__)
def test_a_store_that_is_away_for_a_moment_ends_nothing(step: str, away: Exception) -> None:
    world = Neighbours({step: away})

    ticking(world).once()
    before = list(world.done)
    ticking(world).once()

    assert step not in before
    assert world.done[len(before) :] == ["stores", "note", "read", "tick"]


@pytest.mark.parametrize("step", ["stores", "note"])
def test_stores_that_cannot_be_noted_stop_no_tick(step: str) -> None:
    world = Neighbours({step: OperationTimedOut()})

    ticking(world).once()

    assert world.done[-1] == "tick"


def test_every_round_says_that_it_gets_on_even_if_nothing_answers() -> None:
    world = Neighbours({"stores": OperationTimedOut(), "read": OperationTimedOut()})

    ticking(world).once()

    assert world.beats > 0


def test_an_error_that_persists_ends_the_key_queue_and_with_it_the_process() -> None:
    world = Neighbours({"tick": ValueError("a bug")})

    with pytest.raises(ValueError, match="a bug"):
        ticking(world).run(0)


def test_the_ticker_is_watched_beside_the_partitions_and_the_history_writer() -> None:
    watched = heartbeat_count(partitions=3)

    assert watched == 3 + 2


def test_a_reading_leaves_time_to_versions_that_were_stamped_before_it_and_written_late() -> None:
    class Empty(RuleVersions):
        def __init__(self) -> None:
            super().__init__(SimpleNamespace(), timedelta(seconds=60))

        def read(self) -> Iterator[Any]:
            return iter(())

    rule_store = CassandraRuleStore(Empty(), timedelta(seconds=4), lambda: datetime(2026, 11, 21, tzinfo=UTC))

    rule_history = rule_store.read()

    stamped_before_ms = datetime(2026, 11, 21, tzinfo=UTC).timestamp() * 1000
    assert rule_history.complete_before_ms - stamped_before_ms == 28_000


@pytest.mark.parametrize("away", AWAY[:3], ids=lambda each: type(each).__name__)
def test_a_rule_store_that_cannot_be_read_or_written_raises_a_named_error(away: Exception) -> None:
    class Gone:
        delay = timedelta(0)

        def read(self) -> Any:
            raise away

    rule_store = CassandraRuleStore(Gone(), timedelta(0))  # type: ignore[arg-type]

    with pytest.raises(CassandraUnavailableError):
        rule_store.read()
    with pytest.raises(CassandraUnavailableError):
        rule_store.record_stores(STORES)


def test_a_store_that_is_removed_is_no_longer_known_and_known_again_when_it_comes_back() -> None:
    versions: list[StoredVersion] = []

    class Kept:
        delay = timedelta(0)

        def read(self) -> Iterator[StoredVersion]:
            return reversed(versions)  # newest first

        def add(self, kind: Literal["rule", "store"], id_: str, body: str) -> None:
            versions.append(StoredVersion(len(versions), kind, id_, len(versions), body))

    def known() -> bool:
        return SHOP.id in RuleHistory(versions, FOR_EVER).at(len(versions)).shops

    rule_store = CassandraRuleStore(Kept(), timedelta(0))  # type: ignore[arg-type]
    found = []
    for stores in (STORES, STORES, {}, {}, STORES):
        rule_store.record_stores(stores)
        found.append((len(versions), known()))

    assert found == [(1, True), (1, True), (2, False), (2, False), (3, True)]


def test_a_tick_that_the_broker_refuses_is_named(broker: KafkaConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "speed_layer.alerts.rule_store._WAIT_SECONDS", 60.0
    )  # a busy machine would give up on all first

    with pytest.raises(BrokerUnavailableError, match="pos_transactions/9"):
        Ticker(broker, [0, 9]).tick(RULE_HISTORY)


def test_a_refused_tick_is_written_in_the_next_round(broker: KafkaConnection) -> None:
    requests = [9]
    ticker = Ticker(broker, requests)
    with pytest.raises(BrokerUnavailableError):
        ticker.tick(RULE_HISTORY)
    requests[:] = [0, 1]

    ticker.tick(RULE_HISTORY)


HOUR_MS = 3_600_000
TAKEN_AWAY_MS = 100 * HOUR_MS


def taken_away(lived_ms: int) -> RuleHistory:
    """A rule that held for so long."""
    rule = rule_version(parse_rule(RULE), 1, TAKEN_AWAY_MS - lived_ms)
    return RuleHistory([rule, StoredVersion(TAKEN_AWAY_MS, "rule", rule.id, 2, "")], FOR_EVER)


@pytest.mark.parametrize("lived_ms", [HOUR_MS, 1000])
@pytest.mark.parametrize(("since_ms", "is_ticked"), [(-1, True), (0, True), (10 * 60_000, True), (2 * HOUR_MS, False)])
def test_what_a_rule_watched_until_lately_is_ticked_so_that_what_it_left_open_is_resolved(
    lived_ms: int, since_ms: int, *, is_ticked: bool
) -> None:
    rule_history = taken_away(lived_ms)

    topics = ticked_topics(rule_history, TAKEN_AWAY_MS + since_ms)

    assert topics == (["pos_transactions"] if is_ticked else [])


def test_a_silence_of_a_rule_that_was_taken_away_is_resolved_by_ticks_alone() -> None:
    world = WorldLog("pos_transactions", rule_history_of(RULE))
    world.sold(TAKEN_AWAY_MS - HOUR_MS, 1)
    world.pass_until(TAKEN_AWAY_MS - 1)
    store = store_version(SHOP, 1, 0)
    gone = StoredVersion(TAKEN_AWAY_MS, "rule", "default/tills", 2, "")
    world.rule_history = RuleHistory([store, rule_version(parse_rule(RULE), 1, 0), gone], FOR_EVER)

    emitted = world.pass_until(TAKEN_AWAY_MS + 60_000)

    assert [(each.kind, each.reason) for each in emitted] == [("resolved", "rule_changed")]
