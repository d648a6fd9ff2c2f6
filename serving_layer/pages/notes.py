"""The annotations of a period on its charts, and below them: promotions, outages, holidays and notes."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from master_dataset.errors import GalateaError
from master_dataset.registry.stores import Store
from serving_layer.pages.period import PagePeriod
from serving_layer.pages.queries import QueryFailure
from serving_layer.pages.routing import Visit
from serving_layer.saved.annotations import Annotation

MAX_TENANTS = 20
"""Of how many tenants an operator sees annotations on one page."""
MAX_NOTES = 50


class Notes(NamedTuple):
    """What is noted on the days of a page. `failure`: why that is not known; None if it is."""

    rows: Sequence[Annotation]
    failure: QueryFailure | None = None


async def notes_of(visit: Visit, stores: Sequence[Store], period: PagePeriod, *, is_of_chain: bool) -> Notes:
    """The annotations that touch a period, by day.

    Args:
        visit: whose page it is.
        stores: those that the page is about.
        period: its days.
        is_of_chain: whether the page is about all stores of the tenants, and so also about notes on other ones.
    """
    if visit.request.app.state.saved is None:
        return Notes(())
    tenants = sorted({store.tenant for store in stores})[:MAX_TENANTS]
    about = None if is_of_chain else [store.id for store in stores]
    between = visit.saved.annotations.annotations_between
    try:
        found = await asyncio.gather(*(between(tenant, about, period.first, period.last) for tenant in tenants))
    except GalateaError as error:
        return Notes((), QueryFailure.of(error))
    rows = sorted(
        (note for each in found for note in each), key=lambda note: (note.first_day, note.last_day, note.text)
    )
    return Notes(rows[:MAX_NOTES])
