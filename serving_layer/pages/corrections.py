"""`/corrections`: what a publication changed in what readers had seen, and why, by store and day. For operators."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, NamedTuple, get_args

from fastapi import Query, Response
from pydantic import BaseModel, Field

from master_dataset.registry.stores import DEFAULT_CURRENCY, Store
from serving_layer.admin.corrections import CorrectionsRequest
from serving_layer.admin.publications import MAX_PUBLICATION
from serving_layer.api.publications import read_token, write_token
from serving_layer.pages.cells import (
    dimension_name,
    percent_change,
    shown_difference,
    shown_state,
    state_name,
    view_name,
)
from serving_layer.pages.figures import instant
from serving_layer.pages.language import UNKNOWN, gettext_noop
from serving_layer.pages.pickers import names_of, store_named
from serving_layer.pages.routing import OperatorVisit, page_router
from serving_layer.query.catalogue import Catalogue
from serving_layer.responses.publications import Correction, CorrectionPage
from serving_layer.timeline import zone_named
from views.control.recompute import Cause
from views.core.cut import seconds
from views.core.local_time import BusinessDays

router = page_router()
PAGE_SIZE = 100
CAUSES: tuple[Cause, ...] = get_args(Cause)
CAUSE_NAMES: Mapping[str, str] = {
    "waited": gettext_noop("Late events"),
    "definition changed": gettext_noop("New definition"),
    "miskeyed": gettext_noop("Wrong partition"),
    "unexplained": gettext_noop("Unexplained"),
    "rolled back": gettext_noop("Rollback"),
}
CAUSE_TEXTS: Mapping[str, str] = {
    "waited": gettext_noop("Events that arrived too late for live numbers. Nothing to do."),
    "definition changed": gettext_noop("The view is computed in another way now. Nothing to do."),
    "miskeyed": gettext_noop("One event arrived in two partitions. Configure the sender to use the store as the key."),
    "unexplained": gettext_noop(
        "Live numbers and events disagree. Run `galatea verify`, then `galatea speed restart`."
    ),
    "rolled back": gettext_noop("An older publication was published again. Nothing to do."),
}


class CorrectionsPageFilter(BaseModel):
    """The query string. An empty field does not filter."""

    publication: str = Field("", max_length=19, pattern=r"^[0-9]*$")
    recompute: str = Field("", max_length=200)
    view: str = Field("", max_length=256)
    store: str = Field("", max_length=256)
    cause: str = Field("", pattern=f"^({'|'.join(CAUSES)})?$")
    state: str = Field("", max_length=256)
    after: str = Field("", max_length=2048)

    def request(self) -> CorrectionsRequest:
        """As the service takes it. BadQuestionError if `after` is not one of our tokens."""
        number = min(int(self.publication), MAX_PUBLICATION) if self.publication else None
        cause = next((each for each in CAUSES if each == self.cause), None)
        after = read_token(self.after) if self.after else None
        filters = (self.recompute or None, self.view or None, self.store or None)
        return CorrectionsRequest(number, *filters, cause, PAGE_SIZE, after, state=self.state or None)

    @property
    def filters(self) -> dict[str, str]:
        """What filters, as query parameters of this page and of REST."""
        return {name: value for name, value in self.model_dump(exclude={"after"}).items() if value}


@router.get("/corrections")
async def get_corrections(visit: OperatorVisit, query: Annotated[CorrectionsPageFilter, Query()]) -> Response:
    """The ledger of one publication, or of a preview, a page at a time."""
    fresh = await visit.fresh()
    stores = {store.id: store for store in await visit.queries.stores()}
    query.store = store_named(query.store, stores.values())
    request = query.request()
    page: CorrectionPage | None = None
    following = None
    if request.publication or request.recompute or fresh.snapshot.pointer.publication:  # publication 0 has no ledger
        page, following = await visit.operations.corrections.page(request)
    rows = page.corrections if page else ()
    values = {
        "page": page,
        "days": corrected_days(rows, stores),
        "first_loaded": first_loaded(rows),
        "query": query,
        "causes": CAUSE_NAMES,
        "cause_texts": CAUSE_TEXTS,
        "states": _states(visit.queries.service.catalogue, query.view),
        "views": sorted(visit.queries.service.catalogue.views, key=view_name),
        "view_name": view_name,
        "stores": names_of(stores.values()),
        "following": following and write_token(following),
    }
    return visit.page("corrections.html", fresh, values)


def _states(catalogue: Catalogue, view: str) -> Mapping[str, str]:
    """What can be filtered by, with its name in words: the states of a view, or of all views."""
    views = [each for name, each in catalogue.views.items() if view in ("", name)]
    names = {state: state_name(state) for each in views for state in each.columns}
    return dict(sorted(names.items(), key=lambda item: item[1].casefold()))


class ChangedState(NamedTuple):
    """One state of a cell, in the words and units of people. `id`: its technical name. `percent`: empty if none."""

    id: str
    name: str
    shown: str
    corrected: str
    difference: str
    percent: str


@dataclass(frozen=True)
class CorrectedCell:
    """A cell that readers see differently now. `at`: when its window begins. `dimensions`: in words."""

    view: str
    at: datetime
    dimensions: str
    cause: str
    events: int
    states: Sequence[ChangedState]


@dataclass(frozen=True)
class CorrectedDay:
    """The corrected cells of a store on a business day. `store`: None if it is not registered, and then in UTC."""

    id: str
    store: Store | None
    day: date
    cells: Sequence[CorrectedCell]

    @property
    def zone(self) -> str:
        """The time zone of its times."""
        return self.store.timezone if self.store else "UTC"


def corrected_days(rows: Iterable[Correction], stores: Mapping[str, Store]) -> Sequence[CorrectedDay]:
    """The cells of a ledger by store and business day, newest day first.

    What did not change, and what readers had never seen, is left out.
    """
    cells: dict[tuple[str, date], dict[tuple[object, ...], list[Correction]]] = {}
    for row in rows:
        if _is_change(row):
            place = (row.store, _business_day(row, stores.get(row.store)))
            cells.setdefault(place, {}).setdefault(_cell(row), []).append(row)
    days = [
        CorrectedDay(id_, stores.get(id_), day, [_corrected_cell(each, stores.get(id_)) for each in found.values()])
        for (id_, day), found in cells.items()
    ]
    return sorted(sorted(days, key=lambda each: each.id), key=lambda each: each.day, reverse=True)


def first_loaded(rows: Iterable[Correction]) -> int:
    """How many cells of these rows readers had never seen, because their store and day was loaded at once."""
    return len({(row.store, _cell(row)) for row in rows if is_first_load(row)})


def is_first_load(row: Correction) -> bool:
    """Whether the whole store and day was new to readers: the ledger does not name the events of such a day."""
    return row.shown is None and not row.events


def _is_change(row: Correction) -> bool:
    return not is_first_load(row) and row.difference != 0 and row.shown != row.corrected


def _business_day(row: Correction, store: Store | None) -> date:
    at = instant(row.window) or datetime.fromtimestamp(0, UTC)
    return BusinessDays.of(store, zone_named(store.timezone)).day_of(seconds(at)) if store else at.date()


def _cell(row: Correction) -> tuple[object, ...]:
    return row.view, row.window, tuple(row.dimensions.items()), row.cause


def _corrected_cell(rows: Sequence[Correction], store: Store | None) -> CorrectedCell:
    first = rows[0]
    code = first.dimensions.get("currency") or (store.currency if store else DEFAULT_CURRENCY).code
    others = {name: value for name, value in first.dimensions.items() if name != "currency"}
    return CorrectedCell(
        view=first.view,
        at=instant(first.window) or datetime.fromtimestamp(0, UTC),
        dimensions=", ".join(f"{dimension_name(name)} {value or UNKNOWN}" for name, value in others.items()),
        cause=first.cause,
        events=first.events_total,
        states=[
            ChangedState(
                row.state,
                state_name(row.state),
                shown_state(row.state, row.shown, code),
                shown_state(row.state, row.corrected, code),
                shown_difference(row.state, row.difference, code),
                percent_change(row.shown, row.corrected),
            )
            for row in rows
        ],
    )
