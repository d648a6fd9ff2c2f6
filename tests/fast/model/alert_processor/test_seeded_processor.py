"""An alert processor with one mistake is detected by the same runs in which the real one is correct."""

import pytest

from tests.fast.model.alert_processor.bugs import (
    CommitBeforeWrite,
    FlushAfterOffsets,
    ForgetsWhatIsEmitted,
    OffsetWithoutOne,
    PositionsBeforeSettling,
)
from tests.fast.model.alert_processor.simulated import Variant, counted
from tests.support.examples import examples

SEEDS = range(25, 50)


def test_the_processor_is_correct_in_every_run() -> None:
    found = counted(range(examples(60, least=20)), Variant())

    assert not found


def test_a_hidden_repeat_commits_half_a_transaction_and_still_loses_and_repeats_nothing() -> None:
    found = counted(SEEDS[: examples(25, least=12)], Variant(blind=True))

    assert found["premature"]
    assert not found.keys() & {"lost", "twice", "phantom", "behind"}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("variant", "shown"),
    [
        pytest.param(Variant(CommitBeforeWrite), "lost", id="commit before write"),
        pytest.param(Variant(isolation="read_uncommitted"), "lost", id="read_uncommitted reader"),
        pytest.param(Variant(blind=True), "premature", id="producer kept after a hidden retry"),
        pytest.param(Variant(OffsetWithoutOne), "behind", id="offset without +1"),
        pytest.param(Variant(PositionsBeforeSettling), "twice", id="committed offset read before init_transactions"),
        pytest.param(
            Variant(ForgetsWhatIsEmitted, blind=True), "twice", id="emitted alerts not remembered, nor repeats seen"
        ),
        pytest.param(Variant(FlushAfterOffsets, blind=True), "lost", id="flush after send_offsets"),
    ],
)
def test_a_processor_with_one_seeded_bug_is_detected(variant: Variant, shown: str) -> None:
    found = counted(SEEDS, variant)

    assert found[shown], found
