"""Parsed rows on their way from the task that parsed them to the one that counts them."""

import pyarrow as pa
import pytest

from speed_layer import stream
from speed_layer.stream import packed, unpacked
from views.control.speed_layout import BY_VIEW, SpeedLayout

SCHEMA = pa.schema([("store", pa.string()), ("lines", pa.list_(pa.int64()))])


def batch(*stores: str | None) -> pa.RecordBatch:
    rows = [{"store": store, "lines": [number]} for number, store in enumerate(stores)]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


@pytest.mark.parametrize("layout", [BY_VIEW, SpeedLayout.for_stores(100)], ids=["by view", "by store"])
@pytest.mark.parametrize("most_bytes", [1, 100, 2**20])
def test_every_row_arrives_once_at_the_task_of_its_store(
    layout: SpeedLayout, most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PACKED_BYTES", most_bytes)
    sent = [batch("1", None, "2", "1"), batch(), batch(*map(str, range(50)))]
    found: dict[int, list[pa.RecordBatch]] = {}
    for each in packed(sent, lambda store: layout.task(store, 3)):
        found.setdefault(each["task"][0].as_py(), []).append(each)

    rows = {task: [row for each in unpacked(own) for row in each.to_pylist()] for task, own in found.items()}

    everything = [row for each in sent for row in each.to_pylist()]
    assert sorted(map(repr, (row for own in rows.values() for row in own))) == sorted(map(repr, everything))
    for task, own in rows.items():
        assert {layout.task(row["store"], 3) if row["store"] else 0 for row in own} == {task}


def test_stores_that_share_a_bucket_share_a_task() -> None:
    layout = SpeedLayout.for_stores(100)
    stores = [str(number) for number in range(1000)]

    assert all(layout.task(store, 7) == int(layout.place(store)) % 7 for store in stores)
    assert {layout.task(store, 7) for store in stores} == set(range(7))
