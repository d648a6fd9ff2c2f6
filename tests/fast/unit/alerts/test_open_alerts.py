"""What the log says of an alert is provisional until a publication covers it."""

from tests.fast.unit.alerts.test_audit import GRACE, HOUR, MINUTE, MUCH, TEN, publish, world_of
from tests.support.auditing import TIMINGS, ms
from views.alerts.alert import GRACE_MS, alert_statuses, is_confirmed, is_provisional


def test_a_number_is_provisional_no_more_when_a_publication_covers_its_window() -> None:
    log, world = world_of(MUCH)
    [raised_alert] = log.sold(TEN + 20 * MINUTE, 10)
    [open_alert] = alert_statuses(log.emitted).values()
    publish(log, world, TEN + HOUR + GRACE)

    confirmed = [is_confirmed(open_alert, TEN + HOUR + GRACE - 1), is_confirmed(open_alert, TEN + HOUR + GRACE)]

    assert raised_alert.provisional
    assert confirmed == [False, True]


def test_what_the_processor_retracted_is_final_once_a_publication_covers_that_too() -> None:
    log, _ = world_of(MUCH)
    log.sold(TEN + 20 * MINUTE, 10)
    [corrected] = log.sold(TEN + 30 * MINUTE, 4, amount=-1, late_ms=HOUR)

    [open_alert] = alert_statuses(log.emitted).values()

    assert (corrected.reason, open_alert.is_corrected) == ("corrected", True)
    assert is_provisional(open_alert, corrected.raised_ms)
    assert not is_provisional(open_alert, corrected.raised_ms + 1)


def test_what_a_publication_requested_is_not_provisional_at_any_cut() -> None:
    log, world = world_of(MUCH)
    log.sold(TEN + 20 * MINUTE, 10)
    log.sold(TEN + 30 * MINUTE, 4, amount=-1, late_ms=5 * HOUR)
    log.sold(TEN + HOUR + 30 * MINUTE, 10, late_ms=5 * HOUR)

    requests = publish(log, world, TEN + 8 * HOUR)
    found = alert_statuses(log.emitted, requests).values()

    assert sorted((each.is_withdrawn, each.raised.late) for each in found) == [(False, True), (True, False)]
    assert [is_provisional(each, 0) for each in found] == [False, False]


def test_publications_audit_a_window_once_the_processor_has_evaluated_it() -> None:
    of_the_processor = ms(TIMINGS.grace)

    of_publications = GRACE_MS

    assert of_publications == of_the_processor
