"""An index over time: what the metric's own answer says, what was to be expected, and how one stands to the other."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

from master_dataset.registry.stores import Store
from serving_layer.errors import TooManyStores
from serving_layer.index.question import IndexAsk
from serving_layer.index.seen import seen
from serving_layer.index.series import series
from serving_layer.index.student import PERCENT
from serving_layer.query import metric_answer
from serving_layer.query.as_of import as_of
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.questions import understood
from serving_layer.query.read_snapshot import Basis
from serving_layer.store.merged_cells import MergedCells
from views.core.cut import seconds

Body = dict[str, Any]
MOST_STORES = 20
"""How many one answer may hold: weeks of history are read of each."""


async def answer(
    ask: IndexAsk, stores: Sequence[Store], catalogue: Catalogue, basis: Basis, cells: MergedCells
) -> Body:
    """The body of the answer. Every value in it is what `/v1/metrics` would say on the same basis."""
    if len(stores) > MOST_STORES:
        message = f"{len(stores)} stores in one index are more than {MOST_STORES}."
        raise TooManyStores(message, do="Name the stores with `store=`, in several questions.")
    reaches = [ask.reach(store) for store in stores]
    told, waiting, until = [], 0, seconds(basis.as_of_at)
    for store, reach in zip(stores, reaches, strict=True):
        asked = understood(ask.of_metric(store, reach), [store], catalogue)
        body: Body = orjson.loads(orjson.dumps(await metric_answer.answer(asked, basis, cells)))
        waiting += body["as_of"]["waiting_for_batch"]
        shown = await asyncio.to_thread(series, list(seen(asked, ask.grain, body)), reach.asked, until)
        about = {"store": store.id, "timezone": asked.stores[0].zone, "unit": body["unit"]}
        money = {"currency": body["currency"]} if "currency" in body else {}
        unknown = {"flags": ["holidays_unknown"]} if body["context"]["holidays"]["unknown"] else {}
        told.append(about | money | unknown | shown)
    return {
        "metric": ask.metric,
        "kind": "model",
        "grain": ask.grain,
        "history_weeks": ask.history_weeks,
        "interval_percent": PERCENT,
        "series": told,
        "as_of": as_of(basis, waiting),
    }
