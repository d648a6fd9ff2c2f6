"""SQL beside REST: a day of one store by both, and answers of REST while BI tools refresh their dashboards.

A client of a BI tool refreshes a dashboard of four charts every five seconds, which is what Grafana offers as its
shortest interval, over a connection that it keeps. The clients are in a process of their own.
"""

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import orjson
import psycopg

from benchmarks.answers import seconds_of_answers
from benchmarks.cold_answers import response_of, timed
from benchmarks.during_rebuild import rebuild
from benchmarks.report import Measured, percentile
from benchmarks.traffic import STORES, ReceiptStream, in_background
from deploy.cassandra import session_of
from master_dataset.registry.registry import Registry
from master_dataset.registry.store_tables import Edit
from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.sql.authentication import DEFAULT_TENANT

if TYPE_CHECKING:
    from deploy.settings import Settings

ROUNDS = 60
CLIENTS, REFRESH_SECONDS = 20, 5.0
SECONDS = 60.0
"""Of asking over REST, without the clients and with them."""
PER_SECOND = 100
"""Receipts that arrive meanwhile, so that no dashboard is the same twice."""
OF_REST, OF_ALONE = 3.0, 2.0
DAY = "SELECT start, net_sales FROM sales_15m WHERE store = '1' AND start >= %s AND start < %s ORDER BY start"
DASHBOARD = (
    "SELECT start, net_sales FROM sales_15m WHERE store = '1' AND start >= current_date ORDER BY start",
    "SELECT store, sum(net_sales) FROM sales_day WHERE day >= current_date - 7 GROUP BY store ORDER BY 2 DESC",
    "SELECT day, sum(receipts) FROM sales_day WHERE day >= current_date - 7 GROUP BY day ORDER BY day",
    """SELECT sku, sum(net_sales) FROM sales_by_sku_day WHERE store = '2' AND day = current_date
    GROUP BY sku ORDER BY 2 DESC LIMIT 10""",
)


def sql_beside_rest(settings: "Settings") -> Iterator[Measured]:
    """On a running stack that has archived receipts of yesterday."""
    stores = [Store(id=str(number), timezone="UTC") for number in range(1, STORES + 1)]
    Registry(session_of(settings.cassandra.address)).save(Edit(stores), settings.layers.skew)
    rebuild("--wait")  # these receipts are too old for the speed layer
    yield _a_day(settings)
    with in_background(ReceiptStream(settings, POS_TRANSACTIONS.topic, PER_SECOND)):
        alone = seconds_of_answers(settings, SECONDS)
        with _dashboards(settings) as refreshed:
            beside = seconds_of_answers(settings, SECONDS)
    details = {
        "clients": CLIENTS,
        "refresh_seconds": REFRESH_SECONDS,
        "dashboards": len(refreshed),
        "dashboard_p50": round(median(refreshed), 3),
        "answers": len(beside),
        "answers_alone": len(alone),
        "p50": round(median(beside), 5),
        "p50_alone": round(median(alone), 5),
    }
    both = percentile(beside, 0.99), percentile(alone, 0.99)
    yield Measured(
        f"sql, answers p99 beside {CLIENTS} BI clients",
        *both,
        "s",
        "without them",
        better="low",
        limit=OF_ALONE,
        details=details,
    )


def connected(port: int, key: str) -> "psycopg.Connection[Any]":
    """A client of the SQL component."""
    return psycopg.connect(
        host="127.0.0.1", port=port, user=DEFAULT_TENANT, password=key, dbname="galatea", autocommit=True
    )


def _a_day(settings: "Settings") -> Measured:
    """Yesterday in windows, in turns."""
    day = datetime.now(UTC).date() - timedelta(days=1)
    bounds = [datetime.combine(each, datetime.min.time(), UTC) for each in (day, day + timedelta(days=1))]
    asked = {"store": "1", "from": day, "to": day + timedelta(days=1), "grain": "15m"}
    rest: list[float] = []
    sql: list[float] = []
    with connected(settings.sql.port, _key(settings)) as connection:
        for _ in range(ROUNDS):
            taken, body = timed(lambda: response_of(settings, "net_sales", asked))
            rest.append(taken)
            taken, rows = timed(lambda: connection.execute(DAY, bounds).fetchall())
            sql.append(taken)
    points = [point for series in orjson.loads(body)["series"] for point in series["points"]]
    shown = [Decimal(str(point["value"])) for point in points if point["value"]]
    if not shown or [value for _, value in rows if value] != shown:
        raise RuntimeError(f"SQL and REST disagree: {rows[:3]} and {shown[:3]}")
    details = {
        "windows": len(shown),
        "p95": round(percentile(sql, 0.95), 4),
        "p95_rest": round(percentile(rest, 0.95), 4),
    }
    name = "sql, a day of one store"
    return Measured(name, median(sql), median(rest), "s", "REST", better="low", limit=OF_REST, details=details)


@contextmanager
def _dashboards(settings: "Settings") -> Iterator[list[float]]:
    """The clients, from when each has shown its dashboard once. Afterwards: the seconds that each refresh took."""
    command = [sys.executable, "-m", "benchmarks.sql", str(settings.sql.port), str(settings.home / "operator.key")]
    taken = list[float]()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        commands, lines = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
        lines.readline()
        try:
            yield taken
        finally:
            commands.close()
            taken += orjson.loads(lines.readline() or b"[]")
    if process.returncode or not taken:
        raise RuntimeError(f"the BI clients ended with exit code {process.returncode} after {len(taken)} refreshes")


class _Dashboard(threading.Thread):
    """One client. `taken`: the seconds of each refresh."""

    def __init__(self, port: int, key: str, delay: float, leave: threading.Event) -> None:
        super().__init__()
        self.taken: list[float] = []
        self._connection, self._delay, self._leave = connected(port, key), delay, leave

    def run(self) -> None:
        while not self._leave.wait(self._delay):
            began = time.monotonic()
            for query in DASHBOARD:
                self._connection.execute(query).fetchall()
            self.taken.append(time.monotonic() - began)
            self._delay = max(0.0, REFRESH_SECONDS - self.taken[-1])


def _key(settings: "Settings") -> str:
    return (settings.home / "operator.key").read_text().strip()


def main(arguments: Sequence[str] | None = None) -> None:
    """Refresh dashboards until stdin ends; a line when all have begun, then a line with the seconds of each refresh."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sql", description=main.__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("key_file", type=Path)
    own = parser.parse_args(arguments)
    leave, key = threading.Event(), own.key_file.read_text().strip()
    clients = [_Dashboard(own.port, key, REFRESH_SECONDS * number / CLIENTS, leave) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    while not all(client.taken for client in clients):
        time.sleep(0.1)
    print("begun", flush=True)
    sys.stdin.read()
    leave.set()
    for client in clients:
        client.join()
    print(orjson.dumps([taken for client in clients for taken in client.taken]).decode(), flush=True)


if __name__ == "__main__":
    main()
