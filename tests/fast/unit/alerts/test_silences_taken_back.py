"""A false silence alert is retracted, with the reason why no event had arrived."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.alerting import WorldLog, at_ms, rule_history_of
from views.alerts.alert import AlertCause, alert_statuses
from views.alerts.audit import retracted_silences
from views.alerts.audit_facts import AuditScope, SignOfLife
from views.alerts.rule_validation import parse_rule

MINUTE, HOUR = 60_000, 3_600_000
TEN = at_ms("2026-03-07 10:00")
RULE: dict[str, Any] = {"kind": "silence", "id": "tills", "source": "pos_transactions", "minutes": 20}
HEARD_MS = TEN + 10 * MINUTE
EMITTED_MS = TEN + 20 * MINUTE


def sign(received_ms: int, *, waited: bool = False, misrouted: bool = False) -> SignOfLife:
    return SignOfLife(HEARD_MS, received_ms, waited, misrouted)


@pytest.mark.parametrize(
    ("heard", "cause"),
    [
        ([sign(EMITTED_MS + HOUR)], "late"),
        ([sign(EMITTED_MS + HOUR, waited=True)], "waited"),
        ([sign(HEARD_MS)], "unexplained"),
        ([sign(HEARD_MS, misrouted=True)], "miskeyed"),
        ([sign(HEARD_MS, misrouted=True), sign(EMITTED_MS + HOUR)], "miskeyed"),
    ],
)
def test_a_silence_is_taken_back_with_its_cause(heard: Sequence[SignOfLife], cause: AlertCause) -> None:
    log = WorldLog("pos_transactions", rule_history_of(RULE))
    log.sold(TEN, 10)
    log.pass_until(TEN + HOUR)
    [raised] = log.emitted
    facts: Any = SimpleNamespace(signs=lambda _, wanted: dict.fromkeys(wanted, heard))
    bounds = AuditScope(1, TEN, TEN + 5 * HOUR, 0, 2 * MINUTE, 2 * HOUR, 9 * HOUR)

    found = list(
        retracted_silences({("default", "tills", 1): parse_rule(RULE)}, facts, bounds, alert_statuses([raised]))
    )

    assert [(each.about, each.cause) for each in found] == [(raised.alert_id, cause)]
