"""A snapshot of which anything is other than it was written is not there: neither taken as state nor in the way."""

import errno
import hashlib
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from speed_layer.alerts.fold import Fold
from speed_layer.alerts.identities import Checksum, IdentityTable
from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import TopicIdentity
from speed_layer.alerts.state import State
from tests.support.alerting import WorldLog, at_ms, rule_history_of
from tests.support.examples import examples

TOPIC, OTHER = "pos_transactions", "people_counts"
LOGS: Mapping[str, TopicIdentity] = {TOPIC: TopicIdentity("a topic", 1), OTHER: TopicIdentity("another", 1)}
AT = {TOPIC: 70, OTHER: 7}
HOUR_MS = 3_600_000
RULES = (
    {"kind": "threshold", "id": "many", "metric": "total_transactions_count", "window": "hour", "above": 0},
    {"kind": "silence", "id": "silent", "source": TOPIC, "minutes": 10},
)
RULE_HISTORY = rule_history_of(*RULES)
TEN = at_ms("2026-03-07 10:00")


def real_fold() -> Fold:
    """Of receipts, an open alert and a price with decimals."""
    world = WorldLog(TOPIC, RULE_HISTORY)
    for minute in range(0, 60, 7):
        world.sold(TEN + minute * 60_000, 2.5)
    return world.fold


FOLD = real_fold()
IDENTITIES = [each for seen in FOLD.state.identities.values() for each in seen]


def state_of(encoded: bytes) -> State:
    return State.from_bytes(encoded)


def rest() -> str:
    """The digest of the state without its identities, which are stored apart from it."""
    state = state_of(FOLD.state.to_bytes())
    state.identities = {}
    return state.digest()


OTHERS = {number.to_bytes(16): TEN // HOUR_MS - number % 3 for number in range(3, 3_000)}
"""Identities of another topic and their hours: enough for inner pages, and for free pages when an hour is over."""


def of_others() -> State:
    identities = dict[int, set[bytes]]()
    for identity, hour in OTHERS.items():
        identities.setdefault(hour, set()).add(identity)
    return State(log_ms=TEN, identities=identities)


def recent_others() -> State:
    """Those whose hour is not over."""
    state = of_others()
    state.identities = {hour: seen for hour, seen in state.identities.items() if hour >= TEN // HOUR_MS - 1}
    return state


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    with closing(Snapshots(tmp_path)) as snapshots:
        snapshots.save(AT, {TOPIC: State(), OTHER: of_others()}, LOGS)
        snapshots.identities(OTHER).forget(TEN // HOUR_MS - 1)
        snapshots.save(AT, {TOPIC: state_of(FOLD.state.to_bytes()), OTHER: State(log_ms=TEN)}, LOGS)
    return tmp_path


def has_all(snapshots: Snapshots) -> bool:
    """Whether each identity is known, and none whose hour is over."""
    known = all(snapshots.identities(TOPIC).has(each) for each in IDENTITIES)
    others = snapshots.identities(OTHER)
    return known and all(others.has(each) == (hour >= TEN // HOUR_MS - 1) for each, hour in OTHERS.items())


def database(folder: Path) -> Path:
    [file] = folder.glob("*.db")
    return file


def found(folder: Path) -> State | None:
    """Only with all of its identities."""
    with closing(Snapshots(folder)) as snapshots:
        snapshot = snapshots.load(AT, LOGS)
        if snapshot is None:
            return None
        assert has_all(snapshots)
        return snapshot.states[TOPIC]


def test_what_was_kept_is_read_again(kept: Path) -> None:
    state = found(kept)

    assert state is not None
    assert state.digest() == rest()
    assert len(IDENTITIES) == 9


def test_a_snapshot_of_the_release_before_is_read_and_replaced(tmp_path: Path) -> None:
    states = {TOPIC: FOLD.state.to_bytes(), OTHER: recent_others().to_bytes()}
    body = msgspec.msgpack.encode({"positions": AT, "states": states, "logs": LOGS})
    (tmp_path / "7.state").write_bytes(hashlib.sha256(b"galatea alerts 2" + body).digest() + body)
    (tmp_path / "8.state").write_bytes(b"damaged")
    former = Snapshots(tmp_path)

    snapshot = former.load(AT, LOGS)

    assert snapshot is not None
    assert (former.exist, set(former.topics)) == (True, {TOPIC, OTHER})
    assert snapshot.states[TOPIC].digest() == FOLD.state.digest()
    former.save(AT, snapshot.states, LOGS)
    state = found(tmp_path)
    assert state is not None
    assert state.digest() == rest()
    assert [*tmp_path.glob("*.state")] == []


def found_after(folder: Path, broken: bytes) -> State | None:
    """What a process finds instead, after which the next one finds what this one has written."""
    file = database(folder)
    whole = file.read_bytes()
    file.write_bytes(broken)
    with closing(Snapshots(folder)) as snapshots:
        snapshot = snapshots.load(AT, LOGS)
        if snapshot is None:
            assert snapshots.exist
            assert not any(snapshots.identities(TOPIC).has(each) for each in IDENTITIES)
            assert not any(snapshots.identities(OTHER).has(each) for each in OTHERS)
            snapshots.save(AT, {TOPIC: state_of(FOLD.state.to_bytes()), OTHER: recent_others()}, LOGS)
        else:
            assert has_all(snapshots)
    assert found(folder) is not None
    for left in folder.iterdir():
        left.unlink()
    (folder / "1.db").write_bytes(whole)
    return snapshot.states[TOPIC] if snapshot else None


@given(at=st.integers(0, 2**20), bit=st.integers(0, 7))
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_with_one_bit_turned_over_it_is_what_was_written_or_not_there(kept: Path, at: int, bit: int) -> None:
    whole = database(kept).read_bytes()
    place = at % len(whole)
    broken = whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]

    state = found_after(kept, broken)

    assert state is None or state.digest() == rest()


@given(left=st.integers(0, 2**20), more=st.binary(max_size=40))
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cut_short_or_written_over_it_is_what_was_written_or_not_there(kept: Path, left: int, more: bytes) -> None:
    whole = database(kept).read_bytes()

    state = found_after(kept, whole[: left % len(whole)] + more)

    assert state is None or state.digest() == rest()


@pytest.mark.parametrize(
    "change",
    [
        "update snapshot set body = x'00'",
        "update snapshot set body = 'text'",
        "delete from {table}",
        "drop table {table}",
        "update {table} set identity = zeroblob(16) where identity = (select min(identity) from {table})",
        "update {table} set identity = cast(identity as text) where identity = (select min(identity) from {table})",
        "insert into {table} values (zeroblob(16), {hour})",
        "update {table} set hour = hour + 1 where identity = (select min(identity) from {table})",
        "update {table} set hour = hour - 1",
        "update {table} set hour = cast(x'ff' as text) where identity = (select min(identity) from {table})",
    ],
)
def test_rows_that_are_not_those_that_were_written_are_not_taken(kept: Path, change: str) -> None:
    with closing(sqlite3.connect(database(kept), isolation_level=None)) as opened:
        opened.execute(change.format(table=f'"{TOPIC}"', hour=TEN // 3_600_000))

    state = found(kept)

    assert state is None


def test_an_identity_that_is_damaged_in_the_table_or_in_the_index_is_noticed_or_mended(kept: Path) -> None:
    file = database(kept)
    whole = file.read_bytes()
    places = [at for at in range(len(whole)) if whole.startswith(IDENTITIES[0], at)]
    assert len(places) >= 2
    for place in places:
        state = found_after(kept, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])

        assert state is None or state.digest() == rest()


def test_a_process_believed_dead_does_not_write_into_what_its_successor_reads(kept: Path) -> None:
    before, after = Snapshots(kept), Snapshots(kept)
    assert before.load(AT, LOGS) is not None
    assert after.load(AT, LOGS) is not None
    later = State(log_ms=TEN, identities={TEN // HOUR_MS: {bytes(16)}})

    before.save({TOPIC: 71, OTHER: 7}, {TOPIC: later, OTHER: State()}, LOGS)

    assert not after.identities(TOPIC).has(bytes(16))
    assert found(kept) is not None


def test_a_process_that_is_stopped_while_it_copies_does_not_take_the_file_of_its_successor(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = Snapshots(kept), Snapshots(kept)
    copied = before._is_copied  # noqa: SLF001 - it is stopped there

    def stopped(source: Path, target: Path) -> bool:
        assert after.load(AT, LOGS) is not None
        return copied(source, target)

    monkeypatch.setattr(before, "_is_copied", stopped)
    assert before.load(AT, LOGS) is None
    later = State(log_ms=TEN, identities={TEN // HOUR_MS: {bytes(16)}})

    before.save({TOPIC: 71, OTHER: 7}, {TOPIC: later, OTHER: State()}, LOGS)

    assert has_all(after)
    assert not after.identities(TOPIC).has(bytes(16))


def test_what_the_disk_cannot_read_is_as_good_as_damaged(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object) -> Mapping[object, Checksum]:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(IdentityTable, "_rows", unreadable)
    with closing(Snapshots(kept)) as snapshots:
        assert snapshots.load(AT, LOGS) is None
        assert (snapshots.exist, set(snapshots.topics)) == (True, {TOPIC, OTHER})
