"""`/sensors`: the health of registered sensors, those with problems first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

import msgspec
from fastapi import Query, Response
from pydantic import BaseModel, Field

from serving_layer.api.parameters import write_id
from serving_layer.pages import language
from serving_layer.pages.cells import source_name
from serving_layer.pages.figures import SIGNS, age, instant, rounded
from serving_layer.pages.language import UNKNOWN, gettext_noop
from serving_layer.pages.language import gettext as _
from serving_layer.pages.pickers import names_of
from serving_layer.pages.routing import ReaderVisit, page_router
from serving_layer.query.resolve import Hours
from serving_layer.query.sensor_health import STORES_PER_PAGE, SensorsRequest
from serving_layer.query.stores import PageRequest, read_token
from serving_layer.responses.sensors import SensorHealth, SensorState, SensorStore
from views.core.view import WINDOW

router = page_router()
PATH = "/sensors"
Shown = Literal["", "problems", "silent", "never", "gaps", "unknown", "ok"]
PROBLEMS: tuple[SensorState, ...] = ("silent", "never", "gaps")
ORDER = (*PROBLEMS, "unknown", "ok")
STATE_TEXTS = {
    "silent": gettext_noop("silent"),
    "never": gettext_noop("no signal"),
    "gaps": gettext_noop("gaps"),
    "unknown": gettext_noop("not known"),
    "ok": gettext_noop("ok"),
}
MEASURED_TEXTS = {
    "other_lines": gettext_noop("measured by all door lines that belong to no other sensor"),
    None: gettext_noop("nothing shows whether it is alive"),
}
"""What a visitor would not expect: heartbeats are counted by sensor, and a counter by its door line."""
LOW_PERCENT = 95
BAR_WIDTH, BAR_HEIGHT, BAR_GAP = 10, 24, 2
"""Of a day in the chart of coverage."""


class SensorsPageFilter(BaseModel):
    """The query string. An empty field does not filter."""

    store: str = Field("", max_length=256)
    state: Shown = ""
    days: Literal["7", "14", "28"] = "7"
    hours: Hours = "all"
    after: str = Field("", max_length=2048)

    def path(self, **changes: str) -> str:
        """The address of this page, with some filters changed."""
        usual = {"store": "", "state": "", "days": "7", "hours": "all", "after": ""}
        filters = {name: getattr(self, name) for name in usual if name != "after"} | changes
        chosen = {name: value for name, value in filters.items() if value != usual[name]}
        return f"{PATH}?{urlencode(chosen)}" if chosen else PATH

    @property
    def states(self) -> tuple[SensorState, ...]:
        """The states that are shown; none: all."""
        if self.state == "problems":
            return PROBLEMS
        return (self.state,) if self.state else ()

    def request(self, *, partial: bool) -> SensorsRequest:
        """As the query service takes it. All states are read, so that the page can say how many there are."""
        return SensorsRequest(
            tuple([self.store] if self.store else []),
            f"-{int(self.days) - 1}d",
            hours=self.hours,
            partial=partial,
            page=PageRequest(STORES_PER_PAGE, read_token(self.after) if self.after else None),
        )

    @property
    def rest_path(self) -> str:
        """The address of the same sensors in REST."""
        arguments = [("store", write_id(self.store))] if self.store else []
        arguments += [("from", f"-{int(self.days) - 1}d"), *(("state", state) for state in self.states)]
        arguments += [("hours", self.hours)] if self.hours != "all" else []
        arguments += [("after", self.after)] if self.after else []
        return f"/v1/sensors?{urlencode(arguments)}"


class DayBar(NamedTuple):
    """A day in the chart of coverage. `height` of its bar: None where coverage is not known."""

    x: int
    y: float
    height: float | None
    is_low: bool


@dataclass(frozen=True)
class SensorRow:
    """A sensor as the page shows it. `now`: what ages are counted from."""

    health: SensorHealth
    store: SensorStore
    now: datetime

    @property
    def store_name(self) -> str:
        """The name of the store, or its id."""
        return self.store.name or self.store.store

    @property
    def state(self) -> str:
        """In words."""
        return _(STATE_TEXTS[self.health.state])

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        """The window of its last signal; None if there is none."""
        start = instant(self.health.last_signal)
        return (start, start + WINDOW) if start else None

    @property
    def signal_age(self) -> str:
        """How long ago that window ended."""
        if self.window is None:
            return _("none")
        passed = self.now - self.window[1]
        if passed < timedelta(minutes=1):
            return _("just now")
        minutes = int(passed.total_seconds()) // 60
        since = f"{minutes} min" if minutes < 60 else age(passed)  # noqa: PLR2004 - minutes of an hour
        return _("{time} ago").format(time=since)

    @property
    def coverage(self) -> str:
        """In percent."""
        value = self.health.coverage_percent
        return UNKNOWN if value is None else f"{rounded(value, 1)} %"

    @property
    def coverage_width(self) -> float:
        """The width of the bar of coverage, in percent."""
        return round(min(self.health.coverage_percent or 0, 100), 1)

    @property
    def is_low(self) -> bool:
        """Whether coverage is too low for zeroes to be trusted."""
        return _is_low(self.health.coverage_percent)

    @property
    def bars(self) -> Sequence[DayBar]:
        """Coverage by day, oldest first."""
        return [_bar(number, day.coverage_percent) for number, day in enumerate(self.health.days)]

    @property
    def bars_width(self) -> int:
        """The width of all bars together, in pixels."""
        return len(self.health.days) * (BAR_WIDTH + BAR_GAP) - BAR_GAP

    @property
    def by_day(self) -> str:
        """Coverage by day, in words."""
        days = ((language.day(day.day, "E"), day.coverage_percent) for day in self.health.days)
        return ", ".join(
            f"{day} {_('not known') if value is None else f'{rounded(value, 0)} %'}" for day, value in days
        )

    @property
    def drift(self) -> str:
        """In percent; empty if the sensor counts nobody in and out."""
        return _signed(self.health.drift_percent)

    @property
    def is_drift_high(self) -> bool:
        """Whether the doors of the store together drift too far."""
        return bool(self.store.drift_high) and self.health.drift_percent is not msgspec.UNSET

    @property
    def notes(self) -> Sequence[str]:
        """What to know about its numbers."""
        found = [_(MEASURED_TEXTS[self.health.measured_by])] if self.health.measured_by in MEASURED_TEXTS else []
        found += [_("measured together with other sensors")] if self.health.shared else []
        first = self.health.days[0].day if self.health.days else None
        start, end = self.health.start, self.health.end
        if start and first and start >= first:
            found.append(_("since {day}").format(day=language.day(start, "yMMMd")))
        return [*found, _("until {day}").format(day=language.day(end, "yMMMd"))] if end else found


def _bar(number: int, percent: float | None) -> DayBar:
    height = None if percent is None else round(max(min(percent, 100) / 100 * BAR_HEIGHT, 1), 1)
    return DayBar(number * (BAR_WIDTH + BAR_GAP), BAR_HEIGHT - (height or 0), height, _is_low(percent))


def _is_low(percent: float | None) -> bool:
    return percent is not None and percent < LOW_PERCENT


def _signed(percent: float | msgspec.UnsetType | None) -> str:
    if percent is msgspec.UNSET:
        return ""
    return UNKNOWN if percent is None else f"{SIGNS['down' if percent < 0 else 'up']}{rounded(abs(percent), 1)} %"


@router.get(PATH)
async def get_sensors(visit: ReaderVisit, query: Annotated[SensorsPageFilter, Query()]) -> Response:
    """Sensors with problems first, of a page of stores."""
    fresh = await visit.fresh()
    if query.store:
        await visit.queries.store(query.store)
    is_partial = bool(fresh.snapshot.missing)
    found = await visit.queries.sensors(query.request(partial=is_partial))
    stores = {store.store: store for store in found.stores}
    rows = [SensorRow(each, stores[each.store], fresh.at) for each in found.sensors]
    counts = {state: sum(row.health.state == state for row in rows) for state in ORDER}
    values = {
        "query": query,
        "states": [(state, _(text)) for state, text in STATE_TEXTS.items()],
        "rows": sorted((row for row in rows if not query.states or row.health.state in query.states), key=_order),
        "counts": [(state, number, _(STATE_TEXTS[state])) for state, number in counts.items() if number],
        "total": len(rows),
        "stores": stores,
        "without": [store for store in found.stores if not store.sensors],
        "following": found.next,
        "is_partial": is_partial,
        "names": names_of(await visit.queries.stores()),
        "source_name": source_name,
        "bar": {"width": BAR_WIDTH, "height": BAR_HEIGHT},
    }
    return visit.page("sensors.html", fresh, values)


def _order(row: SensorRow) -> tuple[int, float, str, str]:
    health = row.health
    coverage = 0.0 if health.coverage_percent is None else health.coverage_percent
    return ORDER.index(health.state), coverage, row.store_name, health.sensor
