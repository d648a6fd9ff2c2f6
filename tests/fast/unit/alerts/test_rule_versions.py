"""A version of a rule is known to every reader before it takes effect, or it is not written at all."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cassandra import OperationTimedOut
from hypothesis import given
from hypothesis import strategies as st

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.rule_versions import RuleEdit, RuleVersions, VersionRow
from speed_layer.alerts.rule_store import CassandraRuleStore
from tests.support.memory_rule_versions import MemoryRuleVersions
from views.alerts.rule_history import RuleHistory, StoredVersion

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DELAY, SKEW = timedelta(seconds=60), timedelta(seconds=5)
RULE = "acme/queue"


class Killed(BaseException):
    """The process is gone."""


class Played:
    """Writers and readers of one table, at a time that is played. Their clocks may be wrong by some seconds."""

    def __init__(self, delay: timedelta = DELAY, skew: timedelta = SKEW) -> None:
        self.now = NOON
        self.delay, self.skew = delay, skew
        self.table = MemoryRuleVersions(lambda: self.now)
        self.steps: list[str] = []
        self.readings: list[RuleHistory] = []
        self.table.before = self.steps.append

    def versions(self, wrong: float = 0) -> RuleVersions:
        session: Any = self.table
        return RuleVersions(session, self.delay, lambda: self.now + timedelta(seconds=wrong))

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def read(self, wrong: float = 0) -> None:
        """As the alert processor does."""
        steps, self.table.before = self.table.before, lambda _: None
        reading = CassandraRuleStore(self.versions(), self.skew, lambda: self.now + timedelta(seconds=wrong)).read()
        self.table.before = steps
        self.readings.append(reading)

    def before(self, step: str, act: Callable[[], None], times: int = 1) -> None:
        """Do something before a step is executed, the first few times."""
        left = [times]

        def acts(executed: str) -> None:
            self.steps.append(executed)
            if executed == step and left[0]:
                left[0] -= 1
                act()

        self.table.before = acts

    def after(self, step: str, error: BaseException) -> None:
        """Raise an error when a step has been executed for the first time."""
        left = [error]

        def acts(executed: str) -> None:
            if executed == step and left:
                raise left.pop()

        self.table.after = acts

    def written(self) -> list[VersionRow]:
        return list(self.versions().read())

    def missed(self) -> list[float]:
        """For how many seconds each reading has counted as complete although a version that it does not have holds."""
        late = []
        for reading in self.readings:
            for row in self.written():
                at_ms = round(row.effective_at.timestamp() * 1000)
                if not reading.at(at_ms).rules and reading.complete_before_ms > at_ms:
                    late.append((reading.complete_before_ms - at_ms) / 1000)
        return late


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    found = Played()
    found.table.install(monkeypatch)
    return found


BODY = '{"kind":"silence","tenant":"acme","id":"queue","source":"pos_transactions","minutes":20,"hours":"always"}'


@pytest.mark.parametrize("step", ["allow", "add"])
def test_a_writer_that_was_suspended_writes_no_version_that_takes_effect_in_the_past(played: Played, step: str) -> None:
    """`kill -STOP`, or a suspended machine; meanwhile the alert processor goes on."""

    def suspended() -> None:
        played.passes(65)
        played.read()
        played.passes(5)

    played.before(step, suspended)
    version = played.versions().add("rule", RULE, BODY)

    assert played.missed() == []
    assert played.written() == [version]
    assert version.effective_at == NOON + timedelta(seconds=70) + DELAY


@pytest.mark.parametrize(
    ("delay", "skew", "permitted"), [(1, 0.5, 2), (2, 0.5, 2), (20, 5, 5), (36, 5, 9), (60, 5, 10), (60, 50, 10)]
)
def test_a_version_that_is_written_as_late_as_it_may_be_is_known_in_time_whatever_the_clocks_say(
    monkeypatch: pytest.MonkeyPatch, delay: float, skew: float, permitted: float
) -> None:
    played = Played(timedelta(seconds=delay), timedelta(seconds=skew))
    played.table.install(monkeypatch)

    def just_in_time() -> None:
        played.passes(permitted - 0.001)
        played.read(skew / 2)

    played.before("add", just_in_time)
    added = played.versions(-skew / 2).follow(RULE, BODY, 0)

    assert played.steps == ["find", "allow", "add"]
    assert played.written() == [added]
    assert played.missed() == []


SECONDS = st.one_of(st.floats(0, 3), st.floats(0, 80))
WRONG = st.floats(-0.5, 0.5)
"""How wrong a clock is, as a share of the skew."""


@given(
    st.lists(st.tuples(SECONDS, SECONDS, WRONG), max_size=12),
    WRONG,
    st.sampled_from([(1, 0.5), (2, 0.5), (3, 1), (10, 1), (20, 5), (36, 5), (60, 5), (60, 50), (600, 5)]),
)
def test_whenever_one_is_suspended_no_reading_counts_as_complete_without_a_version(
    pauses: list[tuple[float, float, float]], wrong: float, times: tuple[float, float]
) -> None:
    delay, skew = times
    played, left = Played(timedelta(seconds=delay), timedelta(seconds=skew)), list(pauses)

    def suspended(_: str) -> None:
        if left:
            before, after, wrong_there = left.pop()
            played.passes(before)
            played.read(wrong_there * skew)
            played.passes(after)

    played.table.before = suspended
    with pytest.MonkeyPatch.context() as patching:
        played.table.install(patching)
        try:
            added = played.versions(wrong * skew).follow(RULE, BODY, 0)
        except CassandraUnavailableError:
            added = None
    played.table.before = lambda _: None

    assert played.missed() == []
    assert played.written() == ([added] if added else [])


def test_a_write_that_always_comes_too_late_is_refused_and_leaves_nothing(played: Played) -> None:
    played.before("add", lambda: played.passes(11), times=9)

    with pytest.raises(CassandraUnavailableError, match="was not written within the 10 seconds"):
        played.versions().follow(RULE, BODY, 0)
    assert played.written() == []


@pytest.mark.parametrize("step", ["allow", "add"])
def test_a_writer_that_is_killed_leaves_nothing_that_is_in_the_way_of_others(played: Played, step: str) -> None:
    def killed() -> None:
        raise Killed

    played.before(step, killed)
    with pytest.raises(Killed):
        played.versions().follow(RULE, BODY, 0)
    assert played.written() == []

    assert played.versions().follow(RULE, BODY, 0) == played.written()[0]


def test_a_reader_of_the_former_release_takes_a_permit_for_no_rule(played: Played) -> None:
    """It reads every row of the table as a rule unless it is a store, and follows a history of them."""
    played.after("allow", Killed())
    with pytest.raises(Killed):
        played.versions().follow(RULE, BODY, 0)
    [permit] = played.table.rows()
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001 - as the driver gives it
    at_ms = (permit.effective_at - epoch) // timedelta(milliseconds=1)

    stored = StoredVersion(at_ms, permit.kind, permit.id, permit.number, permit.body)  # type: ignore[arg-type]
    history = RuleHistory([stored], 0)

    assert not history.at(round(NOON.timestamp() * 1000) + 10**12).rules
    assert history.at(0).by_topic == {}


@pytest.mark.parametrize("step", ["allow", "add"])
def test_a_write_whose_outcome_is_unknown_is_settled(played: Played, step: str) -> None:
    played.after(step, OperationTimedOut())

    if step == "allow":
        with pytest.raises(OperationTimedOut):
            played.versions().follow(RULE, BODY, 0)
        assert played.written() == []
    else:
        assert played.versions().follow(RULE, BODY, 0) == played.written()[0]


def test_one_that_was_not_executed_is_written_again_and_only_once(played: Played) -> None:
    def away() -> None:
        raise OperationTimedOut

    played.before("add", away)
    added = played.versions().follow(RULE, BODY, 0)

    assert played.written() == [added]


def test_a_write_that_the_driver_sends_twice_is_known_to_be_ours(played: Played) -> None:
    execute = played.table.execute

    def twice(statement: Any, values: Any = ()) -> Any:
        if not isinstance(statement, str):
            execute(statement, values)
        return execute(statement, values)

    played.table.execute = twice  # type: ignore[method-assign]

    assert played.versions().follow(RULE, BODY, 0) == played.written()[0]


def test_one_that_another_writer_was_faster_with_is_not_written(played: Played) -> None:
    other: list[Any] = []
    played.before("add", lambda: other.append(played.versions().follow(RULE, "{}", 0)))

    assert played.versions().follow(RULE, BODY, 0) is None
    assert played.written() == other


def test_several_versions_are_written_together_or_none_of_them(played: Played) -> None:
    versions = played.versions()
    edits = [RuleEdit(f"acme/{name}", BODY, 0) for name in ("one", "two")]
    played.before("add", lambda: played.passes(11))

    added = versions.follow_all(edits)
    again = versions.follow_all([RuleEdit("acme/three", BODY, 0), edits[0]])

    assert added is not None
    assert [(each.id, each.number, each.effective_at) for each in played.written()] == [
        (each.id, 1, NOON + timedelta(seconds=11) + DELAY) for each in added
    ]
    assert again is None


def test_versions_of_one_rule_take_effect_in_their_order_whatever_a_clock_says(played: Played) -> None:
    first = played.versions(wrong=5).add("rule", RULE, BODY)
    second = played.versions(wrong=-5).add("rule", RULE, "")

    assert (first.number, second.number) == (1, 2)
    assert second.effective_at >= first.effective_at
