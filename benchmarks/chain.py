"""A chain by day: totals over all its stores, beside DuckDB over the same corrected cells in the exported table.

    cold     the first answer of an API that has just started, and has read ahead
    other    answers to questions that it was never asked, from day cells that it has in memory
    again    the first question once more, which the API answers from memory as long as nothing has changed

DuckDB runs in this process and gives rows; ours come over HTTP. It reads the exported cells cold in a fresh connection,
then again. Both must give the same numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

import orjson
from deltalake import DeltaTable

from batch_layer.maintenance.export import export_published
from benchmarks import local
from benchmarks.cold_answers import ROUNDS, Timings, answered, beside
from benchmarks.history import History
from benchmarks.master import Shape
from benchmarks.report import Measured, percentile
from deploy.cassandra import session_of
from master_dataset.registry.registry import Registry
from master_dataset.registry.store_tables import Edit
from master_dataset.registry.stores import Store
from views.core.cut import seconds
from views.core.local_time import first_instant

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 1_000_000
STORES, DAYS = 200, 92
OF_COLD, OF_AGAIN = 3.0, 1.0
ZONE = "Europe/Bratislava"
SQL = """
SELECT (epoch_us("window") // 1000000 + {offset}) // 86400, sum({value})
FROM read_parquet({files}, hive_partitioning = true)
WHERE epoch_us("window") // 1000000 >= {start} AND epoch_us("window") // 1000000 < {end}
GROUP BY 1
"""


class Promised(NamedTuple):
    """Seconds that the 95th percentile may take. `again`: None if only the ratio was promised."""

    cold: float
    again: float | None = None


def chain(size: int) -> Iterator[Measured]:
    """`size` receipts of 200 stores on 92 days, published; then `by=total` by day."""
    first = datetime.now(UTC).date() - timedelta(days=DAYS + 1)
    with published(size, first, DAYS, Shape(STORES, lines=2), "sales") as (settings, files):
        asked = {"from": first, "to": first + timedelta(days=DAYS), "grain": "day", "by": "total"}
        others = ("gross_sales", "total_transactions_count", "avg_transaction_value", "return_rate")
        paths = [
            (metric, asked | {"from": first + timedelta(days=number)}) for number in range(ROUNDS) for metric in others
        ]
        span = first_instant(ZoneInfo(ZONE), first), first_instant(ZoneInfo(ZONE), first + timedelta(days=DAYS))
        sql = SQL.format(
            files=files, offset=_offset(first), value="gross_sales - returns_value", start=span[0], end=span[1]
        )
        ours, bodies = answered(settings, ("net_sales", asked), paths[:ROUNDS])
        theirs, rows = beside(sql)
        refuse_difference([cents for _, cents in sorted(rows) if cents], cents_by_day(bodies[0]))
        details = {"stores": STORES, "days": DAYS, "bytes": len(bodies[0])}
        yield from measured("chain by day", ours, theirs, details, Promised(0.3, 0.03))


@contextmanager
def published(
    receipts: int, first: date, days: int, shape: Shape, view: str
) -> Iterator[tuple["Settings", Sequence[str]]]:
    """A home with registered stores, whose receipts are published and exported; and the files of a view."""
    with local.own_home() as settings:
        now = datetime.now(UTC).replace(microsecond=0, second=0)
        history = History(settings, receipts, days, first, now, shape=shape)
        with local.running(settings, "kafka", "cassandra"):  # the rebuild asks which partitions are open
            session = session_of(settings.cassandra.address)
            stores = [_store(number) for number in range(1, shape.stores + 1)]
            Registry(session).save(Edit(stores), settings.layers.skew)
            history.rebuild()
            export_published(
                session,
                settings.paths.corrected_uri,
                [view],
                definitions=settings.definitions,
                keeps=timedelta(days=settings.batch.vacuum_days),
                step=lambda *_: None,
            )
        yield settings, DeltaTable(f"{settings.paths.corrected_uri}/{view}").file_uris()


def measured(
    name: str, ours: Timings, theirs: Timings, details: Mapping[str, object], promised: Promised
) -> Iterator[Measured]:
    """Rows for the 95th percentiles, beside DuckDB and beside what was promised in seconds."""
    cold, other, again = (percentile(each, 0.95) for each in ours)
    cold_beside, again_beside = percentile(theirs.cold, 0.95), percentile(theirs.again, 0.95)
    p50 = [round(median(each), 4) for each in (*ours, theirs.cold, theirs.again)]
    row = partial(Measured, unit="s", better="low")
    yield row(
        f"{name}, cold p95",
        cold,
        cold_beside,
        what_is_beside="DuckDB",
        limit=OF_COLD,
        details={**details, "p50": p50[0], "p50_beside": p50[3]},
    )
    yield row(f"{name}, cold p95 in seconds", cold, promised.cold, what_is_beside="promised", limit=1.0)
    yield row(
        f"{name}, again p95",
        again,
        again_beside,
        what_is_beside="DuckDB",
        limit=OF_AGAIN,
        details={"p50": p50[2], "p50_beside": p50[4]},
    )
    if promised.again is not None:
        yield row(f"{name}, again p95 in seconds", again, promised.again, what_is_beside="promised", limit=1.0)
    yield row(f"{name}, another question p95", other, again_beside, what_is_beside="DuckDB", details={"p50": p50[1]})


def cents_by_day(body: bytes) -> list[int]:
    """Of the points that have a value, in order."""
    [series] = orjson.loads(body)["series"]
    return [cents for point in series["points"] if (cents := round(Decimal(str(point["value"] or 0)) * 100))]


def refuse_difference(theirs: Sequence[object], ours: Sequence[object]) -> None:
    """RuntimeError if both are not the same numbers."""
    if not theirs or [int(each) for each in theirs] != list(ours):  # type: ignore[call-overload]
        raise RuntimeError(f"DuckDB and the answer disagree: {theirs[:3]} and {ours[:3]}")


def _offset(first: date) -> str:
    """SQL of the seconds east of UTC of a window, in a range in which clocks are changed at most once."""
    zone = ZoneInfo(ZONE)
    days = [first + timedelta(days=number) for number in range(DAYS + 1)]
    offsets = [
        int((datetime.combine(day, datetime.min.time(), zone).utcoffset() or timedelta()).total_seconds())
        for day in days
    ]
    changed = next((number for number, each in enumerate(offsets) if each != offsets[0]), None)
    if changed is None:
        return str(offsets[0])
    # Clocks are changed at 01:00 UTC, in a quarter hour in which nothing is sold.
    at = seconds(datetime.combine(days[changed - 1], datetime.min.time(), UTC)) + 3600
    return f'CASE WHEN epoch_us("window") // 1000000 < {at} THEN {offsets[0]} ELSE {offsets[-1]} END'


def _store(number: int) -> Store:
    """Each tenth has the same opening hours."""
    opens, weekdays = 6 + number % 10, ("mon", "tue", "wed", "thu", "fri", "sat")
    return Store(id=str(number), timezone=ZONE, opening_hours=dict.fromkeys(weekdays, (f"{opens:02}:00-21:00",)))
