"""What the page of a store asks about one day. Ids are those of the metrics; nothing is reckoned here.

What a flag of a number says, in words.

A part of a page: a question, its answer or why there is none, and how it is called.

`/stores/{store}`: one store on one day, against the same weekday of the week before.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import Query, Response

from master_dataset.registry.stores import Store
from serving_layer.alerts.history import AlertsRequest
from serving_layer.pages.business_day import BusinessDay, opening
from serving_layer.pages.charts import heat_map
from serving_layer.pages.figures import Figure, figure, read_at
from serving_layer.pages.queries import PageAnswers, Question, Refused, Told
from serving_layer.pages.routing import ReaderVisit, Visit, routes
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.evaluate import NO_SOURCE
from serving_layer.query.timeline import Grain

TILES = (
    "net_sales",
    "traffic_in",
    "conversion_rate",
    "capture_rate",
    "avg_transaction_value",
    "avg_items_per_transaction",
)
CHARTS = {"net_sales": "Sales", "traffic_in": "Traffic", "conversion_rate": "Conversion", "capture_rate": "Capture"}
"""Each with its title."""
QUEUE = ("avg_queue_wait", "p90_queue_wait", "max_queue_length", "queue_served", "queue_abandonment_rate")
NAMES = {"avg_transaction_value": "Average receipt", "avg_items_per_transaction": "Items per receipt"}
"""For whoever does not know the usual letters (ATV, UPT)."""
COMPARE = "previous_week"
WAITS, STAYS, PRODUCTIVITY, CONTEXT = "avg_queue_wait", "stays", "productivity", "context"
WEEKS = 4


@dataclass(frozen=True)
class StoreQuestions:
    """`partial`: speed is missing, so batch alone is asked."""

    store: Store
    day: BusinessDay
    partial: bool

    def all(self) -> Mapping[str, Question]:
        """By the name of the part of the page.

        What is compared ends with the last quarter of an hour that is over, on both sides. What is live does not, so
        each number is asked for twice: as it is now, `now:`, and how it stands to the week before, `change:`.
        """
        hourly = (*CHARTS, WAITS)
        found = {f"now:{metric}": self._of(metric, "total") for metric in (*TILES, *QUEUE)}
        found |= {f"change:{metric}": replace(each, compare=COMPARE) for metric, each in self._totals()}
        found |= {f"hour:{metric}": self._of(metric, "hour") for metric in hourly}
        found |= {f"before:{metric}": self._of(metric, "hour", weeks_back=1) for metric in hourly}
        weeks = replace(self._of("productivity", "hour_of_week"), start=self.day.back(7 * WEEKS), end=self.day.start)
        context = replace(self._of("net_sales", "hour"), context="holidays,weather")
        return found | {STAYS: self._of("visits_by_stay_time", "total"), PRODUCTIVITY: weeks, CONTEXT: context}

    def _totals(self) -> Iterator[tuple[str, Question]]:
        return ((metric, self._of(metric, "total")) for metric in (*TILES, *QUEUE))

    def _of(self, metric: str, grain: Grain, *, weeks_back: int = 0) -> Question:
        start, end = self.day.back(7 * weeks_back), self.day.back(7 * weeks_back - 1)
        return Question(metric, (self.store.id,), start, end, grain, partial=self.partial)


WORDS = {
    "above_100": "more than 100 %: the two sides do not count the same people",
    "below_zero": "below zero: the target was passed",
    "device_based": "counted by phones, not by people",
    "device_days": "over several days a device counts once a day",
    "drift_high": "more people went in than out, or the other way round",
    "estimate": "an estimate",
    "low_coverage": "sensors were alive for less than 95 % of the time",
    "masked": "sensors were alive for less than half of the time, so nothing is shown",
    "no_counterpart": "nothing to compare with",
    "no_net_units": "no more was sold than was returned",
    "no_opening_hours": "the store has no opening hours",
    "no_source": "no sensor of this store feeds it",
    "no_staff_split": "staff and visitors are not told apart",
    "open_only": "of opening hours alone",
    "planned_only": "planned hours are known, worked ones are not",
    "small_sample": "few people are behind it",
}

DESCRIBING = frozenset(
    {"device_based", "device_days", "drift_high", "estimate", "low_coverage", "open_only", "small_sample"}
)
"""They say what a number is, not why there is none."""


def in_words(flag: str) -> str:
    """The sentence of a flag; a flag without one stands for itself."""
    return WORDS.get(flag, flag.replace("_", " "))


Point = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """`name`, `unit`: of the metric. `code`: the currency that money is in. `until`: what begins later has not been."""

    question: Question
    answer: Told | Refused
    name: str
    unit: str
    code: str
    until: datetime

    @property
    def refused(self) -> Refused | None:
        """Why there is nothing to show."""
        return self.answer if isinstance(self.answer, Refused) else None

    @property
    def series(self) -> Mapping[str, Any] | None:
        """Pages ask for one store at a time, unsplit."""
        return None if isinstance(self.answer, Refused) else next(iter(self.answer["series"]), None)

    @property
    def points(self) -> Sequence[Point]:
        """Those that have begun."""
        found: Sequence[Point] = self.series["points"] if self.series else ()
        return [point for point in found if _is_begun(point, self.until)]

    @property
    def last(self) -> Point | None:
        """Of a total the only one."""
        return self.points[-1] if self.points else None

    @property
    def has_source(self) -> bool:
        """Whether any sensor of the store feeds it."""
        return NO_SOURCE not in self._flags

    @property
    def flags(self) -> Sequence[str]:
        """In words, of the answer and of its last point."""
        found = self._flags if self.has_source else (NO_SOURCE,)  # how something is counted that is not, nobody asks
        return [in_words(flag) for flag in found if flag != "low_coverage" or "masked" not in found]

    @property
    def reasons(self) -> Sequence[str]:
        """Why there is no number, in words; none if nobody said."""
        return [in_words(flag) for flag in self._flags if flag not in DESCRIBING]

    @property
    def _flags(self) -> Collection[str]:
        whole = () if isinstance(self.answer, Refused) else self.answer.get("flags", ())
        return dict.fromkeys([*whole, *(self.last or {}).get("flags", ())])

    @property
    def end(self) -> Mapping[str, Any]:
        """The last point, whatever is known of it; empty if there is none."""
        return self.last or {}

    def by_clock(self, zone: str) -> Mapping[str, Any]:
        """The values of all points, also of those to come, by what the clock shows when they begin."""
        found = self.series["points"] if self.series else ()
        return {clock: point["value"] for point in found if (clock := _clock(point, zone))}

    def figure(self, value: Any) -> Figure:  # noqa: ANN401 - a number of JSON, or None
        """A value of this metric."""
        return figure(value, self.unit, self.code)

    @property
    def highest(self) -> Point | None:
        """The point with the greatest value."""
        known = [point for point in self.points if point["value"] is not None]
        return max(known, key=lambda point: float(point["value"]), default=None)

    @property
    def begins(self) -> datetime | None:
        """When the first point begins that says anything."""
        return next((read_at(point["start"]) for point in self.points if point["value"]), None)

    @property
    def is_empty(self) -> bool:
        """Whether no point says anything."""
        return not any(point["value"] for point in self.points)


def _is_begun(point: Point, until: datetime) -> bool:
    start = read_at(point["start"])
    return start is None or start <= until


def _clock(point: Point, zone: str) -> str:
    at = read_at(point["start"])
    return at.astimezone(ZoneInfo(zone)).strftime("%H:%M") if at else ""


router = routes()
HOUR = timedelta(hours=1)
MOST_ALERTS = 20
"""That are counted."""


@router.get("/stores/{id_:path}")
async def get_store(visit: ReaderVisit, id_: str, day: Annotated[date | None, Query()] = None) -> Response:
    """Its numbers, charts and what stands beside them."""
    store = await visit.answers.store(id_)
    fresh = await visit.fresh()
    of = BusinessDay.of(store, fresh.at, day)
    parts = await _parts(visit.answers, StoreQuestions(store, of, bool(fresh.basis.missing)), fresh.at)
    said = {
        "store": store,
        "day": of,
        "is_partial": bool(fresh.basis.missing),
        "tiles": _fed(parts, TILES),
        "queue": _fed(parts, QUEUE),
        "lacking": _lacking(parts),
        "charts": [(parts[f"hour:{name}"], parts[f"before:{name}"], title) for name, title in _charts(parts)],
        "waits": (parts[f"hour:{WAITS}"], parts[f"before:{WAITS}"]),
        "stays": parts[STAYS],
        "productivity": parts[PRODUCTIVITY],
        "heat": _heat(parts[PRODUCTIVITY]),
        "context": _context(parts),
        "opening": opening(store, of.day),
        "compared": _compared(parts["change:net_sales"], store),
        "changes": parts["change:net_sales"].question,
        "open_alerts": await _open_alerts(visit, store),
        "turns_at": None if day else of.turns_at,
    }
    return visit.page("store.html", fresh, said)


async def _open_alerts(visit: Visit, store: Store) -> str:
    """How many, in words; empty if none is."""
    ask = AlertsRequest(store.tenant, frozenset([store.id]), state="open", limit=MOST_ALERTS)
    page = await visit.alerting.alerts.page(ask)
    number = len(page.told)
    if page.following:
        return f"{number} open alerts or more"
    return f"{number} open alert{'s' * (number != 1)}" if number else ""


async def _parts(asking: PageAnswers, of: StoreQuestions, now: datetime) -> Mapping[str, Part]:
    questions = of.all()
    told = await asking.tried_all(list(questions.values()))
    catalogue = asking.all.catalogue
    return {
        name: Part(question, answer, *_named(catalogue, question.metric), of.store.currency.code, now)
        for (name, question), answer in zip(questions.items(), told, strict=True)
    }


def _named(catalogue: Catalogue, metric: str) -> tuple[str, str]:
    known = catalogue.metrics[metric]
    return NAMES.get(metric, known.name), known.unit


def _heat(part: Part) -> object:
    return heat_map(part.series["points"], part.unit, part.code) if part.series else None


def _fed(parts: Mapping[str, Part], metrics: Iterable[str]) -> Sequence[tuple[Part, Part]]:
    """Each as it is now and how it changed, of those that a sensor feeds."""
    found = ((parts[f"now:{metric}"], parts[f"change:{metric}"]) for metric in metrics)
    return [(now, change) for now, change in found if now.has_source]


def _charts(parts: Mapping[str, Part]) -> Sequence[tuple[str, str]]:
    """Which are drawn, and their titles."""
    return [(metric, title) for metric, title in CHARTS.items() if parts[f"hour:{metric}"].has_source]


def _lacking(parts: Mapping[str, Part]) -> Sequence[str]:
    """What is not shown, because no sensor of the store feeds it."""
    lacking = [parts[f"now:{metric}"].name for metric in TILES if not parts[f"now:{metric}"].has_source]
    lacking += [] if parts[STAYS].has_source else ["visits by stay time"]
    return lacking if _fed(parts, QUEUE) else [*lacking, "queue"]


def _context(parts: Mapping[str, Part]) -> Mapping[str, Any]:
    """`holidays`: names; `hours`: of weather, those that have begun, from the hour before anything happened."""
    part = parts[CONTEXT]
    begins = [at for metric in CHARTS if (at := parts[f"hour:{metric}"].begins)]
    first = min(begins) - HOUR if begins else None
    told = {} if part.refused or not isinstance(part.answer, dict) else part.answer.get("context", {})
    names_of_days = [name for row in told.get("holidays", {}).get("rows", ()) for name in row["names"]]
    rows = [row for row in told.get("weather", {}).get("rows", ()) if row["temperature_avg"] is not None]
    rows = [row for row in rows if first is None or datetime.fromisoformat(row["start"]) >= first]
    wet = [row["start"] for row in rows if row["precipitation"]]
    return {"holidays": names_of_days, "hours": rows, "wet": wet}


def _compared(part: Part, store: Store) -> Mapping[str, Any] | None:
    """Which day, and until when of it; None without a counterpart."""
    told = part.series.get("compared") if part.series else None
    if not told or not told["before"]:
        return None
    return {"day": date.fromisoformat(told["before"]["from"]), "until": told.get("until"), "zone": store.timezone}
