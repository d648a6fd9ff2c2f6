"""`galatea report` and `galatea send-reports` over the REST interface of a World."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from galatea.cli.report import report
from galatea.cli.send_reports import send_reports
from master_dataset.errors import OperatorError, RequestError, UnknownNameError
from tests.support.mail_server import ReceivedMails, mail_server
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import served


@pytest.fixture
def server() -> Iterator[ReceivedMails]:
    with mail_server() as kept:
        yield kept


@pytest.fixture
def home(asking: Asking, server: ReceivedMails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with served(asking) as url:
        variables = {
            "API_URL": url,
            "HOME": str(tmp_path),
            "SMTP_HOST": "127.0.0.1",
            "SMTP_PORT": str(server.port),
            "SMTP_TLS": "none",
            "SMTP_FROM": "reports@shop.example",
            "REPORTS_FILE": str(tmp_path / "reports.yaml"),
        }
        for name, value in variables.items():
            monkeypatch.setenv(f"GALATEA_{name}", value)
        (tmp_path / "operator.key").write_text(OPERATOR_KEY)
        yield tmp_path


@pytest.mark.usefixtures("home")
def test_a_report_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    report()

    assert "Daily report: default" in (said := capsys.readouterr().out)
    assert "€15.50" in said


def test_a_report_is_written_and_sent_to_an_address(
    home: Path, server: ReceivedMails, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tenant="acme", to=["anna@shop.example"], html=home / "report.html", as_json=True)

    said = json.loads(capsys.readouterr().out)
    assert (said["sent"], said["already_sent"], said["report"]["tenant"]) == (["anna@shop.example"], [], "acme")
    assert "€77.00" in (home / "report.html").read_text()
    assert len(server.mails) == 1


@pytest.mark.usefixtures("home")
def test_what_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="hourly"):
        report(period="hourly")
    with pytest.raises(RequestError, match="not a mail address"):
        report(to=["nobody"])
    with pytest.raises(RequestError, match="There is no tenant"):
        report(tenant="nobody")
    with pytest.raises(RequestError, match="reports are about days"):
        report(day="2040-01-01")


def write(home: Path, *entries: str) -> None:
    (home / "reports.yaml").write_text("reports:\n" + "".join(f"  - {{{each}}}\n" for each in entries))


def test_what_is_due_is_sent_once(home: Path, server: ReceivedMails, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        home,
        "tenant: default, period: daily, to: [anna@shop.example, ben@shop.example]",
        "tenant: default, period: weekly, to: [anna@shop.example]",
    )
    send_reports(as_json=True)
    send_reports(as_json=True)

    first, second = (json.loads(each) for each in capsys.readouterr().out.replace("}\n{", "}\x00{").split("\x00"))
    daily, weekly = first["reports"]
    assert (daily["sent"], daily["first"]) == (["anna@shop.example", "ben@shop.example"], "2026-11-20")
    assert weekly["due"] is False  # it is no Monday
    assert second["reports"][0]["already_sent"] == ["anna@shop.example", "ben@shop.example"]
    assert len(server.mails) == 2


def test_a_week_is_due_on_the_day_after_it(home: Path, server: ReceivedMails, asking: Asking) -> None:
    asking.world.pass_time("2026-11-23T06:10:00Z")  # a Monday
    write(home, "tenant: default, period: weekly, to: [anna@shop.example]")

    send_reports()

    assert [mail["Subject"][:44] for mail in server.mails] == ["default, week Mon 16 Nov to Sun 22 Nov 2026:"]


def test_one_that_fails_keeps_no_other_from_its_recipients(
    home: Path, server: ReceivedMails, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refused["ben@shop.example"] = "550 no such user"
    write(
        home,
        "tenant: nobody, period: daily, to: [anna@shop.example]",
        "tenant: default, period: daily, to: [ben@shop.example, carl@shop.example]",
    )

    with pytest.raises(OperatorError, match="2 of the reports or recipients failed; the first: There is no tenant"):
        send_reports()

    assert "1 sent, 1 refused" in capsys.readouterr().out
    assert [mail["To"] for mail in server.mails] == ["carl@shop.example"]


def test_without_the_file_nothing_is_sent(
    home: Path, server: ReceivedMails, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home
    monkeypatch.delenv("GALATEA_REPORTS_FILE")

    send_reports(as_json=True)

    assert json.loads(capsys.readouterr().out) == {"reports": []}
    assert server.mails == []
