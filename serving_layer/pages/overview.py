"""`/`: stores at a glance, today against the same weekday of the week before."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Annotated, Any

from fastapi import Query, Response

from master_dataset.registry.stores import Store
from serving_layer.pages.business_day import BusinessDay, opening
from serving_layer.pages.charts import Sparkline, provisional_share, sparkline
from serving_layer.pages.queries import PageAnswers, Question, Refused, Told
from serving_layer.pages.routing import ReaderVisit, routes

router = routes()
PAGE = 48
"""Stores on one page: one answer may hold twice as many."""
DAYS = 14
SALES = "net_sales"
METRICS = (SALES, "traffic_in", "conversion_rate")
Answered = tuple[Question, Told | Refused]


@dataclass(frozen=True)
class Line:
    """One store. `numbers`: the last point by question, None where it was refused, which `refused` says.

    `until`: where the comparison ends, with the last quarter of an hour that is over; None if the day is.
    """

    store: Store
    day: BusinessDay
    asked: Mapping[str, Question]
    numbers: Mapping[str, Mapping[str, Any] | None]
    spark: Sparkline
    share: float | None
    refused: Refused | None
    until: str | None


@router.get("/")
async def get_stores(
    visit: ReaderVisit,
    number: Annotated[int, Query(alias="page", ge=1, le=10_000)] = 1,
    wanted: Annotated[str, Query(alias="q", max_length=100)] = "",
) -> Response:
    """Every store that the visitor sees, a page at a time."""
    fresh = await visit.fresh()
    stores = [store for store in await visit.answers.stores() if _is_wanted(store, wanted)]
    shown = stores[(number - 1) * PAGE : number * PAGE]
    lines = await _lines(visit.answers, shown, fresh.at)
    pages = -(-len(stores) // PAGE)
    said = {
        "lines": lines,
        "count": len(stores),
        "number": number,
        "pages": pages,
        "wanted": wanted,
        "is_partial": bool(fresh.basis.missing),
        "turns_at": min((line.day.turns_at for line in lines), default=None),
        "opening": opening,
    }
    return visit.page("glance.html", fresh, said)


def _is_wanted(store: Store, wanted: str) -> bool:
    return wanted.casefold() in f"{store.id} {store.name}".casefold()


async def _lines(asking: PageAnswers, stores: Sequence[Store], now: datetime) -> list[Line]:
    """Asked in groups: stores whose day has the same date and that take the same money share their answers."""
    groups: dict[tuple[date, str], list[Store]] = {}
    days = {store.id: BusinessDay.of(store, now) for store in stores}
    for store in stores:
        groups.setdefault((days[store.id].day, store.currency.code), []).append(store)
    is_partial = await asking.is_partial()
    found = await asyncio.gather(*(_group(asking, of, days, partial=is_partial) for of in groups.values()))
    lines = {line.store.id: line for group in found for line in group}
    return [lines[store.id] for store in stores]


async def _group(
    asking: PageAnswers, stores: Sequence[Store], days: Mapping[str, BusinessDay], *, partial: bool
) -> list[Line]:
    questions = _questions(stores, days[stores[0].id], partial=partial)
    told = await asking.tried_all(list(questions.values()))
    refused = next((each for each in told if isinstance(each, Refused)), None)
    if refused and len(stores) > 1:  # one of them takes money of two currencies, say: it stands alone for it
        apart = await asyncio.gather(*(_group(asking, [store], days, partial=partial) for store in stores))
        return [line for lines in apart for line in lines]
    answered = dict(zip(questions, zip(questions.values(), told, strict=True), strict=True))
    return [_line(store, days[store.id], answered, refused) for store in stores]


def _questions(stores: Sequence[Store], day: BusinessDay, *, partial: bool) -> dict[str, Question]:
    ids = tuple(store.id for store in stores)

    def of(metric: str, compare: str | None = None) -> Question:
        return Question(metric, ids, day.start, day.end, "day", compare=compare, partial=partial)

    now = {metric: of(metric) for metric in METRICS}
    changes = {f"change:{metric}": of(metric, "previous_week") for metric in METRICS}
    # The number is the last point of the line below it: one answer moves both.
    lately = replace(now[SALES], start=day.back(DAYS - 1))
    return {**now, **changes, SALES: lately, "hours": replace(now[SALES], grain="hour")}


def _line(store: Store, day: BusinessDay, answered: Mapping[str, Answered], refused: Refused | None) -> Line:
    series = {name: _series(told, store.id) for name, (_, told) in answered.items()}
    points = {name: each.get("points", ()) for name, each in series.items()}
    numbers = {name: each[-1] if each else None for name, each in points.items()}
    asked = {name: question for name, (question, _) in answered.items()}
    until = series[f"change:{SALES}"].get("compared", {}).get("until")
    share = provisional_share(points["hours"])
    return Line(store, day, asked, numbers, sparkline(points[SALES]), share, refused, until)


def _series(told: Told | Refused, store: str) -> Mapping[str, Any]:
    found: Iterable[Mapping[str, Any]] = () if isinstance(told, Refused) else told["series"]
    return next((each for each in found if each["store"] == store), {})
