"""The size of a micro-batch, which decides how many tasks count it, follows from its offsets."""

from pathlib import Path

import pytest

from speed_layer.driver import MicroBatchSizes

FIRST = {"receipts": {0: 40, 1: 7}}
SECOND = {"receipts": {0: 45, 1: 7}, "counts": {0: 3}}


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "4").write_text('v1\n{}\n{"receipts":{"0":40,"1":7}}')
    return str(tmp_path)


def test_a_micro_batch_has_what_came_after_the_one_before(checkpoint: str) -> None:
    assert MicroBatchSizes().of(checkpoint, 5, SECOND) == 8


def test_a_replay_has_the_same_size(checkpoint: str) -> None:
    sizes = MicroBatchSizes()
    third = {**SECOND, "counts": {0: 5}}

    assert [sizes.of(checkpoint, 5, SECOND), sizes.of(checkpoint, 6, third)] == [8, 2]
    assert MicroBatchSizes().of(checkpoint, 5, SECOND) == 8


def test_the_first_one_has_at_most_what_its_topics_had(checkpoint: str) -> None:
    sizes = MicroBatchSizes()

    assert sizes.of(checkpoint, 0, FIRST) == 47
    assert sizes.of(checkpoint, 1, SECOND) == 8
