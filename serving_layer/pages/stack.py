"""`/stack`: the status. Which alarms are active, whether all readers are running, and how far behind they are."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from fastapi import Response

from serving_layer.health.freshness import FreshnessReport
from serving_layer.health.watched import READERS, LagMeasurement
from serving_layer.pages.figures import duration, rounded
from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import gettext_noop, ngettext
from serving_layer.pages.routing import ReaderVisit, page_router

router = page_router()
SILENT_AFTER = timedelta(seconds=60)
"""A running reader measures itself more often."""
BEHIND_AFTER = timedelta(seconds=30)
"""Some records have always just arrived: a reader is behind only if one waits longer than its usual round."""
ROLES = {"archive": gettext_noop("stores every event"), "speed": gettext_noop("counts live numbers")}
RUNNING, BEHIND, SILENT, NEVER_SEEN = (
    gettext_noop("running"),
    gettext_noop("behind"),
    gettext_noop("silent"),
    gettext_noop("never seen"),
)
START = gettext_noop("Run `galatea status` on the machine; `galatea up` starts what is down.")
WAIT = gettext_noop("It catches up by itself. If it does not within ten minutes, run `galatea doctor`.")


LEFT_BECAUSE = {
    "not_small": gettext_noop("They wait for the schedule: a rebuild would not be small."),
    "changed_definitions": gettext_noop("They wait for the schedule: views were changed."),
    "rolled_back": gettext_noop("They wait for the schedule: a rebuild would undo the rollback."),
}


class Component(NamedTuple):
    """A process, judged by what it last wrote. `do`: what an operator does about its state; empty if nothing."""

    name: str
    role: str
    state: str
    detail: str
    do: str = ""


class TopicBacklog(NamedTuple):
    """How many records of a topic a reader has not read, and for how many seconds the oldest of them has waited."""

    records: int
    seconds: float


@router.get("/stack")
async def get_stack(visit: ReaderVisit) -> Response:
    """What the processes report. How many records they count is of all tenants, and for operators."""
    known = await visit.freshness.read()
    fresh = await visit.freshness.seen_by(visit.visitor.caller, known)
    found = components(known)
    if not visit.visitor.is_operator:
        found = [each._replace(detail="", do="") for each in found]
    lag = sorted(fresh.lag, key=lambda each: (each.reader, each.topic, each.partition))
    values = {
        "components": found,
        "lag": lag,
        "topics": backlog_by_topic(lag),
        "has_backlog": any(each.records for each in lag),
        "readers": READERS,
        "late_events": late_events(fresh),
    }
    return visit.page("stack.html", fresh, values)


def late_events(fresh: FreshnessReport) -> str:
    """Since when events wait for the next publication, and why they are left to the schedule, if they are."""
    if fresh.late is None:
        return _("None: every event is counted.")
    waits = _("Some have waited for the next publication for {time}.").format(
        time=duration((fresh.at - fresh.late.since).total_seconds() * 1000)
    )
    why = LEFT_BECAUSE.get(fresh.late.left_because or "")
    return f"{waits} {_(why)}" if why else waits


def backlog_by_topic(lag: Sequence[LagMeasurement]) -> Sequence[tuple[str, Sequence[TopicBacklog | None]]]:
    """Each topic with its backlog for each of READERS; None where a reader has not measured itself."""
    rows = []
    for topic in sorted({each.topic for each in lag}):
        measured = [[each for each in lag if (each.topic, each.reader) == (topic, reader)] for reader in READERS]
        rows.append((topic, [_backlog(each) if each else None for each in measured]))
    return rows


def _backlog(measured: Sequence[LagMeasurement]) -> TopicBacklog:
    return TopicBacklog(sum(each.records for each in measured), max(each.seconds for each in measured))


def components(fresh: FreshnessReport) -> Sequence[Component]:
    """The readers by their measurements; Cassandra and the API are running, or there would be no page."""
    readers = [_reader(name, [each for each in fresh.lag if each.reader == name], fresh) for name in READERS]
    answered = _("answered just now")
    return [
        *readers,
        Component("cassandra", _("stores the numbers"), "running", answered),
        Component("api", _("answers queries and serves this page"), "running", answered),
    ]


def _reader(name: str, measured: Sequence[LagMeasurement], fresh: FreshnessReport) -> Component:
    role = _(ROLES[name])
    if not measured:
        return Component(name, role, NEVER_SEEN, _("has not reported yet"), _(START))
    age = fresh.at - max(each.measured_at for each in measured)
    backlog = _backlog(measured)
    detail = _("has read everything")
    if backlog.records:
        one, many = (
            "{number} record to read, the oldest waits for {time}",
            "{number} records to read, the oldest waits for {time}",
        )
        detail = ngettext(one, many, backlog.records).format(
            number=rounded(backlog.records, 0), time=duration(round(backlog.seconds) * 1000)
        )
    if age > SILENT_AFTER:
        ago = _("last report {time} ago").format(time=duration(age.total_seconds() * 1000))
        return Component(name, role, SILENT, f"{ago}; {detail}", _(START))
    if backlog.seconds > BEHIND_AFTER.total_seconds():
        return Component(name, role, BEHIND, detail, _(WAIT))
    return Component(name, role, RUNNING, detail)
