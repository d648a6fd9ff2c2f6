"""Laws of delivery and of the cut, each checked by a simulation with seeded chance that runs the product's own code."""

from collections.abc import Callable

import pytest

from master_dataset.sources import registered_sources
from tests.fast.laws.delivery.archive_restarts import keep_what_positions_say
from tests.fast.laws.delivery.consumer_restarts import hand_over_everything
from tests.fast.laws.delivery.fence_law import nothing_appears_behind_a_cut
from tests.fast.laws.delivery.ledger_law import a_ledger_is_written_when_speed_has_read_up_to_the_cut
from tests.fast.laws.delivery.money_law import totals_are_exact
from tests.fast.laws.delivery.plan_law import every_visit_that_ends_is_read
from tests.fast.laws.delivery.processor_restarts import (
    emit_each_alert_once,
    emit_each_alert_once_whatever_was_committed,
)
from tests.fast.laws.delivery.receipts_law import each_is_shown_as_it_came_first
from tests.fast.laws.delivery.speed_law import merged_is_exact_at_every_cut

LAWS = (
    keep_what_positions_say,
    hand_over_everything,
    nothing_appears_behind_a_cut,
    a_ledger_is_written_when_speed_has_read_up_to_the_cut,
    totals_are_exact,
    every_visit_that_ends_is_read,
    each_is_shown_as_it_came_first,
    emit_each_alert_once,
    emit_each_alert_once_whatever_was_committed,
    merged_is_exact_at_every_cut,
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law_holds(law: Callable[[], None]) -> None:
    law()


def test_every_identity_includes_the_event_time() -> None:
    without = [topic for topic, source in registered_sources().items() if "happened_at" not in source.identity]

    assert without == []
