"""The titles of receipts in real Cassandra: the latest window counts, and in one window the greatest title."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from itertools import permutations

import pyarrow as pa
import pytest
from cassandra.cluster import Session

from master_dataset.parsing.rows import rows
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.products.reader import ProductReader
from serving_layer.tables.async_session import AsyncSession
from serving_layer.tables.registry import ProductBlockTables
from speed_layer import titles
from speed_layer.titles import TitleWriter
from tests.support.corpus.case import receipt
from tests.support.terms import default_terms

SEEN = [("09:00", "old"), ("09:20", "milk"), ("09:29", "Milk"), ("09:05", "late")]


def parsed(sku: str, sent: Sequence[tuple[str, str]]) -> pa.RecordBatch:
    values = [
        receipt({"happened_at": f'"2026-03-07T{at}:00Z"', "title": f'"{title}"', "sku": f'"{sku}"'})
        for at, title in sent
    ]
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"1"] * len(sent), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": [POS_TRANSACTIONS.topic] * len(sent),
            "partition": pa.array([0] * len(sent), pa.int32()),
            "offset": pa.array(range(len(sent)), pa.int64()),
            "timestamp": pa.array([1_900_000_000_000_000] * len(sent), pa.timestamp("us", tz="UTC")),
        }
    )
    [found] = rows(POS_TRANSACTIONS, iter([batch]), default_terms)
    return found


def kept(session: Session, tenant: str, skus: Sequence[str]) -> Mapping[str, str]:
    reader = ProductReader(ProductBlockTables(AsyncSession(session)), time.monotonic)

    async def ask() -> Mapping[str, str]:
        return await reader.seen_titles(tenant, skus)

    return asyncio.run(ask())


def test_any_order_of_deliveries_and_processes_keeps_the_same_title(
    shared_cassandra: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = TitleWriter(lambda: shared_cassandra, lambda: {"1": "seen"}.get)
    orders = list(permutations(SEEN))

    for number, order in enumerate(orders):
        for sent in order:
            monkeypatch.setattr(titles, "_written", {})  # each by another process
            write(parsed(f"sku-{number}", [sent]))()
    write(parsed("together", SEEN))()

    skus = [*(f"sku-{number}" for number in range(len(orders))), "together", "unsold"]
    assert kept(shared_cassandra, "seen", skus) == dict.fromkeys(skus[:-1], "milk")
    assert kept(shared_cassandra, "another", skus) == {}
