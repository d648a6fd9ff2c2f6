"""Alarms: pure rules over the known state. An alarm asks an operator to act, and ends when its cause does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from serving_layer.admin.ledger import Ledger
from serving_layer.health.watched import READERS, AlarmEvent, EndpointHealth, LagMeasurement, LateEvents
from serving_layer.store.snapshot import ReadSnapshot, expires_at
from views.control.publication import Pointer
from views.core.cut import UNIX_EPOCH

AlarmFinding = tuple[datetime, str, str] | None
"""Since when, what it means and what to do; None if the alarm is not active."""


@dataclass(frozen=True)
class HealthState:
    """What the alarm rules know.

    Attributes:
        now: the current time.
        snapshot: what queries read.
        published_at: of the current publication.
        stats: of the current publication.
        noticed: backward steps of clocks since then.
        lag: the last measurements of all readers.
        ttl: how long speed rows live.
        ledgers: of the last publications, newest first.
        alerts_as_of: up to when alerts are listed; None if there never were any.
        endpoints: all webhook endpoints.
        unexplained_alerts: unexplained corrections of alerts in the last day.
        alerts_looked_at: the publication that alerts were compared with last; 0 for none.
        left_out: events that alerts left out in the last hour.
        started_at: when this process has started, and perhaps all others; nobody is late before that.
        late: events that wait for the next publication; None if none do.
    """

    now: datetime
    snapshot: ReadSnapshot
    published_at: datetime | None
    stats: Mapping[str, Any]
    noticed: Sequence[AlarmEvent]
    lag: Sequence[LagMeasurement]
    ttl: timedelta
    ledgers: Sequence[Ledger] = ()
    alerts_as_of: datetime | None = None
    endpoints: Sequence[EndpointHealth] = ()
    unexplained_alerts: Sequence[AlarmEvent] = ()
    alerts_looked_at: int = 0
    left_out: Sequence[AlarmEvent] = ()
    started_at: datetime = UNIX_EPOCH
    late: LateEvents | None = None

    def has_passed(self, time: timedelta, at: datetime) -> bool:
        """Whether this time has passed since then, and since this process has started."""
        return self.now - max(at, self.started_at) > time

    @property
    def ledger(self) -> Ledger | None:
        """The newest ledger; None if there is none."""
        return self.ledgers[0] if self.ledgers else None

    @property
    def pointer(self) -> Pointer:
        """The current publication."""
        return self.snapshot.pointer

    @property
    def covered_until(self) -> datetime:
        """Batch covers what was received before; nothing before the first publication."""
        return self.pointer.cut if self.pointer.publication else self.published_at or self.now

    @property
    def expires_at(self) -> datetime:
        """From when on merged answers are rejected."""
        return expires_at(self.covered_until, self.ttl)


HOOK_STILL = timedelta(seconds=90)
"""The dispatcher reports each webhook at least every thirty seconds."""
HOOK_FAILS = timedelta(hours=1)
"""Long enough for a restart of the receiver."""
ALERTS_STILL = timedelta(seconds=30)
"""Alerts are normally about a second behind."""
LOADING_TIME = timedelta(minutes=30)
"""How long the first history may take, which is loaded at once."""
LEFT_OUT_TIME = timedelta(hours=1)
"""The alarm ends this long after the last report; reports come at least twice within it."""
AUDIT_TIME = timedelta(hours=1)
"""Alerts are compared with a publication within this time, however busy rebuilds are."""


def webhook_retrying(known: HealthState) -> AlarmFinding:
    """A webhook does not respond, or not successfully."""
    failing = [each.failing_since for each in known.endpoints if each.failing_since and not each.suspended_at]
    long = [since for since in failing if known.now - since > HOOK_FAILS]
    if not long:
        return None
    meaning = (
        f"Webhook endpoints failing for more than an hour: {len(long)}. Later alerts wait until these calls succeed."
    )
    return min(long), meaning, "galatea webhooks list; to see what blocks it: galatea webhooks show ID"


def webhook_refusing(known: HealthState) -> AlarmFinding:
    """A webhook rejects every call: each alert becomes a dead letter."""
    refusing = [each.refusing_since for each in known.endpoints if each.refusing_since and not each.suspended_at]
    long = [since for since in refusing if known.now - since > HOOK_FAILS]
    if not long:
        return None
    meaning = f"Webhook endpoints that have rejected every call for more than an hour: {len(long)}."
    return (
        min(long),
        meaning,
        "galatea webhooks list; to see why: galatea dead-letters list --reason alert_delivery_rejected",
    )


def webhook_suspended(known: HealthState) -> AlarmFinding:
    """A webhook is suspended and no longer called."""
    suspended = [each.suspended_at for each in known.endpoints if each.suspended_at]
    if not suspended:
        return None
    meaning = f"Webhook endpoints that failed for too long and are no longer called: {len(suspended)}."
    return min(suspended), meaning, "galatea webhooks list; once it responds again: galatea webhooks resume ID"


def dispatcher_stands_still(known: HealthState) -> AlarmFinding:
    """The dispatcher no longer reports the webhooks."""
    heard = [each.seen_at or each.created_at for each in known.endpoints if not each.suspended_at]
    still = [at for at in heard if known.has_passed(HOOK_STILL, at)]
    if not still:
        return None
    meaning = "The `dispatcher` process no longer reports the state of webhook endpoints."
    return min(still), meaning, "galatea status, then logs/dispatcher.log"


def alerts_behind(known: HealthState) -> AlarmFinding:
    """Events are not evaluated, or alerts not listed. What is loaded before the first publication takes longer."""
    time = ALERTS_STILL if known.pointer.publication else LOADING_TIME
    if known.alerts_as_of is None or not known.has_passed(time, known.alerts_as_of):
        return None
    meaning = "Alert rules have not evaluated the events received since then, or their alerts are not listed yet."
    return known.alerts_as_of + time, meaning, "galatea status, then logs/alerts.log"


def alerts_miskeyed(known: HealthState) -> AlarmFinding:
    """Sales of a store do not reach its rules, which can miss alerts or raise wrong ones."""
    if not known.left_out:
        return None
    places = ", ".join(f"`{place}`" for place in sorted({each.place for each in known.left_out}))
    meaning = f"Alerts ignore events of {places} that are in the wrong partition for their store."
    return known.left_out[0].at, meaning, "make the sender use the store as the record key, hashed with murmur2"


def alerts_unexplained(known: HealthState) -> AlarmFinding:
    """Alerts differ from what a publication says about the same events."""
    if not known.unexplained_alerts:
        return None
    last = known.unexplained_alerts[-1]
    meaning = f"In `{last.place}`: {last.detail}"
    return known.unexplained_alerts[0].at, meaning, "galatea alerts list --json, cause `unexplained`; galatea verify"


def alerts_audit_pending(known: HealthState) -> AlarmFinding:
    """Alerts were not compared with the current publication in time, so wrong ones remain."""
    number = known.pointer.publication
    if not number or known.published_at is None or known.alerts_looked_at == number:
        return None
    since = known.published_at + AUDIT_TIME
    if known.now <= since:
        return None
    return (
        since,
        f"Alerts have not been compared with publication `{number}` yet.",
        "galatea rebuild, then logs/alerts.log",
    )


STILL = timedelta(seconds=60)
"""A reader with unread records makes progress within this time, and reports its lag more often."""
LEDGER_TIME = timedelta(hours=1)
"""The ledger of a publication is written within this time, however far the speed layer was behind."""
UNEXPLAINED_TIME = timedelta(days=1)
"""How long the alarm for an unexplained correction stays active, even if other publications follow."""


class Alarm(NamedTuple):
    """An active alarm. `meaning` is one sentence, `do` the operator's next step."""

    name: str
    since: datetime
    meaning: str
    do: str


def clock_stepped_back(known: HealthState) -> AlarmFinding:
    """The archive observed it since the last publication, or that publication included records stamped too early."""
    do = "compare the clocks of the brokers, then: galatea rebuild"
    if known.noticed:
        last = known.noticed[-1]
        return known.noticed[0].at, f"In `{last.place}` {last.detail}.", do
    parts = [alarm.partition(": ") for alarm in known.stats.get("alarms", ())]
    if days := [days for name, _, days in parts if name == "clock_stepped_back"]:
        meaning = f"The last publication included records with timestamps before the previous cut: {'; '.join(days)}."
        return known.published_at or known.pointer.cut, meaning, "compare the clocks of the brokers"
    return None


def miskeyed(known: HealthState) -> AlarmFinding:
    """The last publication found deliveries of one event in two partitions."""
    number = known.stats.get("miskeyed", 0)
    if not number:
        return None
    meaning = f"The last publication found {number} repeated deliveries in a different partition from the first."
    return known.published_at or known.pointer.cut, meaning, "make the sender use the store as the record key"


def unexplained(known: HealthState) -> AlarmFinding:
    """A ledger has corrections that neither waiting events nor definitions nor keys explain.

    This covers the newest ledger and recent ones, as several can be written within a short time.
    """
    for ledger in known.ledgers:
        cells = ledger.cells("unexplained")
        if cells and (ledger is known.ledger or known.now - ledger.written_at <= UNEXPLAINED_TIME):
            parts = f"Publication `{ledger.subject}` corrected {cells} cells"
            meaning = f"{parts}, and nothing explains why they showed different values before."
            return ledger.written_at, meaning, f"galatea corrections {ledger.subject} --cause unexplained"
    return None


def ledger_pending(known: HealthState) -> AlarmFinding:
    """The ledger of the current publication is not written yet."""
    number = known.pointer.publication
    if not number or known.published_at is None or (known.ledger and known.ledger.subject == str(number)):
        return None
    since = known.published_at + LEDGER_TIME
    if known.now <= since:
        return None
    return since, f"The corrections of publication `{number}` have not been recorded yet.", "galatea rebuild"


def speed_rows_expire(known: HealthState) -> AlarmFinding:
    """Half of the lifetime of speed rows has passed since the cut."""
    since = known.covered_until + known.ttl / 2
    if not since < known.now <= known.expires_at:
        return None
    meaning = f"Nothing was published for half the lifetime of speed rows; answers end at {known.expires_at:%F %R}Z."
    return since, meaning, "galatea rebuild"


def speed_expired(known: HealthState) -> AlarmFinding:
    """Speed rows after the cut have begun to expire, whether or not events arrive."""
    if known.now <= known.expires_at:
        return None
    meaning = (
        "The published cut is nearly as old as the lifetime of speed rows: merged answers are rejected or miss sales."
    )
    return known.expires_at, meaning, "galatea rebuild"


def stands_still(reader: str) -> Callable[[HealthState], AlarmFinding]:
    """The rule for one reader: it has unread records and makes no progress, or it no longer reports."""

    def rule(known: HealthState) -> AlarmFinding:
        do = f"galatea status, then logs/{reader}.log"
        own = [each for each in known.lag if each.reader == reader]
        heard = min((each.measured_at for each in own), default=known.now)
        if known.has_passed(STILL, heard):
            return heard, f"The `{reader}` process no longer reports its progress.", do
        waits = [(max(each.moved_at, each.oldest_at), each) for each in own if each.oldest_at]
        since, longest = min(waits, key=lambda wait: wait[0], default=(known.now, None))
        if longest is None or not known.has_passed(STILL, since):
            return None
        place = f"`{longest.topic}/{longest.partition}`"
        return since, f"The `{reader}` process makes no progress, with {longest.records} unread records in {place}.", do

    return rule


def speed_not_taken_over(known: HealthState) -> AlarmFinding:
    """Queries read a generation that is no longer written, while another one has read further."""
    read = {(each.topic, each.partition): each.position for each in known.snapshot.positions}
    own = [each for each in known.lag if each.reader == "speed"]
    ahead = [each for each in own if each.position > read.get((each.topic, each.partition), each.position)]
    since = known.snapshot.speed_as_of
    if not ahead or since is None or not known.has_passed(STILL, since):
        return None
    place = f"`{ahead[0].topic}/{ahead[0].partition}`"
    meaning = f"Queries read generation {known.pointer.generation}, which is behind the speed layer in {place}."
    return since, meaning, "galatea doctor"


def late_events_failed(known: HealthState) -> AlarmFinding:
    """A rebuild that late events started has failed, and they still wait."""
    if known.late is None or known.late.failed is None:
        return None
    meaning = f"Late events started a rebuild, which failed: {known.late.failed.detail}"
    return known.late.failed.at, meaning, "galatea rebuild, or wait: it is tried again by itself"


RULES: Mapping[str, Callable[[HealthState], AlarmFinding]] = {
    "clock_stepped_back": clock_stepped_back,
    "miskeyed": miskeyed,
    "unexplained": unexplained,
    "ledger_pending": ledger_pending,
    "speed_rows_expire": speed_rows_expire,
    "speed_expired": speed_expired,
    "speed_not_taken_over": speed_not_taken_over,
    "late_events_failed": late_events_failed,
    "webhook_retrying": webhook_retrying,
    "webhook_refusing": webhook_refusing,
    "webhook_suspended": webhook_suspended,
    "dispatcher_stands_still": dispatcher_stands_still,
    "alerts_behind": alerts_behind,
    "alerts_miskeyed": alerts_miskeyed,
    "alerts_unexplained": alerts_unexplained,
    "alerts_audit_pending": alerts_audit_pending,
    **{f"{reader}_stands_still": stands_still(reader) for reader in READERS},
}
"""All alarms by name."""


def alarms(known: HealthState) -> list[Alarm]:
    """The active alarms."""
    found = ((name, rule(known)) for name, rule in RULES.items())
    return [Alarm(name, *details) for name, details in found if details is not None]
