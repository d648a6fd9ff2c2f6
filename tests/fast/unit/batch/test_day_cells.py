"""Day cells as Spark's workers make them: parts of UTC days by the business days of each store."""

from datetime import date, time, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from batch_layer import day_cells
from batch_layer.day_cells import DayCells, PartBuffer
from master_dataset.compressed_blocks import unpack
from views import view_named
from views.core.day_cells import DayShape, day_cuts
from views.core.local_time import BusinessDays
from views.core.sketch import sketch_of

DAY = date(2026, 3, 29)
MIDNIGHT = 1774742400
SALES, DEVICES = view_named("sales"), view_named("wifi_devices")
BRATISLAVA = BusinessDays(ZoneInfo("Europe/Bratislava"), time(4))


def cells_of(store: str, windows: list[int], state: int = 1) -> list[dict[str, object]]:
    keys = {"store": store, "day": DAY, "d0": "EUR"}
    states = {f"s{place}": state for place, _ in enumerate(SALES.columns)}
    return [{**keys, "window": window, **states} for window in windows]


def day_cells_of(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    calendar = {"1": BRATISLAVA}
    found: list[dict[str, object]] = DayCells(DayShape.of(SALES), calendar).of(pa.Table.from_pylist(rows)).to_pylist()
    return found


def test_a_utc_day_is_cut_where_the_business_day_of_its_store_begins() -> None:
    begins = MIDNIGHT + 2 * 3600  # clocks go forward that night: 04:00 is 02:00 UTC

    cut, whole = day_cuts(BRATISLAVA, DAY), day_cuts(BusinessDays(ZoneInfo("UTC")), DAY)

    assert (cut, whole) == ((MIDNIGHT, begins), (MIDNIGHT,))
    found = day_cells_of(cells_of("1", [MIDNIGHT, begins - 900, begins, begins + 900]) + cells_of("2", [MIDNIGHT]))
    assert [(row["store"], row["start"], row["end"], row["s0"]) for row in found] == [
        ("1", MIDNIGHT, begins, 2),
        ("1", begins, MIDNIGHT + 86_400, 2),
        ("2", MIDNIGHT, MIDNIGHT + 86_400, 1),
    ]
    assert [row["receipts"] for row in found][:1] == [[1] * 7 + [2] * 89]


def test_a_day_that_a_time_zone_skipped_has_no_part() -> None:
    apia = BusinessDays(ZoneInfo("Pacific/Apia"))  # 30 December 2011 did not happen

    assert day_cuts(apia, date(2011, 12, 30)) == (1325203200, 1325203200 + 10 * 3600)


def test_sums_that_might_not_fit_are_left_to_the_blocks() -> None:
    found = day_cells_of(cells_of("1", [MIDNIGHT, MIDNIGHT + 900], 2**61) + cells_of("2", [MIDNIGHT]))

    assert {row["store"] for row in found} == {"2"}


def test_sketches_are_united() -> None:
    rows = [
        {"store": "1", "day": DAY, "window": MIDNIGHT + 900 * place}
        | {f"d{at}": "x" for at, _ in enumerate(DEVICES.dimensions)}
        | {
            f"s{at}": sketch_of([place, 7]) if column.by == "union" else place
            for at, column in enumerate(DEVICES.columns.values())
        }
        for place in range(3)
    ]

    [found] = DayCells(DayShape.of(DEVICES), {}).of(pa.Table.from_pylist(rows)).to_pylist()

    at = next(at for at, column in enumerate(DEVICES.columns.values()) if column.by == "union")
    assert found[f"s{at}"] == sketch_of([0, 1, 2, 7])


def test_parts_are_of_one_day_each_and_hold_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_cells, "ROWS_OF_PART", 3)
    makes, buffer = DayCells(DayShape.of(SALES), {}), PartBuffer("one")
    for store in map(str, range(4)):
        rows = cells_of(store, [MIDNIGHT]) + [
            {**row, "day": DAY + timedelta(days=1), "window": MIDNIGHT + 86_400} for row in cells_of(store, [MIDNIGHT])
        ]
        buffer.add(makes.of(pa.Table.from_pylist(rows)))

    parts = list(buffer.parts())

    assert [(day, name, stores) for day, name, _, stores in parts] == [
        (DAY, "one-1", ["0", "1", "2"]),
        (DAY, "one-2", ["3"]),
        (DAY + timedelta(days=1), "one-3", ["0", "1", "2"]),
        (DAY + timedelta(days=1), "one-4", ["3"]),
    ]
    assert [unpack(packed)["store"].to_pylist() for _, _, packed, _ in parts][:2] == [["0", "1", "2"], ["3"]]
    assert list(buffer.parts()) == []


def test_parts_have_few_bytes_however_long_their_texts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(day_cells, "BYTES_OF_PART", 4_000)
    stores = [Random(number).randbytes(128).hex() for number in range(40)]
    buffer = PartBuffer("one")
    buffer.add(
        DayCells(DayShape.of(SALES), {}).of(
            pa.Table.from_pylist([row for store in stores for row in cells_of(store, [MIDNIGHT])])
        )
    )

    parts = list(buffer.parts())

    assert max(len(block) for _, _, block, _ in parts) <= 4_000
    assert sorted(store for *_, own in parts for store in own) == sorted(stores)
    assert [unpack(block)["store"].to_pylist() for _, _, block, _ in parts] == [own for *_, own in parts]
    assert len({name for _, name, _, _ in parts}) == len(parts)
