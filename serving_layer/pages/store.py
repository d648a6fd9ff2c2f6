"""`/stores/{store}`: one store on one day, against the same weekday of the week before."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any

from fastapi import Query, Response

from master_dataset.registry.stores import Store
from serving_layer.alerts.alerts import AlertsAsk
from serving_layer.pages import store_questions as names
from serving_layer.pages.business_day import BusinessDay
from serving_layer.pages.heat_map import heat_map
from serving_layer.pages.opening import opening
from serving_layer.pages.page_answers import PageAnswers
from serving_layer.pages.page_route import routes
from serving_layer.pages.part import Part
from serving_layer.pages.store_questions import StoreQuestions
from serving_layer.pages.visit import ReaderVisit, Visit
from serving_layer.query.catalogue import Catalogue

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
        "tiles": _fed(parts, names.TILES),
        "queue": _fed(parts, names.QUEUE),
        "lacking": _lacking(parts),
        "charts": [(parts[f"hour:{name}"], parts[f"before:{name}"], title) for name, title in _charts(parts)],
        "waits": (parts[f"hour:{names.WAITS}"], parts[f"before:{names.WAITS}"]),
        "stays": parts[names.STAYS],
        "productivity": parts[names.PRODUCTIVITY],
        "heat": _heat(parts[names.PRODUCTIVITY]),
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
    ask = AlertsAsk(store.tenant, frozenset([store.id]), state="open", limit=MOST_ALERTS)
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
    return names.NAMES.get(metric, known.name), known.unit


def _heat(part: Part) -> object:
    return heat_map(part.series["points"], part.unit, part.code) if part.series else None


def _fed(parts: Mapping[str, Part], metrics: Iterable[str]) -> Sequence[tuple[Part, Part]]:
    """Each as it is now and how it changed, of those that a sensor feeds."""
    found = ((parts[f"now:{metric}"], parts[f"change:{metric}"]) for metric in metrics)
    return [(now, change) for now, change in found if now.has_source]


def _charts(parts: Mapping[str, Part]) -> Sequence[tuple[str, str]]:
    """Which are drawn, and their titles."""
    return [(metric, title) for metric, title in names.CHARTS.items() if parts[f"hour:{metric}"].has_source]


def _lacking(parts: Mapping[str, Part]) -> Sequence[str]:
    """What is not shown, because no sensor of the store feeds it."""
    lacking = [parts[f"now:{metric}"].name for metric in names.TILES if not parts[f"now:{metric}"].has_source]
    lacking += [] if parts[names.STAYS].has_source else ["visits by stay time"]
    return lacking if _fed(parts, names.QUEUE) else [*lacking, "queue"]


def _context(parts: Mapping[str, Part]) -> Mapping[str, Any]:
    """`holidays`: names; `hours`: of weather, those that have begun, from the hour before anything happened."""
    part = parts[names.CONTEXT]
    begins = [at for metric in names.CHARTS if (at := parts[f"hour:{metric}"].begins)]
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
