"""What Spark wrote down before it ran a micro-batch."""

import pytest

from master_dataset.delta.checkpoint import parse_ends


def test_the_ends_of_every_source_are_read_and_one_without_records_has_none() -> None:
    text = 'v1\n{"batchWatermarkMs":0}\n{"pos_transactions":{"0":12,"1":0}}\n-\n{"people_counts":{"3":7}}'

    assert parse_ends(text) == {"pos_transactions": {0: 12, 1: 0}, "people_counts": {3: 7}}


def test_another_version_of_the_log_is_refused() -> None:
    with pytest.raises(ValueError, match="v2"):
        parse_ends('v2\n{}\n{"pos_transactions":{"0":12}}')
