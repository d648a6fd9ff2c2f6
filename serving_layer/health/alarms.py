"""Which alarms stand: pure rules over what is known. An alarm asks an operator to act; it ends when its cause does."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from serving_layer.health import alert_alarms
from serving_layer.health.known import Known, Standing
from serving_layer.health.watched import READERS

STILL = timedelta(seconds=60)
"""A reader that has something to read moves within this time, and measures itself more often."""
LEDGER_TIME = timedelta(hours=1)
"""Within it the ledger of a publication is written, however far speed was behind."""
UNEXPLAINED_TIME = timedelta(days=1)
"""So long it stands that a publication corrected what nothing explains, even if others have followed."""


class Alarm(NamedTuple):
    """`meaning` is one sentence, `do` the operator's next step."""

    name: str
    since: datetime
    meaning: str
    do: str


def clock_stepped_back(known: Known) -> Standing:
    """The archive has noticed it since the last publication, or that publication picked up what it had put too low."""
    do = "compare the clocks of the brokers, then: galatea rebuild"
    if known.noticed:
        last = known.noticed[-1]
        return known.noticed[0].at, f"In `{last.place}` {last.detail}.", do
    told = [alarm.partition(": ") for alarm in known.stats.get("alarms", ())]
    if days := [days for name, _, days in told if name == "clock_stepped_back"]:
        meaning = f"The last publication picked up records stamped below the cut before it: {'; '.join(days)}."
        return known.published_at or known.pointer.cut, meaning, "compare the clocks of the brokers"
    return None


def miskeyed(known: Known) -> Standing:
    """The last publication found deliveries of one event in two partitions."""
    number = known.stats.get("miskeyed", 0)
    if not number:
        return None
    meaning = f"The last publication found {number} repeats in another partition than the first delivery."
    return known.published_at or known.pointer.cut, meaning, "let the sender use the store as the record's key"


def unexplained(known: Known) -> Standing:
    """A ledger has corrections that neither waiting events nor definitions nor keys account for.

    Of the newest, or one that was written lately: several may be written at once, and publications follow quickly.
    """
    for ledger in known.ledgers:
        cells = ledger.cells("unexplained")
        if cells and (ledger is known.ledger or known.now - ledger.written_at <= UNEXPLAINED_TIME):
            told = f"Publication `{ledger.subject}` corrected {cells} cells"
            meaning = f"{told}, and nothing explains why they had been shown otherwise."
            return ledger.written_at, meaning, f"galatea corrections {ledger.subject} --cause unexplained"
    return None


def ledger_pending(known: Known) -> Standing:
    """What the publication that is pointed at corrected is still not known."""
    number = known.pointer.publication
    if not number or known.published_at is None or (known.ledger and known.ledger.subject == str(number)):
        return None
    since = known.published_at + LEDGER_TIME
    if known.now <= since:
        return None
    return since, f"What publication `{number}` corrected is not written down yet.", "galatea rebuild"


def speed_rows_expire(known: Known) -> Standing:
    """Half of the time that speed rows live is over."""
    since = known.covered_until + known.ttl / 2
    if not since < known.now <= known.expires_at:
        return None
    meaning = f"For half of the time that speed rows live nothing was published; answers end {known.expires_at:%F %R}Z."
    return since, meaning, "galatea rebuild"


def speed_expired(known: Known) -> Standing:
    """The clock tells, whether anything arrives or not."""
    if known.now <= known.expires_at:
        return None
    meaning = "The published cut is nearly as old as speed rows live: merged answers are refused, or miss sales."
    return known.expires_at, meaning, "galatea rebuild"


def stands_still(reader: str) -> Callable[[Known], Standing]:
    """The rule for one reader: it has something to read and does not move, or it no longer says how it is."""

    def rule(known: Known) -> Standing:
        do = f"galatea status, then logs/{reader}.log"
        own = [each for each in known.lag if each.reader == reader]
        heard = min((each.measured_at for each in own), default=known.now)
        if known.now - heard > STILL:
            return heard, f"The process `{reader}` no longer says how far it is.", do
        waits = [(max(each.moved_at, each.oldest_at), each) for each in own if each.oldest_at]
        since, longest = min(waits, key=lambda wait: wait[0], default=(known.now, None))
        if longest is None or known.now - since <= STILL:
            return None
        place = f"`{longest.topic}/{longest.partition}`"
        return since, f"The process `{reader}` stands still, and {longest.records} records of {place} wait.", do

    return rule


def speed_not_taken_over(known: Known) -> Standing:
    """Readers are shown a generation that nobody writes any more, while another one has read further."""
    read = {(each.topic, each.partition): each.position for each in known.basis.positions}
    own = [each for each in known.lag if each.reader == "speed"]
    ahead = [each for each in own if each.position > read.get((each.topic, each.partition), each.position)]
    since = known.basis.speed_as_of
    if not ahead or since is None or known.now - since <= STILL:
        return None
    place = f"`{ahead[0].topic}/{ahead[0].partition}`"
    meaning = f"Generation {known.pointer.generation} is read and ends in {place} before where speed is now."
    return since, meaning, "galatea doctor"


RULES: Mapping[str, Callable[[Known], Standing]] = {
    "clock_stepped_back": clock_stepped_back,
    "miskeyed": miskeyed,
    "unexplained": unexplained,
    "ledger_pending": ledger_pending,
    "speed_rows_expire": speed_rows_expire,
    "speed_expired": speed_expired,
    "speed_not_taken_over": speed_not_taken_over,
    "webhook_retrying": alert_alarms.webhook_retrying,
    "webhook_refusing": alert_alarms.webhook_refusing,
    "webhook_suspended": alert_alarms.webhook_suspended,
    "dispatcher_stands_still": alert_alarms.dispatcher_stands_still,
    "alerts_behind": alert_alarms.alerts_behind,
    "alerts_miskeyed": alert_alarms.alerts_miskeyed,
    "alerts_unexplained": alert_alarms.alerts_unexplained,
    "alerts_audit_pending": alert_alarms.alerts_audit_pending,
    **{f"{reader}_stands_still": stands_still(reader) for reader in READERS},
}
"""Every alarm that there is."""


def alarms(known: Known) -> list[Alarm]:
    """Those that stand."""
    found = ((name, rule(known)) for name, rule in RULES.items())
    return [Alarm(name, *standing) for name, standing in found if standing is not None]
