"""`/floor-plans/{store}`: where people stay, as a heat map on the floor plan of a store; its zones are drawn here, too.

Not below `/stores/`, because an id may have any number of slashes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from http import HTTPStatus
from typing import Annotated, Literal, NamedTuple
from urllib.parse import quote

from fastapi import Query, Response
from fastapi.responses import RedirectResponse
from msgspec import UNSET

from master_dataset.errors import GalateaError, UnknownNameError
from master_dataset.registry.floor_plans import Corner, DrawnZone
from master_dataset.registry.floor_plans_file import MOST_BYTES, MOST_TEXT, read_image, read_lines, write_lines
from master_dataset.registry.stores import Store
from serving_layer.api.floor_plans import floor_plans_of, image_path
from serving_layer.api.parameters import Day
from serving_layer.errors import BadQuestionError
from serving_layer.pages.business_day import BusinessDay
from serving_layer.pages.charts import Scale
from serving_layer.pages.figures import Figure, figure, rounded
from serving_layer.pages.flags import DESCRIPTIVE_FLAGS, flag_text
from serving_layer.pages.language import UNKNOWN, gettext_noop
from serving_layer.pages.language import gettext as _
from serving_layer.pages.queries import PageQuery, QueryFailure, QueryResult
from serving_layer.pages.routing import UPLOAD_TYPE, ConfigurerVisit, ReaderVisit, Visit, content_type, page_router
from serving_layer.query.aggregate import NO_SOURCE
from serving_layer.query.ranges import RANGE_NAMES, RangeName
from serving_layer.responses.metrics import MetricResponse, Point

router = page_router()
Measure = Literal["avg_dwell_duration", "dwell_count", "zone_traffic_in"]
MEASURES: Mapping[Measure, str] = {
    "avg_dwell_duration": gettext_noop("Average dwell time"),
    "dwell_count": gettext_noop("Dwells"),
    "zone_traffic_in": gettext_noop("Entries"),
}
WITHIN_SENTENCES: Mapping[Measure, str] = {
    "avg_dwell_duration": gettext_noop("average dwell time"),
    "dwell_count": gettext_noop("dwells"),
    "zone_traffic_in": gettext_noop("entries"),
}
RANGES: Mapping[RangeName, str] = {
    "today": gettext_noop("Today"),
    "yesterday": gettext_noop("Yesterday"),
    "last_7_days": gettext_noop("Last 7 days"),
    "last_28_days": gettext_noop("Last 28 days"),
    "last_30_days": gettext_noop("Last 30 days"),
    "last_90_days": gettext_noop("Last 90 days"),
    "this_week": gettext_noop("This week"),
    "week_to_date": gettext_noop("Week to date"),
    "month_to_date": gettext_noop("Month to date"),
    "quarter_to_date": gettext_noop("Quarter to date"),
    "year_to_date": gettext_noop("Year to date"),
    "last_week": gettext_noop("Last week"),
    "last_month": gettext_noop("Last month"),
    "last_quarter": gettext_noop("Last quarter"),
    "last_year": gettext_noop("Last year"),
}
COLUMNS: Sequence[Measure] = ("zone_traffic_in", "dwell_count", "avg_dwell_duration")
SHARE: Measure = "dwell_count"
"""Of which the table has the share of each zone."""
FORM_BYTES = 20_000
"""What a form with an image adds to it."""
_ROOM = 0.014
"""The part of the width that a character of a name takes on a small screen: wider names have only their number."""

_HEIGHTS, _CLEARLY = (0.45, 0.3, 0.7, 0.15, 0.85), 1.3
"""Where a label may be in a polygon, and how much wider a later place has to be."""


# Numbers


class Cell(NamedTuple):
    """A number of a zone. `why`: why it is unknown, in words; empty if it is known."""

    figure: Figure
    is_final: bool
    why: str


@dataclass(frozen=True)
class ZoneRow:
    """A zone with its numbers. `number`: on the plan, from 1; None if the zone is not drawn."""

    zone: str
    number: int | None
    cells: Mapping[Measure, Cell]
    share: str
    shade: int | None

    @property
    def is_known(self) -> bool:
        """Whether any number is."""
        return any(not cell.why for cell in self.cells.values())

    @property
    def is_final(self) -> bool:
        """Whether every known number is."""
        return all(cell.is_final for cell in self.cells.values() if not cell.why)

    @property
    def reasons(self) -> str:
        """Why numbers are unknown, each reason once; empty if all are known."""
        return "; ".join(dict.fromkeys(cell.why for cell in self.cells.values() if cell.why))


class PlacedZone(NamedTuple):
    """A zone on the image. `points`: for SVG, in fractions. `at`: the middle of its label. `has_room`: for its name."""

    row: ZoneRow
    points: str
    at: Corner
    has_room: bool


@dataclass(frozen=True)
class ShownDays:
    """What the numbers are about: a named range, or a day if there is none."""

    day: BusinessDay
    range: RangeName | None

    @property
    def words(self) -> str:
        """A named range, in words; empty for a day."""
        return _(RANGES[self.range]) if self.range else ""

    def query(self, metric: Measure, store: Store, *, is_partial: bool) -> PageQuery:
        """The query of a metric by zone."""
        of = PageQuery(metric, (store.id,), grain="total", by=("zone",), partial=is_partial, share=metric == SHARE)
        return replace(of, range=self.range) if self.range else replace(of, start=self.day.start, end=self.day.end)


@dataclass(frozen=True)
class ZoneNumbers:
    """The answers about all zones. `is_loading`: nothing is published yet."""

    answers: Mapping[Measure, QueryResult]
    units: Mapping[Measure, str]
    is_loading: bool

    @property
    def failure(self) -> QueryFailure | None:
        """Why there are no numbers; None if there are."""
        return next((each for each in self.answers.values() if isinstance(each, QueryFailure)), None)

    @property
    def dates(self) -> tuple[date, date] | None:
        """The first and the last business day of a named range; None of a single day."""
        for answer in self.answers.values():
            span = UNSET if isinstance(answer, QueryFailure) else answer.answered_range
            if span and isinstance(span.start, date) and isinstance(span.end, date):
                return span.start, span.end - timedelta(days=1)
        return None

    @property
    def zones(self) -> set[str]:
        """The zones of which anything is known."""
        return {zone for answer in self.answers.values() for zone in _points(answer)}

    def row(self, zone: str, number: int | None, shaded: Measure, scale: Scale | None) -> ZoneRow:
        """The numbers of a zone. `shaded`: the measure of the heat map."""
        points = {measure: _points(self.answers[measure]).get(zone) for measure in COLUMNS}
        cells = {measure: self._cell(measure, point) for measure, point in points.items()}
        share, colour = points[SHARE], points[shaded]
        known = share.share if share and share.share is not UNSET else None
        return ZoneRow(
            zone,
            number,
            cells,
            UNKNOWN if known is None else f"{rounded(known, 0)} %",
            scale.shade(colour.value) if scale and colour else None,
        )

    def scale(self, shaded: Measure, zones: Sequence[str]) -> Scale | None:
        """The scale of the heat map over these zones; None if no value is known."""
        points = _points(self.answers[shaded])
        return Scale.of([points[zone].value for zone in zones if zone in points])

    def _cell(self, measure: Measure, point: Point | None) -> Cell:
        if point is not None and point.value is not None:
            return Cell(figure(point.value, self.units[measure]), point.final, "")
        return Cell(figure(None, ""), is_final=False, why=self._why(self.answers[measure], point))

    def _why(self, answer: QueryResult, point: Point | None) -> str:
        if isinstance(answer, QueryFailure):
            return _("no answer")
        flags = [*(answer.flags or ()), *((point.flags or ()) if point else ())]
        if NO_SOURCE in flags:
            return flag_text(NO_SOURCE)
        reasons = [flag_text(flag) for flag in dict.fromkeys(flags) if flag not in DESCRIPTIVE_FLAGS]
        if reasons:
            return "; ".join(reasons)
        if self.is_loading:
            return flag_text("loading")
        return _("no dwells to average") if point else _("no events of this zone")


def _points(answer: QueryResult) -> dict[str, Point]:
    """By zone the point of an answer of the grain `total`."""
    if not isinstance(answer, MetricResponse):
        return {}
    found = {series.dimensions.get("zone"): series.points[-1] for series in answer.series if series.points}
    return {zone: point for zone, point in found.items() if zone is not None}


def _placed(drawn: DrawnZone, row: ZoneRow) -> PlacedZone:
    points = " ".join(f"{corner.x:g},{corner.y:g}" for corner in drawn.corners)
    at, width = _label_place(drawn.corners)
    return PlacedZone(row, points, at, has_room=len(drawn.zone) * _ROOM < width)


def _label_place(corners: Sequence[Corner]) -> tuple[Corner, float]:
    """The middle of the widest place inside a polygon, near its middle height if possible, and the width there."""
    top, bottom = min(corner.y for corner in corners), max(corner.y for corner in corners)
    found, widest = corners[0], 0.0
    for part in _HEIGHTS:
        y = top + part * (bottom - top)
        sides = zip(corners, (*corners[1:], corners[0]), strict=True)
        crossed = sorted(a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x) for a, b in sides if (a.y > y) != (b.y > y))
        for left, right in zip(crossed[::2], crossed[1::2], strict=True):
            if right - left > _CLEARLY * widest:
                found, widest = Corner((left + right) / 2, y), right - left
    return found, widest


# Pages


class Draft(NamedTuple):
    """Zones that are not saved. `lines`: as they were typed; `zones`: None if they cannot be read."""

    lines: str
    zones: tuple[DrawnZone, ...] | None


@router.get("/floor-plans/{id_:path}")
async def get_floor_plan(
    visit: ReaderVisit,
    id_: str,
    day: Annotated[Day | None, Query()] = None,
    range_: Annotated[str, Query(alias="range", max_length=64)] = "",
    shade: Measure = "avg_dwell_duration",
) -> Response:
    """The heat map of a day or a named range, the numbers of every zone, and for configurers a form."""
    if range_ and range_ not in RANGE_NAMES:
        raise UnknownNameError("range", range_, RANGE_NAMES)
    store = await visit.queries.store(id_)
    return await _page(visit, store, day, range_ or None, shade)


@router.post("/floor-plans/{id_:path}")
async def post_floor_plan(visit: ConfigurerVisit, reader: ReaderVisit, id_: str) -> Response:
    """Upload an image, try zones, save them, or remove the floor plan; or the form again, with what is wrong."""
    store, plans = await visit.queries.store(id_), await floor_plans_of(visit.request)
    draft = None
    try:
        if content_type(visit.request) == UPLOAD_TYPE:
            form, content = await visit.upload(MOST_BYTES + FORM_BYTES)
            image = await asyncio.to_thread(read_image, content)
            await plans.save(store, image=image, seen=form.text("version"))
            return _back(store, "uploaded")
        form = await visit.form(MOST_TEXT)
        if form.text("do") == "remove":
            await plans.remove(store, seen=form.text("version"))
            return _back(store, "removed")
        draft = Draft(form.text("zones"), None)
        draft = draft._replace(zones=read_lines(draft.lines, store.terms.zones))
        if form.text("do") == "save":
            await plans.save(store, zones=draft.zones, seen=form.text("version"))
            return _back(store, "saved")
        if form.text("do") != "preview":
            raise BadQuestionError("The form does not say what to do.", do="Use one of its buttons.")
    except GalateaError as error:
        return await _page(reader, store, draft=draft, problem=error)
    return await _page(reader, store, draft=draft)


def _back(store: Store, done: str) -> Response:
    return RedirectResponse(f"/floor-plans/{quote(store.id)}?done={done}", HTTPStatus.SEE_OTHER)


async def _page(  # noqa: PLR0913 - what the page is about, then what was sent
    visit: Visit,
    store: Store,
    day: date | None = None,
    range_: RangeName | None = None,
    shade: Measure = "avg_dwell_duration",
    *,
    draft: Draft | None = None,
    problem: GalateaError | None = None,
) -> Response:
    fresh = await visit.fresh()
    period, is_partial = ShownDays(BusinessDay.of(store, fresh.at, day), range_), bool(fresh.snapshot.missing)
    plan = await (await floor_plans_of(visit.request)).find(store)
    numbers = await _numbers(visit, store, period, is_partial=is_partial, is_loading=fresh.snapshot.is_loading)
    drawn = draft.zones if draft and draft.zones is not None else plan.zones if plan else ()
    scale = numbers.scale(shade, [each.zone for each in drawn])
    rows = [numbers.row(each.zone, place, shade, scale) for place, each in enumerate(drawn, 1)]
    others = sorted(({zone.id for zone in store.zones} | numbers.zones) - {each.zone for each in drawn})
    unit = numbers.units[shade]
    values = {
        "store": store,
        "period": period,
        "day": period.day,
        "dates": numbers.dates,
        "is_partial": is_partial,
        "plan": plan,
        "image": image_path(store.id),
        "placed": [_placed(each, row) for each, row in zip(drawn, rows, strict=True)],
        "rows": rows,
        "others": [numbers.row(zone, None, shade, None) for zone in others],
        "bounds": scale.bounds(unit, store.currency.code) if scale else (),
        "failure": numbers.failure,
        "queries": [period.query(measure, store, is_partial=is_partial) for measure in COLUMNS],
        "shade": shade,
        "measures": {measure: _(title) for measure, title in MEASURES.items()},
        "shaded_by": _(WITHIN_SENTENCES[shade]),
        "columns": COLUMNS,
        "shared": SHARE,
        "ranges": RANGES,
        "draft": draft,
        "lines": draft.lines if draft else write_lines(plan.zones) if plan else "",
        "problem": problem,
        "done": visit.request.query_params.get("done", ""),
        "most_mb": MOST_BYTES // 10**6,
        "today_ends_at": None if day or range_ or draft or problem else period.day.today_ends_at,
    }
    return visit.page("floor_plan.html", fresh, values, status=problem.status if problem else HTTPStatus.OK)


async def _numbers(visit: Visit, store: Store, period: ShownDays, *, is_partial: bool, is_loading: bool) -> ZoneNumbers:
    queries = [period.query(measure, store, is_partial=is_partial) for measure in COLUMNS]
    results = await visit.queries.answer_all(queries)
    catalogue = visit.queries.service.catalogue
    units = {measure: catalogue.metrics[measure].unit for measure in COLUMNS}
    return ZoneNumbers(dict(zip(COLUMNS, results, strict=True)), units, is_loading)
