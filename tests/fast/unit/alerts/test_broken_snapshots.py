"""A snapshot of which anything is other than it was written is not there: neither taken as state nor in the way."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import TopicIdentity
from speed_layer.alerts.state import State
from tests.support.alerting import WorldLog, at_ms, rule_history_of
from tests.support.examples import examples

TOPIC = "pos_transactions"
LOGS: Mapping[str, TopicIdentity] = {TOPIC: TopicIdentity("a topic", 1)}
AT = {TOPIC: 70}
RULES = (
    {"kind": "threshold", "id": "many", "metric": "total_transactions_count", "window": "hour", "above": 0},
    {"kind": "silence", "id": "silent", "source": TOPIC, "minutes": 10},
)


def real_state() -> State:
    """Of receipts, an open alert and a price with decimals."""
    world = WorldLog(TOPIC, rule_history_of(*RULES))
    for minute in range(0, 60, 7):
        world.sold(at_ms("2026-03-07 10:00") + minute * 60_000, 2.5)
    return world.fold.state


STATE = real_state()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    Snapshots(tmp_path).save(AT, {TOPIC: STATE}, LOGS)
    return next(tmp_path.glob("*.state"))


def found(file: Path) -> State | None:
    newest = Snapshots(file.parent).newest(AT, LOGS)
    return newest.states[TOPIC] if newest else None


def test_what_was_kept_is_read_again(kept: Path) -> None:
    state = found(kept)

    assert state is not None
    assert state.digest() == STATE.digest()


def test_a_snapshot_of_the_release_before_is_read(kept: Path) -> None:
    body = msgspec.msgpack.encode({"positions": AT, "states": {TOPIC: STATE.to_bytes()}, "logs": LOGS})
    kept.write_bytes(hashlib.sha256(b"galatea alerts 2" + body).digest() + body)

    assert found(kept) is not None
    assert set(Snapshots(kept.parent).topics) == {TOPIC}


@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_with_one_bit_turned_over_it_is_not_there(kept: Path, at: float, bit: int) -> None:
    whole = kept.read_bytes()
    place = int(at * len(whole))
    kept.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])

    state = found(kept)
    kept.write_bytes(whole)

    assert state is None


@given(left=st.floats(0, 1, exclude_max=True), more=st.binary(max_size=40))
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_cut_short_or_written_over_it_is_not_there(kept: Path, left: float, more: bytes) -> None:
    whole = kept.read_bytes()
    broken = whole[: int(left * len(whole))] + more
    kept.write_bytes(broken)

    state = found(kept)
    kept.write_bytes(whole)

    assert (state is None) == (broken != whole)


def test_the_one_before_is_taken_instead(kept: Path) -> None:
    Snapshots(kept.parent).save(AT, {TOPIC: State()}, LOGS)
    newest = max(kept.parent.glob("*.state"), key=lambda file: int(file.stem))
    newest.write_bytes(newest.read_bytes()[:-1] + b"!")

    state = found(kept)

    assert state is not None
    assert state.digest() == STATE.digest()
