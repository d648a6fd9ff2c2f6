"""Few events that are large are read by Spark, which has bounded memory, and not by this process."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from batch_layer import arrow_events, computed
from batch_layer.arrow_events import TooManyBytesError, archived_table
from batch_layer.computed import ArrowPortion, PortionEvents, computed_portion
from batch_layer.master import Master
from master_dataset.parsing.rows import output_schema
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.visits.visit import RULES
from views.sales import SALES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2026, 3, 7, 12, tzinfo=UTC)
DAY = date(2026, 3, 7)
FEW = 1000


@pytest.fixture
def master(tmp_path: Path) -> Master:
    """Two events of one day."""
    names = [
        name for name in output_schema(POS_TRANSACTIONS).names if name not in ("kind", "reason", "field", "sentence")
    ]
    known: dict[str, Any] = {"day": DAY, "received_at": NOON, "happened_at": NOON, "partition": 0, "identity_hash": 1}
    schema = pa.schema([output_schema(POS_TRANSACTIONS).field(name) for name in names])
    rows = [{**dict.fromkeys(names), **known, "offset": offset, "identity_hash": offset} for offset in range(2)]
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, schema), partition_by=["day"])
    return Master.newest(str(tmp_path))


def portion(master: Master) -> PortionEvents:
    return PortionEvents(POS_TRANSACTIONS, master, [DAY], [DAY], NOON, RULES, (), [SALES])


def no_spark() -> "SparkSession":
    raise AssertionError("Spark is started")


def test_a_small_portion_is_read_in_this_process(master: Master) -> None:
    found = computed_portion(portion(master), no_spark, FEW)

    assert isinstance(found, ArrowPortion)
    assert found.repeats.repeats == 0


def test_a_portion_of_few_large_events_is_read_by_spark(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_events, "MOST_BYTES", 100)
    monkeypatch.setattr(computed, "SparkPortion", lambda of, spark: (of, spark))
    of, spark = portion(master), cast("SparkSession", object())

    with pytest.raises(TooManyBytesError):
        archived_table(POS_TRANSACTIONS, master, [DAY], SALES.columns_read)

    assert cast("Any", computed_portion(of, lambda: spark, FEW)) == (of, spark)
