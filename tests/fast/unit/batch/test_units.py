"""What a ledger has to compare: blocks that differ, and what speed shows."""

from datetime import date

from batch_layer.ledger.change import differing, units
from batch_layer.run import Digest

DAY, OTHER_DAY = date(2026, 3, 31), date(2026, 4, 1)
ONE, TWO = Digest("1", 3, [1]), Digest("2", 3, [2])


def test_blocks_of_equal_text_need_not_be_compared() -> None:
    before = {DAY: {"same": ONE, "changed": ONE, "gone": ONE, "old": None}}
    after = {DAY: {"same": ONE, "changed": TWO, "new": TWO, "old": ONE}}

    found = differing(before, after)

    assert found.changed == {("changed", DAY), ("gone", DAY), ("old", DAY)}
    assert found.new == {("new", DAY): TWO}


def test_a_unit_is_a_store_and_month_with_all_days_that_speed_shows() -> None:
    received = {("7", DAY): [OTHER_DAY], ("7", OTHER_DAY): [OTHER_DAY]}

    found = units([("7", DAY), ("8", DAY)], received).to_pylist()

    assert found == [
        {"store": "7", "month": date(2026, 3, 1), "days": [DAY], "received": [OTHER_DAY]},
        {"store": "7", "month": date(2026, 4, 1), "days": [OTHER_DAY], "received": [OTHER_DAY]},
        {"store": "8", "month": date(2026, 3, 1), "days": [DAY], "received": []},
    ]
