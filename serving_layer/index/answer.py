"""An index over time: what the metric's own answer says, what was to be expected, and how one stands to the other."""

import asyncio
from collections.abc import Sequence

from msgspec import UNSET

from master_dataset.registry.stores import Store
from serving_layer.errors import TooManyStores
from serving_layer.index.question import IndexAsk
from serving_layer.index.seen import holidays_of, seen
from serving_layer.index.series import fit
from serving_layer.index.student import PERCENT
from serving_layer.query import metric_answer
from serving_layer.query.as_of import as_of
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.questions import understood
from serving_layer.query.read_snapshot import Basis
from serving_layer.responses.index import IndexResponse, IndexSeries
from serving_layer.store.merged_cells import MergedCells
from views.core.cut import seconds

MOST_STORES = 20
"""How many one answer may hold: weeks of history are read of each."""


async def answer(
    ask: IndexAsk, stores: Sequence[Store], catalogue: Catalogue, basis: Basis, cells: MergedCells
) -> IndexResponse:
    """The body of the answer. Every value in it is what `/v1/metrics` would say on the same basis."""
    if len(stores) > MOST_STORES:
        message = f"{len(stores)} stores in one index are more than {MOST_STORES}."
        raise TooManyStores(message, do="Name the stores with `store=`, in several questions.")
    reaches = [ask.reach(store) for store in stores]
    told: list[IndexSeries] = []
    waiting, until = 0, seconds(basis.as_of_at)
    for store, reach in zip(stores, reaches, strict=True):
        asked = understood(ask.of_metric(store, reach), [store], catalogue)
        response = await metric_answer.answer(asked, basis, cells)
        waiting += response.as_of.waiting_for_batch
        points = list(seen(asked, ask.grain, response))
        fitted = await asyncio.to_thread(fit, points, reach.asked, until)
        told.append(
            IndexSeries(
                store=store.id,
                timezone=asked.stores[0].zone,
                unit=response.unit,
                currency=response.currency,
                flags=["holidays_unknown"] if holidays_of(response).unknown else UNSET,
                history=fitted.history,
                factors=fitted.factors,
                points=fitted.points,
            )
        )
    return IndexResponse(
        metric=ask.metric,
        kind="model",
        grain=ask.grain,
        history_weeks=ask.history_weeks,
        interval_percent=PERCENT,
        series=told,
        as_of=as_of(basis, waiting),
    )
