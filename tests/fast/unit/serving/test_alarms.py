"""Each alarm stands from the moment that its rule says, and ends with its cause."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from serving_layer.admin.ledger import Ledger
from serving_layer.health.alarms import HealthState, alarms
from serving_layer.health.watched import (
    READERS,
    AlarmEvent,
    EndpointHealth,
    LagMeasurement,
    LateEvents,
    PublicationStats,
)
from serving_layer.store.readers import Position
from serving_layer.store.snapshot import ReadSnapshot
from tests.support import World
from tests.support.process_metrics import WorldWatch
from tests.support.world_api import OPERATOR_KEY, Asking
from views.control.publication import Pointer
from views.core.cut import UNIX_EPOCH

CUT = datetime(2026, 11, 21, 9, tzinfo=UTC)
PUBLISHED = CUT + timedelta(minutes=1)
NOW = CUT + timedelta(hours=1)
SECOND = timedelta(seconds=1)
TTL = timedelta(days=7)


def known(**other: Any) -> HealthState:
    """A healthy deployment, but for what is said."""
    lag = [measured(reader) for reader in READERS]
    snapshot = ReadSnapshot(Pointer(1, CUT, "run", 1, {}), (Position("t", 0, 5, CUT),), ())
    return replace(HealthState(NOW, snapshot, PUBLISHED, {}, [], lag, TTL, [ledger("1")], alerts_looked_at=1), **other)


def ledger(subject: str, **cells: int) -> Ledger:
    """How many cells were corrected for each cause."""
    return Ledger(
        subject, "run", 0, PUBLISHED, {"causes": {cause: {"cells": number} for cause, number in cells.items()}}
    )


def measured(
    reader: str, *, oldest: datetime | None = None, moved: datetime = CUT, at: datetime = NOW
) -> LagMeasurement:
    """One partition, a second after its last record."""
    return LagMeasurement(reader, "t", 0, 5, 9 if oldest else 5, 4 if oldest else 0, oldest, moved, at)


def open_alarm(found: HealthState) -> dict[str, datetime]:
    """Name of each alarm to the time since when it stands."""
    return {alarm.name: alarm.since for alarm in alarms(found)}


def test_a_healthy_deployment_has_no_alarm_however_long_nothing_arrives() -> None:
    assert open_alarm(known()) == {}


def test_alerts_are_behind_when_what_came_half_a_minute_ago_is_not_judged_yet() -> None:
    as_of = NOW - 31 * SECOND

    behind = open_alarm(known(alerts_as_of=as_of))
    in_time = open_alarm(known(alerts_as_of=as_of + SECOND))

    assert behind == {"alerts_behind": as_of + 30 * SECOND}
    assert in_time == {}


def test_nobody_is_late_when_everything_has_just_started() -> None:
    long_ago = NOW - timedelta(hours=8)
    stopped = {
        "lag": [measured(reader, oldest=long_ago, moved=long_ago, at=long_ago) for reader in READERS],
        "alerts_as_of": long_ago,
        "endpoints": [EndpointHealth(long_ago, None, None, long_ago)],
    }

    assert open_alarm(known(**stopped, started_at=NOW - 30 * SECOND)) == {}
    assert open_alarm(known(**stopped, started_at=NOW - 91 * SECOND)) == {
        "alerts_behind": long_ago + 30 * SECOND,
        "dispatcher_stands_still": long_ago,
        **{f"{reader}_stands_still": long_ago for reader in READERS},
    }


def test_alerts_are_not_behind_while_the_first_history_is_loaded() -> None:
    snapshot = ReadSnapshot(Pointer(0, CUT, "", 1, {}), (Position("t", 0, 5, CUT),), ())

    behind = NOW - timedelta(minutes=31)

    assert "alerts_behind" not in open_alarm(known(snapshot=snapshot, alerts_as_of=NOW - timedelta(minutes=29)))
    assert open_alarm(known(snapshot=snapshot, alerts_as_of=behind))["alerts_behind"] == behind + timedelta(minutes=30)


def test_unexplained_alerts_stay_an_alarm_for_a_day_and_name_their_publication() -> None:
    odd = [AlarmEvent(NOW - SECOND, "publication 1", "2 corrections of alerts have no explanation.")]

    [raised] = alarms(known(unexplained_alerts=odd))

    assert (raised.name, raised.since) == ("alerts_unexplained", NOW - SECOND)
    assert raised.meaning == "In `publication 1`: 2 corrections of alerts have no explanation."


def test_events_that_alerts_leave_out_are_reported_by_topic() -> None:
    first = AlarmEvent(NOW - SECOND, "people_counts", "")

    [raised] = alarms(known(left_out=[first, AlarmEvent(NOW, "pos_transactions", "")]))

    assert (raised.name, raised.since) == ("alerts_miskeyed", first.at)
    assert "`people_counts`, `pos_transactions`" in raised.meaning


def test_alerts_wait_for_their_audit_when_an_hour_after_a_publication_they_were_not_looked_at() -> None:
    since = NOW - SECOND
    published = since - timedelta(hours=1)

    waiting = open_alarm(known(published_at=published, alerts_looked_at=0))
    in_time = open_alarm(known(published_at=published + SECOND, alerts_looked_at=0))

    assert waiting == {"alerts_audit_pending": since}
    assert in_time == {}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_stands_still_when_it_has_not_moved_for_a_minute_although_records_wait(reader: str) -> None:
    waits = NOW - 61 * SECOND

    still = open_alarm(known(lag=[measured(reader, oldest=waits)]))
    waiting_shortly = open_alarm(known(lag=[measured(reader, oldest=waits + SECOND)]))
    catching_up = open_alarm(known(lag=[measured(reader, oldest=CUT, moved=NOW - SECOND)]))

    assert (still, waiting_shortly, catching_up) == ({f"{reader}_stands_still": waits}, {}, {})


def test_a_reader_that_no_longer_says_how_far_it_is_stands_still() -> None:
    heard = NOW - 61 * SECOND

    assert open_alarm(known(lag=[measured("archive"), measured("speed", at=heard)])) == {"speed_stands_still": heard}


def test_a_reader_that_never_ran_gives_no_alarm() -> None:
    assert open_alarm(known(lag=[])) == {}


def test_speed_rows_expire_at_half_of_their_life_and_are_expired_a_day_before_its_end() -> None:
    half, end = CUT + TTL / 2, CUT + TTL - timedelta(days=1)

    found = [open_alarm(known(now=at, lag=[])) for at in (half, half + SECOND, end, end + SECOND)]

    assert found == [{}, {"speed_rows_expire": half}, {"speed_rows_expire": half}, {"speed_expired": end}]


def test_before_the_first_publication_rows_expire_by_the_beginning() -> None:
    beginning, begun = ReadSnapshot(Pointer(0, UNIX_EPOCH, "", 1, {}), (), ()), NOW - TTL

    found = [open_alarm(known(snapshot=beginning, published_at=at, lag=[])) for at in (None, NOW, begun)]

    assert found == [{}, {}, {"speed_expired": begun + TTL - timedelta(days=1)}]


def test_a_generation_that_is_read_but_no_longer_written_is_reported_while_another_is_ahead() -> None:
    behind = ReadSnapshot(Pointer(1, CUT, "run", 1, {}), (Position("t", 0, 4, CUT),), ())
    just_now = ReadSnapshot(Pointer(1, CUT, "run", 1, {}), (Position("t", 0, 4, NOW - SECOND),), ())

    assert open_alarm(known(snapshot=behind)) == {"speed_not_taken_over": CUT}
    assert open_alarm(known(snapshot=just_now)) == {}


def test_a_failed_rebuild_for_late_events_is_reported_as_long_as_they_wait() -> None:
    failed = LateEvents(CUT, failed=AlarmEvent(NOW - SECOND, "1", "recompute `a`: Kafka does not answer"))

    [alarm] = alarms(known(late=failed))

    assert (alarm.name, alarm.since) == ("late_events_failed", NOW - SECOND)
    assert alarm.meaning == "Late events started a rebuild, which failed: recompute `a`: Kafka does not answer"
    assert open_alarm(known(late=LateEvents(CUT, left_because="not_small"))) == {}


def test_a_step_of_the_clock_stands_from_when_it_was_noticed_first() -> None:
    steps = [
        AlarmEvent(NOW - 9 * SECOND, "t/0", "a stamp lies behind"),
        AlarmEvent(NOW, "t/1", "a stamp lies far behind"),
    ]

    [alarm] = alarms(known(noticed=steps))

    assert (alarm.name, alarm.since) == ("clock_stepped_back", NOW - 9 * SECOND)
    assert alarm.meaning == "In `t/1` a stamp lies far behind."


def test_what_a_rebuild_found_stands_until_the_next_publication() -> None:
    stats = {"miskeyed": 3, "alarms": ["clock_stepped_back: t on 2026-11-20"]}

    found = alarms(known(stats=stats))

    assert {alarm.name: alarm.since for alarm in found} == {"clock_stepped_back": PUBLISHED, "miskeyed": PUBLISHED}
    assert "t on 2026-11-20" in found[0].meaning


def test_corrections_that_nothing_explains_stand_as_long_as_their_ledger_is_the_newest() -> None:
    [alarm] = alarms(known(ledgers=[ledger("1", waited=7, unexplained=3)]))

    assert (alarm.name, alarm.since) == ("unexplained", PUBLISHED)
    assert alarm.meaning.startswith("Publication `1` corrected 3 cells,")
    assert alarm.do == "galatea corrections 1 --cause unexplained"
    assert open_alarm(known(ledgers=[ledger("1", waited=7)])) == {}


def test_corrections_of_the_publication_before_stand_while_the_newest_ledger_is_awaited() -> None:
    second = ReadSnapshot(Pointer(2, CUT, "run", 1, {}), (), ())

    assert open_alarm(known(snapshot=second, ledgers=[ledger("1", unexplained=3)])) == {"unexplained": PUBLISHED}


def test_corrections_that_nothing_explains_stand_for_a_day_whatever_is_published_after_them() -> None:
    ledgers = [ledger("3", waited=1), ledger("2", unexplained=3), ledger("1", unexplained=5)]
    end = PUBLISHED + timedelta(days=1)

    [alarm] = [each for each in alarms(known(now=end, lag=[], ledgers=ledgers)) if each.name == "unexplained"]

    assert alarm.do == "galatea corrections 2 --cause unexplained"
    assert "unexplained" not in open_alarm(known(now=end + SECOND, lag=[], ledgers=ledgers))


def test_a_ledger_is_awaited_for_an_hour() -> None:
    due = PUBLISHED + timedelta(hours=1)
    missing = [[], [ledger("0")]]

    in_time = [open_alarm(known(now=due, lag=[], ledgers=each)) for each in missing]
    too_late = [open_alarm(known(now=due + SECOND, lag=[], ledgers=each)) for each in missing]

    assert (in_time, too_late) == ([{}, {}], [{"ledger_pending": due}] * 2)


def test_before_the_first_publication_no_ledger_is_awaited() -> None:
    beginning = ReadSnapshot(Pointer(0, UNIX_EPOCH, "", 1, {}), (), ())

    assert open_alarm(known(snapshot=beginning, now=NOW + timedelta(days=1), lag=[], ledgers=[])) == {}


def hook(**other: Any) -> EndpointHealth:
    """One that is well, and was seen a second ago."""
    return EndpointHealth(CUT, None, None, NOW - SECOND)._replace(**other)


def test_an_endpoint_that_fails_for_more_than_an_hour_is_an_alarm_and_one_that_was_just_restarted_is_none() -> None:
    hour = NOW - timedelta(hours=1)
    later = known(endpoints=[hook(), hook(failing_since=hour - SECOND), hook(failing_since=hour)])

    assert open_alarm(later) == {"webhook_retrying": hour - SECOND}
    assert open_alarm(known(endpoints=[hook(failing_since=hour)])) == {}


def test_an_endpoint_that_has_taken_nothing_and_refused_for_more_than_an_hour_is_an_alarm() -> None:
    hour = NOW - timedelta(hours=1)

    assert open_alarm(known(endpoints=[hook(), hook(refusing_since=hour - SECOND)])) == {
        "webhook_refusing": hour - SECOND
    }
    assert open_alarm(known(endpoints=[hook(refusing_since=hour)])) == {}


def test_an_endpoint_that_is_suspended_is_an_alarm_until_it_is_resumed_and_no_other_one() -> None:
    suspended = hook(suspended_at=CUT, failing_since=CUT - timedelta(days=1), seen_at=CUT)

    assert open_alarm(known(endpoints=[suspended, hook()])) == {"webhook_suspended": CUT}


def test_a_dispatcher_that_no_longer_says_how_endpoints_are_doing_stands_still() -> None:
    heard = NOW - 91 * SECOND

    assert open_alarm(known(endpoints=[hook(), hook(seen_at=heard)])) == {"dispatcher_stands_still": heard}
    assert open_alarm(known(endpoints=[hook(seen_at=heard + SECOND)])) == {}
    assert open_alarm(known(endpoints=[hook(created_at=heard, seen_at=None)])) == {"dispatcher_stands_still": heard}
    assert open_alarm(known(endpoints=[])) == {}


def test_alarms_about_endpoints_name_no_tenant_because_every_tenant_reads_them() -> None:
    raised = alarms(known(endpoints=[hook(suspended_at=CUT), hook(failing_since=CUT - timedelta(days=1))]))

    assert [each.meaning.rsplit(": ", 1)[1] for each in raised] == [
        "1. Later alerts wait until these calls succeed.",
        "1.",
    ]


def test_freshness_says_how_far_readers_are_behind_and_which_alarms_stand() -> None:
    world = World()
    world.rebuild(CUT)
    world.pass_time(NOW)
    watch = WorldWatch(world)
    watch.measured = [measured("speed", oldest=NOW - 90 * SECOND)]
    watch.passing["clock_stepped_back"] = [AlarmEvent(CUT - SECOND, "t/0", "settled by the publication")]

    body = Asking(world, watched=watch).body("/v1/freshness", key=OPERATOR_KEY)

    assert (body["published_at"], body["speed_lag_ms"]) == ("2026-11-21T09:00:00Z", 90_000)
    assert body["lag"] == [
        {
            "reader": "speed",
            "topic": "t",
            "partition": 0,
            "position": 5,
            "end": 9,
            "records": 4,
            "seconds": 90.0,
            "measured_at": "2026-11-21T10:00:00Z",
        }
    ]
    assert body["alarms"] == [
        {
            "name": "speed_stands_still",
            "since": "2026-11-21T09:58:30Z",
            "meaning": "The `speed` process makes no progress, with 4 unread records in `t/0`.",
            "do": "galatea status, then logs/speed.log",
        }
    ]


def test_what_was_noticed_while_a_rebuild_computed_is_not_settled_by_its_publication() -> None:
    world = World()
    world.rebuild(CUT)
    world.pass_time(CUT + SECOND)
    watch = WorldWatch(world)
    watch.passing["clock_stepped_back"] = [AlarmEvent(CUT - SECOND, "t/0", "a stamp lies behind")]
    watch.stats = {"read_at": (CUT - 2 * SECOND).isoformat()}

    body = Asking(world, watched=watch).body("/v1/freshness", key=OPERATOR_KEY)

    assert [alarm["name"] for alarm in body["alarms"]] == ["clock_stepped_back"]


def test_freshness_says_since_when_late_events_wait_and_why_they_are_left_to_the_schedule() -> None:
    world = World()
    world.rebuild(CUT)
    world.pass_time(NOW)
    watch = WorldWatch(world)
    before = Asking(world, watched=watch).body("/v1/freshness", key=OPERATOR_KEY)["late_events"]
    watch.passing["late_events"] = [AlarmEvent(CUT - SECOND, "speed", ""), AlarmEvent(CUT, "speed", "")]
    watch.passing["late_events_left"] = [
        AlarmEvent(NOW - SECOND, "1", "not_small"),
        AlarmEvent(NOW, "7", "of another publication"),
    ]

    after = Asking(world, watched=watch).body("/v1/freshness", key=OPERATOR_KEY)["late_events"]

    assert (before, after) == (None, {"since": "2026-11-21T09:00:00Z", "left_because": "not_small"})


def test_a_publication_that_does_not_say_when_it_was_read_counts_from_when_it_was_published() -> None:
    assert PublicationStats(PUBLISHED, {}).read_at == PUBLISHED
