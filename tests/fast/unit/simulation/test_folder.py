"""A simulation in a folder: lines, stores that can be loaded, and a manifest that says what it is."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from galatea.cli.main import app
from lab.simulation.stores import invented_stores, stores_text
from master_dataset.errors import RequestError
from master_dataset.registry.stores import Currency, Sensor, Store, Zone
from master_dataset.registry.stores_file import load, read
from master_dataset.sources import registered_sources

FULL = Store(
    id="010",
    timezone="Asia/Kathmandu",
    name="Čaj",
    tenant="t",
    currency=Currency("NPR", 2),
    opening_hours={"mon": ("08:00-12:00", "13:00-24:00")},
    floor_m2=Decimal("12.5"),
    open_since=date(2020, 1, 1),
    country="NP",
    subdivision="P3",
    day_starts_at="04:00",
    closed_on=(date(2026, 12, 25),),
    week_starts_on="sun",
    comp_start_date=date(2021, 1, 1),
    conversion_target=Decimal(30),
    sensors=(Sensor("c", "people_counts", "d", date(2020, 1, 1), None), Sensor("q", "queue_events", "Q")),
    zones=(Zone("tea", Decimal(3)), Zone("no")),
)


def simulate(*words: str) -> None:
    answered = CliRunner().invoke(app, ["simulate", "--from", "2026-03-07", *words])
    if answered.exception:
        raise answered.exception


@pytest.mark.parametrize("stores", [[FULL], invented_stores(6), [Store("1", "UTC", name="1")]])
def test_stores_that_are_written_are_read_as_they_were(stores: Sequence[Store]) -> None:
    assert read(stores_text(stores)) == list(stores)


def test_a_folder_holds_a_file_for_every_source(tmp_path: Path) -> None:
    folder = tmp_path / "simulated"
    simulate("--to", "2026-03-08", "--stores", "2", "--out", str(folder))

    lines = {file.stem: file.read_bytes().splitlines() for file in folder.glob("*.jsonl")}
    manifest = orjson.loads((folder / "manifest.json").read_bytes())
    assert set(lines) == set(registered_sources()) == set(manifest["sources"])
    for source, counts in manifest["sources"].items():
        assert counts["sent"] == len(lines[source])
        assert counts["sent"] == counts["events"] + counts["duplicates"] + counts["dead_letters"]
    assert manifest["simulated"] is True
    assert (manifest["seed"], manifest["from"], manifest["to"]) == ("1", "2026-03-07", "2026-03-08")
    assert load(folder / "stores.yaml") == invented_stores(2)


def test_a_folder_that_holds_something_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()

    with pytest.raises(RequestError):
        simulate("--to", "2026-03-07", "--stores", "1", "--out", str(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize(
    "words",
    [
        ("--stores", "1"),
        ("--stores", "1", "--out", "x", "--send"),
        ("--stores", "1", "--out", "x", "--live", "2"),
        ("--stores", "1", "--stores-file", "x", "--send"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(RequestError):
        simulate("--to", "2026-03-07", *words)


def test_without_faults_there_are_events_alone(tmp_path: Path) -> None:
    simulate("--to", "2026-03-07", "--stores", "1", "--no-faults", "--sources", "queue_events", "--out", str(tmp_path))

    (counts,) = orjson.loads((tmp_path / "manifest.json").read_bytes())["sources"].values()
    assert counts["sent"] == counts["events"] > 0
