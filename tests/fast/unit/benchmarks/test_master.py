"""The table that benchmarks are measured on has the columns of the real one."""

from pathlib import Path

from deltalake import DeltaTable

from benchmarks.master import make
from master_dataset.delta.tables import event_schema
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS


def test_a_generated_table_has_the_columns_of_the_master_dataset(tmp_path: Path) -> None:
    master = make(tmp_path / "pos_transactions", receipts=100, days=2)

    table = DeltaTable(str(master.path)).to_pyarrow_table()

    expected = event_schema(POS_TRANSACTIONS)
    assert table.num_rows == master.deliveries == 110
    assert {field.name: field.type for field in table.schema} == {field.name: field.type for field in expected}
    assert table.column("discount").null_count == table.num_rows
