"""What the alert processor may hold, and how long its readers may be held back."""

from speed_layer.alerts.source import LONGEST_TRANSACTION_SECONDS, TransactionMonitor
from tests.support.alerting import WorldLog, at_ms, rule_history_of

RULE = {"kind": "threshold", "id": "any", "metric": "total_transactions_count", "window": "hour", "above": 0}


def test_each_identity_that_was_met_counts_until_its_day_is_over() -> None:
    log = WorldLog("pos_transactions", rule_history_of(RULE))
    ten = at_ms("2026-03-07 10:00")

    log.sold(ten, 1, transaction_id=1)
    log.sold(ten, 1, transaction_id=1, late_ms=5000)
    log.sold(ten + 9000, 1, transaction_id=2)
    met = log.fold.state.identity_count
    log.pass_until(ten + 26 * 3_600_000)

    assert (met, log.fold.state.identity_count) == (2, 0)


def test_a_stable_end_that_does_not_move_holds_readers_back_and_one_that_moves_does_not() -> None:
    held_back = TransactionMonitor()

    nobody = held_back.check({0: 10, 1: 5}, {0: 10, 1: 5}, 0)
    opened = held_back.check({0: 12, 1: 5}, {0: 10, 1: 5}, 10)
    at_the_limit = held_back.check({0: 15, 1: 5}, {0: 10, 1: 5}, 10 + LONGEST_TRANSACTION_SECONDS)
    beyond = held_back.check({0: 15, 1: 5}, {0: 10, 1: 5}, 11 + LONGEST_TRANSACTION_SECONDS)
    another = held_back.check({0: 20, 1: 5}, {0: 16, 1: 5}, 100)
    over = held_back.check({0: 21, 1: 5}, {0: 21, 1: 5}, 101)

    assert [each.records for each in (nobody, opened, at_the_limit, beyond, another, over)] == [0, 2, 5, 5, 4, 0]
    assert [each.is_too_long for each in (opened, at_the_limit, beyond, another)] == [False, False, True, False]
