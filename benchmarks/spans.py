"""Answers over many days or stores, beside DuckDB over the same corrected cells in the exported table.

DuckDB runs in this process on a warm file and gives rows; ours come merged over HTTP as JSON, with basis and flags.
Both must give the same numbers.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import orjson
from deltalake import DeltaTable

from batch_layer.maintenance.export import export_published
from benchmarks import local
from benchmarks.cold_answers import answered, beside
from benchmarks.history import History
from benchmarks.report import Measured
from deploy.cassandra import session_of

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 1_000_000
DAYS, STORES = 365, 50
FIRST_AT_MOST = 4.0
"""How many times as long as DuckDB the first answer for many stores may take."""
VIEW, METRIC = "sales", "net_sales"
DAY, HOUR = 'epoch_us("window") // 86400000000', 'epoch_us("window") // 3600000000 % 168'
SQL = (
    "SELECT {by}, sum(gross_sales) - sum(returns_value) FROM read_parquet({files}, hive_partitioning = true) "
    "WHERE {where} GROUP BY 1"
)


def spans(size: int) -> Iterator[Measured]:
    """`size` receipts over the year. Medians of the first answers of processes that have just started, and of more."""
    today = datetime.now(UTC).date()
    first = today - timedelta(days=DAYS)
    with local.own_home() as settings:
        history = History(settings, size, DAYS, first, datetime.now(UTC).replace(microsecond=0, second=0))
        with local.running(settings, "kafka", "cassandra"):
            history.rebuild()
            export_published(
                session_of(settings.cassandra.address),
                settings.paths.corrected_uri,
                [VIEW],
                definitions=settings.definitions,
                keeps=timedelta(days=settings.batch.vacuum_days),
                step=lambda *_: None,
            )
        files = DeltaTable(f"{settings.paths.corrected_uri}/{VIEW}").file_uris()
        year = {"from": first, "to": today, "timezone": "UTC", "store": "1"}
        side = {
            "from": today - timedelta(days=1),
            "to": today,
            "timezone": "UTC",
            "store": [str(number + 1) for number in range(STORES)],
        }
        last = f"day = '{side['from']}' AND CAST(store AS INT) <= {STORES}"
        for name, parameters, by, where in (
            ("a year by day", year | {"grain": "day"}, DAY, "store = '1'"),
            ("a year by hour of week", year | {"grain": "hour_of_week"}, HOUR, "store = '1'"),
            (f"{STORES} stores", side | {"grain": "day"}, "store", last),
        ):
            sql = SQL.format(by=by, files=files, where=where)
            yield from _measured(settings, name, parameters, sql)


def _measured(settings: "Settings", name: str, parameters: Mapping[str, Any], sql: str) -> Iterator[Measured]:
    ours, bodies = answered(settings, (METRIC, parameters), ())
    theirs, rows = beside(sql)
    found, expected = _cents(bodies[0]), sorted(int(cents) for _, cents in rows if cents)
    if not expected or any(_cents(body) != expected for body in bodies):
        raise RuntimeError(f"DuckDB and the answer disagree about {name}: {len(expected)} and {len(found)} numbers")
    details = {"points": len(found), "bytes": len(bodies[0])}
    row = partial(Measured, unit="s", what_is_beside="DuckDB", better="low")
    limit = FIRST_AT_MOST if name.startswith(str(STORES)) else None
    cold = {"seconds": [round(each, 4) for each in ours.cold], "beside": [round(each, 4) for each in theirs.cold]}
    yield row(f"spans, {name}, first", median(ours.cold), median(theirs.cold), limit=limit, details=cold)
    yield row(f"spans, {name}", median(ours.again), median(theirs.again), details=details)


def _cents(body: bytes) -> list[int]:
    values = [point["value"] for series in orjson.loads(body)["series"] for point in series["points"]]
    return sorted(cents for value in values if (cents := round(Decimal(value or 0) * 100)))
