"""Which events only batch counts: ingest decides it for one event as the speed layer does for many."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from master_dataset.visits.visit import RULES
from speed_layer.contributions import Contributions
from tests.support.examples import examples
from views.core.cells import WAITING
from views.core.waiting import WaitingRule
from views.wifi_visits import WIFI_VISITS

OLDEST = timedelta(hours=23)
HAPPENED = datetime(2026, 3, 7, 9, tzinfo=UTC)
LEAST, GREATEST = RULES.fresh_ages
OLD = OLDEST // timedelta(milliseconds=1)
AGES = st.integers(-3_600_000, 2 * OLD) | st.builds(
    int.__add__, st.sampled_from([LEAST, GREATEST, OLD, 0]), st.integers(-2, 2)
)
INSTANT = pa.timestamp("us", "UTC")


def waits_in_speed(topic: str, age_ms: int) -> bool:
    """Whether the speed layer counts an event of this age as waiting, for any view."""
    happened = int(HAPPENED.timestamp() * 1000)
    events = pa.table(
        {
            "topic": [topic],
            "store": ["1"],
            "happened_at": pa.array([happened * 1000], INSTANT),
            "received_at": pa.array([(happened + age_ms) * 1000], INSTANT),
        }
    )
    found = Contributions([WIFI_VISITS], OLDEST, RULES)(events)
    return WAITING.name in found and found[WAITING.name].num_rows > 0


@settings(max_examples=examples(1000), deadline=None)
@given(st.sampled_from([POS_TRANSACTIONS.topic, WIFI_SIGHTINGS.topic]), AGES)
@example(POS_TRANSACTIONS.topic, OLD)
@example(POS_TRANSACTIONS.topic, OLD + 1)
@example(WIFI_SIGHTINGS.topic, GREATEST)
@example(WIFI_SIGHTINGS.topic, GREATEST + 1)
@example(WIFI_SIGHTINGS.topic, LEAST - 1)
def test_an_event_waits_for_its_token_exactly_if_it_waits_in_the_speed_layer(topic: str, age_ms: int) -> None:
    rule = WaitingRule.of([WIFI_VISITS], OLDEST, RULES)

    assert rule.waits(topic, 1_000_000, 1_000_000 + age_ms) == waits_in_speed(topic, age_ms)
