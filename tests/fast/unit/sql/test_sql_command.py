"""`galatea sql` prints tables, CSV and JSON with all digits, and errors with their SQLSTATE and next step."""

import io
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from deploy.local.ports import free_ports
from galatea.cli.sql import sql
from master_dataset.errors import DependencyUnavailableError, OperatorError, RequestError
from tests.support.sql_server import OPERATOR_KEY, RunningServer, running_server


@pytest.fixture(scope="module")
def shared() -> Iterator[RunningServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def home(shared: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    monkeypatch.setenv("GALATEA_SQL_PORT", str(shared.port))
    (tmp_path / "operator.key").write_text(OPERATOR_KEY)
    return tmp_path


@pytest.mark.usefixtures("home")
def test_a_table_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    sql("series 2")

    printed = capsys.readouterr()
    assert [line.split() for line in printed.out.splitlines()] == [
        ["n", "name", "net_sales"],
        ["0", "name", "0", "0.00"],
        ["1", "name", "1", "1.37"],
    ]
    assert "2 rows" in printed.err


@pytest.mark.usefixtures("home")
def test_json_has_numbers_with_all_their_digits(capsys: pytest.CaptureFixture[str]) -> None:
    sql("types", as_json=True)

    printed = capsys.readouterr().out
    assert '"money": -1234567890.10' in printed
    row = json.loads(printed)["rows"][0]
    assert row["b"] is True
    assert row["nothing"] is None
    assert row["labels"] == ["a", None, 'say "x"']
    assert row["start"] == "2026-01-02T03:04:05Z"
    assert row["data"] == "\\x00ff"


@pytest.mark.usefixtures("home")
def test_csv_is_read_from_standard_input_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("series 2"))

    sql("-", as_csv=True)

    assert capsys.readouterr().out == "n,name,net_sales\n0,name 0,0.00\n1,name 1,1.37\n"


def test_csv_has_no_text_that_a_spreadsheet_takes_for_a_formula(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ["=cmd", "n"], [["=1+1", -5], ["@x", Decimal("-5.00")], ["x;=1", ["y;=1"]], [None, True]]
    monkeypatch.setattr("galatea.cli.sql._answer", lambda *_: answer)

    sql("select 1", as_csv=True)

    assert capsys.readouterr().out == "'=cmd,n\n'=1+1,-5\n'@x,-5.00\nx;'=1,['y;'=1']\n,true\n"


@pytest.mark.usefixtures("home")
def test_the_tenant_is_the_one_that_is_named(shared: RunningServer) -> None:
    sql("series 1", tenant="beta")

    assert shared.scripted().caller.tenant == "beta"
    with pytest.raises(RequestError, match="There is no tenant"):
        sql("series 1", tenant="nobody")


@pytest.mark.usefixtures("home")
def test_an_error_has_its_sqlstate_and_the_next_step() -> None:
    with pytest.raises(RequestError) as refused:
        sql("fail")

    assert refused.value.message == "There is no table `nothing` (SQLSTATE 42P01)."
    assert refused.value.do == "Did you mean `notes`?"
    assert refused.value.exit_code == 2
    with pytest.raises(RequestError, match="either CSV or JSON"):
        sql("series 1", as_csv=True, as_json=True)


def test_without_a_server_or_a_key_the_next_step_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_SQL_PORT", str(free_ports(1)[0]))
    with pytest.raises(DependencyUnavailableError, match="does not answer"):
        sql("series 1")
    (home / "operator.key").unlink()
    with pytest.raises(OperatorError, match="no operator key"):
        sql("series 1")
