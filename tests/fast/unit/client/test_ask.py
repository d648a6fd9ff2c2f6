"""`galatea ask`: values in the terminal, as the API answers them."""

import csv
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyarrow.parquet import read_table
from typer.testing import CliRunner, Result

from deploy.secret_files import write_private
from galatea.cli import main
from master_dataset.errors import OperatorError, RequestError
from master_dataset.registry.stores import GroupVersion, Store
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import served

DAY = ("--from", "2026-11-17", "--to", "2026-11-18")


@pytest.fixture
def world() -> World:
    """Three stores in two regions, each with a sale that nobody has published."""
    regions = {"1": "West", "2": "West", "3": "East"}
    stores = [
        Store(id=id_, timezone="UTC", groups=(GroupVersion(None, {"region": of}),)) for id_, of in regions.items()
    ]
    world = World(*stores)
    for number, id_ in enumerate(regions):
        world.receive(receipt("2026-11-17T10:07:00Z", minor=100_000 + number, store=id_), "2026-11-17T10:07:10Z")
    return world


@pytest.fixture
def home(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose API answers from that world."""
    write_private(tmp_path / "operator.key", OPERATOR_KEY)
    with served(Asking(world)) as url:
        monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
        monkeypatch.setenv("GALATEA_API_PORT", str(urlsplit(url).port))
        yield tmp_path


def ask(*words: str) -> Result:
    return CliRunner().invoke(main.app, ["ask", *words])


@pytest.mark.usefixtures("home")
def test_a_total_is_a_line_and_says_what_it_was_computed_from() -> None:
    done = ask("net_sales", "--by", "total", *DAY)

    assert done.exit_code == 0, done.output
    header, line = done.stdout.splitlines()
    assert header.split() == ["stores_counted", "stores_missing", "stores_poor", "when", "value", "notes"]
    assert line.split() == ["3", "0", "0", "2026-11-17", "3,000.03", "EUR", "provisional"]
    assert "net_sales in EUR; publication 0" in done.stderr
    assert "speed as of 2026-11-17 10:07:10 UTC" in done.stderr


@pytest.mark.usefixtures("home")
def test_groups_are_sorted_cut_and_shared() -> None:
    done = ask("net_sales", "--by", "group:region", "--sort", "-value", "--top", "1", "--share", *DAY)

    _, first, rest = (line.split() for line in done.stdout.splitlines())
    assert (first[0], first[-4:]) == ("West", ["2,000.01", "EUR", "66.7", "provisional"])
    assert rest[-5:] == ["EUR", "33.3", "the", "rest,", "provisional"]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("asked", "days"),
    [
        (("--range", "last_7_days"), "from 2026-11-10 to 2026-11-16"),
        (("--range", "yesterday"), "on 2026-11-16"),
        (("--from", "2026-11-02", "--to", "2026-11-05"), "from 2026-11-02 until 2026-11-05"),
    ],
)
def test_without_values_a_sentence_says_for_which_days_and_when_the_newest_event_came(
    asked: tuple[str, ...], days: str, world: World
) -> None:
    loading = ask("sku_net_sales", "--by", "sku", *asked)
    world.rebuild("2026-11-17T10:06:00Z")
    nothing = ask("sku_net_sales", "--by", "sku", *asked)
    unknown = ask("conversion_rate", "--by", "total", *asked)

    until = "the newest event was received at 2026-11-17 10:07:10 UTC"
    assert f"Nothing is known of sku_net_sales {days} yet: history is loading" in loading.stderr
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr == f"There is nothing for sku_net_sales {days}; {until}.\n"
    assert f"There is nothing for conversion_rate {days}; {until}." in unknown.stderr
    assert "There is nothing" not in ask("net_sales", *DAY).output


@pytest.mark.usefixtures("home")
def test_json_is_what_the_api_says_and_csv_its_table() -> None:
    as_json = json.loads(ask("net_sales,total_transactions_count", "--store", "1,3", *DAY, "--json").stdout)
    as_csv = list(csv.DictReader(io.StringIO(ask("net_sales", *DAY, "--csv").stdout)))

    assert [answer["metric"] for answer in as_json["answers"]] == ["net_sales", "total_transactions_count"]
    assert [series["store"] for series in as_json["answers"][0]["series"]] == ["1", "3"]
    assert as_json["answers"][0]["series"][0]["points"][0] == {
        "start": "2026-11-17T00:00:00Z",
        "date": "2026-11-17",
        "value": 1000.00,
        "final": False,
    }
    assert [(row["store"], row["value"]) for row in as_csv] == [("1", "1000.00"), ("2", "1000.01"), ("3", "1000.02")]


@pytest.mark.usefixtures("home")
def test_what_the_api_refuses_is_said_in_its_words() -> None:
    done = ask("net_sale", "--by", "total", *DAY)

    assert isinstance(done.exception, RequestError)
    assert done.exception.code == "unknown_name"
    assert "net_sales" in done.exception.do


def test_without_a_stack_the_next_step_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_API_PORT", "1")
    nobody = ask("net_sales", *DAY)
    (home / "operator.key").unlink()
    no_key = ask("net_sales", *DAY)

    assert isinstance(nobody.exception, OperatorError)
    assert nobody.exception.do == "galatea status"
    assert isinstance(no_key.exception, OperatorError)
    assert "galatea up" in no_key.exception.do


@pytest.mark.parametrize("forms", [("--json", "--csv"), ("--csv", "--parquet", "x"), ("--json", "--parquet", "x")])
def test_one_form_is_printed_at_a_time(forms: tuple[str, ...]) -> None:
    done = ask("net_sales", *DAY, *forms)

    assert isinstance(done.exception, RequestError)


@pytest.mark.usefixtures("home")
def test_groups_are_written_as_parquet(tmp_path: Path) -> None:
    ask("net_sales", "--by", "group:region", *DAY, "--parquet", str(tmp_path / "regions.parquet"))
    refused = ask("net_sales", *DAY, "--parquet", str(tmp_path / "missing" / "regions.parquet"))

    found = read_table(tmp_path / "regions.parquet").select(["group_region", "value"]).to_pylist()
    assert {row["group_region"]: row["value"] for row in found}["West"] == Decimal("2000.01")
    assert isinstance(refused.exception, RequestError)


def test_a_key_that_others_can_read_is_refused_unless_it_is_that_of_the_home(home: Path) -> None:
    """That of the home is made private again: see `tests/fast/unit/stack/test_keys_of_commands.py`."""
    given = home / "given.key"
    given.write_text(OPERATOR_KEY)
    for key in (given, home / "operator.key"):
        key.chmod(0o644)

    refused = ask("net_sales", "--by", "total", "--key-file", str(given), *DAY)
    done = ask("net_sales", "--by", "total", *DAY)

    assert refused.exit_code
    assert "can be read by others" in str(refused.exception or refused.stderr)
    assert done.exit_code == 0, done.output
