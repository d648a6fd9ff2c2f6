"""Which (view, day, store) partitions a plan recomputes, and why each of them."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable

from batch_layer.recompute.plan import Plan
from batch_layer.recompute.touched import Master
from master_dataset.delta.lost_files import naming_lost_files

LISTED_AT_MOST = 10_000
Places = Mapping[date, Mapping[str, bool]]
"""By day and store: whether events came that the base has not."""


def listed(plan: Plan) -> dict[str, Any]:
    """`partitions`, at most 10,000 of them, and `partitions_total`. Whole days are recomputed: also `same day`."""
    places = {topic: _places(master, plan, topic) for topic, master in plan.masters.items()}
    found = list(_partitions(plan, places))
    return {"partitions": found[:LISTED_AT_MOST], "partitions_total": len(found)}


def _partitions(plan: Plan, places: Mapping[str, Places]) -> Iterator[dict[str, str]]:
    for view, days in plan.work:
        why = plan.whys[view.name]
        for day in sorted(days):
            for store, is_new in sorted(_of_days(places[view.source.topic], view.days_read([day])).items()):
                own = ("new events" if is_new else "same day") if why == "new events" else why
                yield {"view": view.name, "day": day.isoformat(), "store": store, "why": own}


def _of_days(places: Places, days: Collection[date]) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for day in days:
        for store, is_new in places.get(day, {}).items():
            found[store] = found.get(store, False) or is_new
    return found


def _places(master: Master, plan: Plan, topic: str) -> Places:
    days = {day for view, own in plan.work if view.source.topic == topic for day in view.days_read(own)}
    found: dict[date, dict[str, bool]] = {}
    if not days:
        return found
    for batch in _rows(master, days):
        is_new = pc.and_(pc.greater_equal(batch["received_at"], plan.base.cut), pc.less(batch["received_at"], plan.cut))
        for day, store, new in zip(
            batch["day"].to_pylist(), batch["store"].to_pylist(), is_new.to_pylist(), strict=True
        ):
            own = found.setdefault(day, {})
            own[store] = own.get(store, False) or new
    return found


def _rows(master: Master, days: Collection[date]) -> Iterator[Any]:
    table = DeltaTable(master.path, version=master.version)
    columns, of_days = ["day", "store", "received_at"], pc.field("day").isin(sorted(days))
    with naming_lost_files(table):
        yield from table.to_pyarrow_dataset().scanner(columns=columns, filter=of_days).to_batches()
