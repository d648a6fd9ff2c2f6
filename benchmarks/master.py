"""A master dataset of millions of receipts, made column by column in seconds: what the archive would have written.

Day files in the columns of `event_schema`, Snappy, one receipt in ten delivered twice. The parsed lines and the raw
bytes, which no view reads, are left empty: the files are smaller than real ones and as fast to read.
"""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.delta.tables import event_schema
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

FIRST_DAY = date(2026, 1, 1)
TILLS, PARTITIONS = 8, 4
OPENS, OPEN_HOURS = 7, 14
REPEATED = 0.1
DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Shape:
    """What is sold where.

    Attributes:
        stores: how many sell.
        skus: how many SKUs there are.
        skew: 1 sells all SKUs alike; the greater, the more of the lines are of few SKUs.
        lines: the most lines of a receipt; half as many and a half on average.
    """

    stores: int = 100
    skus: int = 20_000
    skew: int = 3
    lines: int = 18


USUAL = Shape()


@dataclass(frozen=True)
class Master:
    """A table that was made. `receipts` without repetitions, `lines` of them."""

    path: Path
    deliveries: int
    receipts: int
    lines: int
    shape: Shape = USUAL

    @property
    def files(self) -> list[str]:
        """Its Parquet files."""
        return sorted(map(str, self.path.glob("day=*/*.parquet")))


def make(path: Path, receipts: int, days: int, first_day: date = FIRST_DAY, shape: Shape = USUAL) -> Master:
    """Write the table. `receipts` counts events; a tenth of them is delivered twice."""
    rng = np.random.default_rng(7)
    path.mkdir(parents=True)
    adds, deliveries, lines = [], 0, 0
    per_day = receipts // days
    for number in range(days):
        day = first_day + timedelta(days=number)
        table, of_day = _day(rng, day, per_day, deliveries, shape)
        adds.append(_write(path, day, table))
        deliveries += table.num_rows
        lines += of_day
    _write_log(path, adds)
    return Master(path, deliveries, per_day * days, lines, shape)


def add(master: Master, day: date, receipts: int, received_at: datetime) -> None:
    """Append receipts of that day, all received then, as one more version of the table."""
    version = len(list((master.path / "_delta_log").glob("*.json")))
    table, _ = _day(np.random.default_rng(version), day, receipts, master.deliveries * (version + 1), master.shape)
    at = table.schema.get_field_index("received_at")
    table = table.set_column(
        at, "received_at", pa.repeat(pa.scalar(received_at, table["received_at"].type), len(table))
    )
    _commit(master.path, version, [_write(master.path, day, table)])


def _write(path: Path, day: date, table: pa.Table) -> dict[str, object]:
    """Write one more file of that day; gives back what the log says of it."""
    folder = path / f"day={day}"
    folder.mkdir(exist_ok=True)
    file = folder / f"part-{len(list(folder.iterdir())):05}.snappy.parquet"
    pq.write_table(table, file, compression="snappy", use_deprecated_int96_timestamps=True)
    return _add(file.relative_to(path), day, file.stat().st_size, table)


def _day(rng: np.random.Generator, day: date, receipts: int, first_offset: int, shape: Shape) -> tuple[pa.Table, int]:
    once, lines = _receipts(rng, day, receipts, shape)
    again = pa.array(np.sort(rng.choice(receipts, int(receipts * REPEATED), replace=False)))
    later = once.take(again)
    at = later.schema.get_field_index("received_at")
    delay = pa.array(rng.integers(1_000_000, 3_600_000_000, len(again))).cast(pa.duration("us"))
    later = later.set_column(at, "received_at", pc.add(later["received_at"], delay))
    rows = pa.concat_tables([once, later])
    places = np.arange(first_offset, first_offset + rows.num_rows)
    for name, values in (("offset", places // PARTITIONS), ("partition", (places % PARTITIONS).astype("int32"))):
        rows = rows.append_column(name, pa.array(values))
    schema = event_schema(POS_TRANSACTIONS)
    return rows.select([name for name in schema.names if name != "day"]), lines


def _receipts(rng: np.random.Generator, day: date, receipts: int, shape: Shape) -> tuple[pa.Table, int]:
    midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1_000_000)
    happened = midnight + (OPENS * 3600 + np.sort(rng.integers(0, OPEN_HOURS * 3600, receipts))) * 1_000_000
    store, till = rng.integers(1, shape.stores + 1, receipts), rng.integers(1, TILLS + 1, receipts)
    number = (happened // 1_000_000) * 1000 + rng.permutation(receipts) % 1000
    texts = [pc.cast(pa.array(each), pa.string()) for each in (store, till, number, happened // 1000)]
    identity = pc.binary_join_element_wise('["', texts[0], '","', texts[1], '","', texts[2], '",', texts[3], "]", "")
    counts = rng.integers(1, shape.lines + 1, receipts)
    items, cents, units = _items(rng, counts, shape)
    hashes = rng.integers(-(2**63), 2**63 - 1, (2, receipts))  # equal only for repeated rows
    instant = pa.timestamp("us", tz="UTC")
    returned = rng.random(receipts) < 0.02  # noqa: PLR2004 - share of returns
    nothing, never = np.zeros(receipts, "int64"), pa.array(np.zeros(receipts, "bool"))
    columns = {
        "topic": pa.repeat("pos_transactions", receipts),
        "store": texts[0],
        "till": texts[1],
        "received_at": pa.array(happened + rng.integers(100_000, 5_000_000, receipts)).cast(instant),
        "happened_at": pa.array(happened).cast(instant),
        "identity": identity,
        "identity_hash": pa.array(hashes[0]),
        "payload_hash": pa.array(hashes[1]),
        "transaction_id": texts[2],
        "currency": pa.repeat("EUR", receipts),
        "is_sale": pa.array(~returned),
        "is_return": pa.array(returned),
        "is_exchange": never,
        "is_zero": never,
        "gross_sales": pa.array(np.where(returned, 0, cents)),
        "returns_value": pa.array(np.where(returned, cents, 0)),
        "units_sold": pa.array(units),
        "units_returned": pa.array(nothing),
        "line_count": pa.array(counts),
        "items": items,
        "key": pc.cast(texts[0], pa.binary()),
    }
    schema = event_schema(POS_TRANSACTIONS)
    empty = pa.array(np.zeros(receipts + 1, "int32"))
    for name in ("lines", "flags"):
        kind = schema.field(name).type
        columns[name] = pa.ListArray.from_arrays(empty, pa.array([], kind.value_type), type=kind)
    columns["value"] = pa.repeat(pa.scalar(b"{}"), receipts)
    for field in schema:  # optional fields
        if field.name not in columns and field.name not in {"day", "partition", "offset"}:
            columns[field.name] = pa.nulls(receipts, field.type)
    return pa.table(columns), int(counts.sum())


def _items(rng: np.random.Generator, counts: np.ndarray, shape: Shape) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Give the items of the receipts, and what each receipt sums up to in cents and pieces."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    total = int(starts[-1])
    skus = pc.cast(pa.array(np.arange(8_580_000, 8_580_000 + shape.skus)), pa.string())
    ranks = (shape.skus * rng.random(total) ** shape.skew).astype("int32")  # sales are skewed
    cents, units = rng.integers(50, 2000, total), rng.integers(1, 4, total)
    kind = event_schema(POS_TRANSACTIONS).field("items").type
    children = [skus.take(pa.array(ranks)), pa.array(cents), pa.array(units), pa.array(np.ones(total, "bool"))]
    structs = pa.StructArray.from_arrays(children, fields=list(kind.value_type))
    lists = pa.ListArray.from_arrays(pa.array(starts.astype("int32")), structs, type=kind)
    return lists, np.add.reduceat(cents, starts[:-1]), np.add.reduceat(units, starts[:-1])


def _add(file: Path, day: date, size: int, rows: pa.Table) -> dict[str, object]:
    found = pc.min_max(rows["received_at"]).as_py()
    least, greatest = found["min"], found["max"] + timedelta(milliseconds=1)  # Delta's statistics count milliseconds
    stats = {
        "numRecords": rows.num_rows,
        "minValues": {"received_at": _instant(least)},
        "maxValues": {"received_at": _instant(greatest)},
        "nullCount": {"received_at": 0},
    }
    return {
        "add": {
            "path": str(file),
            "partitionValues": {"day": str(day)},
            "size": size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps(stats),
        }
    }


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def _write_log(path: Path, adds: list[dict[str, object]]) -> None:
    """Write the first commit (Delta protocol, version 0 of the table)."""
    schema = from_arrow_schema(event_schema(POS_TRANSACTIONS)).json()
    table = {
        "id": "5b8e6c5e-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": ["day"],
        "configuration": {"delta.appendOnly": "true"},
        "createdTime": 0,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    actions: list[dict[str, object]] = [{"protocol": protocol}, {"metaData": table}, *adds]
    (path / "_delta_log").mkdir()
    _commit(path, 0, actions)


def _commit(path: Path, version: int, actions: list[dict[str, object]]) -> None:
    (path / "_delta_log" / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))
