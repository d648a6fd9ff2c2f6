"""The top 20 of 50,000 SKUs over a week of 50 stores, beside DuckDB over the exported cells; see `benchmarks.chain`."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import orjson

from benchmarks.chain import ZONE, Promised, measured, published, refuse_difference
from benchmarks.cold_answers import answered, beside
from benchmarks.master import Shape
from benchmarks.report import Measured
from views.core.local_time import first_instant

FULL = 105_000
STORES, DAYS, SKUS, TOP = 50, 7, 50_000, 20
SQL = """
SELECT sku, sum(net_sales) AS value FROM read_parquet({files}, hive_partitioning = true)
WHERE epoch_us("window") // 1000000 >= {start} AND epoch_us("window") // 1000000 < {end}
GROUP BY sku ORDER BY value DESC, sku LIMIT {top}
"""


def top_skus(size: int) -> Iterator[Measured]:
    """`size` receipts of 50 stores in a week, published; then the SKUs that sold most."""
    first = datetime.now(UTC).date() - timedelta(days=DAYS + 1)
    with published(size, first, DAYS, Shape(STORES, SKUS, skew=2), "sales_by_sku") as (settings, files):
        last = first + timedelta(days=DAYS)
        asked: dict[str, object] = {"from": first, "to": last, "grain": "total", "by": "total,sku", "top": TOP}
        others = [("sku_net_sales", asked | {"top": TOP + number}) for number in range(1, 20)]
        others += [("sku_units", asked | {"top": TOP + number}) for number in range(20)]
        start, end = (first_instant(ZoneInfo(ZONE), day) for day in (first, last))
        ours, bodies = answered(settings, ("sku_net_sales", asked), others)
        theirs, rows = beside(SQL.format(files=files, start=start, end=end, top=TOP))
        series = [each for each in orjson.loads(bodies[0])["series"] if not each.get("other")]
        shown = [(each["dimensions"]["sku"], each["points"][0]["value"]) for each in series]
        if [sku for sku, _ in rows] != [sku for sku, _ in shown]:
            raise RuntimeError(f"DuckDB and the answer disagree: {rows[:3]} and {shown[:3]}")
        cents = [round(Decimal(str(value)) * 100) for _, value in shown]
        refuse_difference([value for _, value in rows], cents)
        details = {"stores": STORES, "days": DAYS, "skus": SKUS, "top": TOP}
        yield from measured("top_skus", ours, theirs, details, Promised(0.5))
