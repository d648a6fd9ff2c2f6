"""Answers over many days or stores, beside DuckDB over the same corrected cells in the exported table.

DuckDB runs in this process on a warm file and gives rows; ours come merged over HTTP as JSON, with basis and flags.
Both must give the same numbers.
"""

import http.client
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import duckdb
import orjson
from deltalake import DeltaTable

from batch_layer.maintenance.export import export_published
from benchmarks import local
from benchmarks.history import History
from benchmarks.report import Measured
from deploy.cassandra import session_of
from views.control.generation import Generations

if TYPE_CHECKING:
    from deploy.settings import Settings

FULL = 1_000_000
DAYS, STORES, ROUNDS = 365, 50, 9
SETTLED_SECONDS = 10
"""The first answer is timed when the start of the speed layer no longer competes with it, as DuckDB runs alone."""
VIEW, METRIC = "sales", "net_sales"
DAY, HOUR = 'epoch_us("window") // 86400000000', 'epoch_us("window") // 3600000000 % 168'
SQL = (
    "SELECT {by}, sum(gross_sales) - sum(returns_value) FROM read_parquet({files}, hive_partitioning = true) "
    "WHERE {where} GROUP BY 1"
)


def spans(size: int) -> Iterator[Measured]:
    """`size` receipts over the year. The first answer of an API that has just started, then the median of more."""
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
            yield _measured(settings, name, parameters, sql)


def _measured(settings: "Settings", name: str, parameters: Mapping[str, Any], sql: str) -> Measured:
    with local.running(settings, "kafka", "cassandra", "speed", "api"):
        generations = Generations(local.cassandra(settings))
        local.until(lambda: bool(generations.positions(generations.pointer().generation)), "the speed layer")
        time.sleep(SETTLED_SECONDS)
        first, found = timed(lambda: response_of(settings, METRIC, parameters))
        again = [timed(lambda: response_of(settings, METRIC, parameters))[0] for _ in range(ROUNDS)]
    with duckdb.connect(config={"threads": 2}) as connection:
        beside_first, expected = timed(lambda: connection.execute(sql).fetchall())
        beside = [timed(lambda: connection.execute(sql).fetchall())[0] for _ in range(ROUNDS)]
    ours, theirs = _cents(found), sorted(int(cents) for _, cents in expected if cents)
    if not theirs or ours != theirs:
        raise RuntimeError(f"DuckDB and the answer disagree about {name}: {len(theirs)} and {len(ours)} numbers")
    details = {
        "first": round(first, 4),
        "first_beside": round(beside_first, 4),
        "points": len(ours),
        "bytes": len(found),
    }
    return Measured(f"spans, {name}", median(again), median(beside), "s", "DuckDB", better="low", details=details)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """How many seconds it took, and what it returned."""
    began = time.monotonic()
    found = work()
    return time.monotonic() - began, found


def response_of(settings: "Settings", metric: str, parameters: Mapping[str, Any]) -> bytes:
    """The body of an answer. RuntimeError if it is none."""
    connection = http.client.HTTPConnection("127.0.0.1", settings.api.port)
    key = (settings.home / "operator.key").read_text().strip()
    path = f"/v1/metrics/{metric}?{urlencode(parameters, doseq=True)}"
    connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    if answer.status != http.client.OK:
        raise RuntimeError(body.decode())
    return body


def _cents(body: bytes) -> list[int]:
    values = [point["value"] for series in orjson.loads(body)["series"] for point in series["points"]]
    return sorted(cents for value in values if (cents := round(Decimal(value or 0) * 100)))
