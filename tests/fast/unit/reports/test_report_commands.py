"""`galatea report` and `galatea send-reports` over the REST interface of a World."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.reports import due
from deploy.reports.mail import MailServer, MailServerRefusesError
from deploy.secret_files import write_private
from galatea.cli.report import report
from galatea.cli.send_reports import send_reports
from master_dataset.errors import (
    GalateaError,
    MailServerUnavailableError,
    OperatorError,
    RequestError,
    UnknownNameError,
)
from tests.fast.unit.reports.conftest import OTHER
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
        write_private(tmp_path / "operator.key", OPERATOR_KEY)
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


def test_a_report_is_in_the_language_that_its_entry_says(home: Path, server: ReceivedMails) -> None:
    write(home, "tenant: default, period: daily, to: [anna@shop.example], language: sk")

    send_reports()
    report(to=["ben@shop.example"], language="de")

    slovak, german = server.mails
    assert ("denná správa za" in slovak["Subject"], slovak["Content-Language"]) == (True, "sk")
    assert ("Tagesbericht für" in german["Subject"], german["Content-Language"]) == (True, "de")
    with pytest.raises(UnknownNameError, match="fr"):
        report(language="fr")


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
    assert (weekly["sent"], weekly["first"]) == (["anna@shop.example"], "2026-11-09")
    assert second["reports"][0]["already_sent"] == ["anna@shop.example", "ben@shop.example"]
    assert [each["sent"] for each in second["reports"]] == [[], []]
    assert len(server.mails) == 3


def firsts(server: ReceivedMails, recipient: str = "anna@shop.example") -> list[str]:
    """The days or weeks that somebody has a report about, in the order in which the mails came."""
    return [
        str(re.findall(r"((?:\w{3}, )?\d+ \w{3})\b", mail["Subject"])[0]).replace(",", "")
        for mail in server.of(recipient)
    ]


@pytest.fixture
def denver(home: Path, asking: Asking) -> Path:
    """One store in Denver, whose weeks begin on Sunday."""
    asking.world.stores[OTHER.id] = replace(OTHER, timezone="America/Denver", week_starts_on="sun")
    return home


def test_no_day_and_no_week_is_left_out_when_the_clocks_change(
    denver: Path, server: ReceivedMails, asking: Asking
) -> None:
    write(
        denver,
        "tenant: acme, period: daily, to: [anna@shop.example]",
        "tenant: acme, period: weekly, to: [ben@shop.example]",
    )
    asking.world.pass_time("2027-03-14T06:10:00Z")  # Saturday evening
    send_reports()
    asking.world.pass_time("2027-03-15T06:10:00Z")  # Monday: the clocks were set forward
    send_reports()

    assert firsts(server) == ["Fri 12 Mar", "Sat 13 Mar", "Sun 14 Mar"]
    assert firsts(server, "ben@shop.example") == ["28 Feb", "7 Mar"]


def test_what_was_missed_is_sent_later_for_so_many_days_and_a_new_recipient_gets_the_newest_day(
    home: Path, server: ReceivedMails, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(due.MOST_OWED, "daily", 3)
    write(home, "tenant: acme, period: daily, to: [anna@shop.example]")
    send_reports()
    asking.world.pass_time("2026-11-23T06:10:00Z")
    write(home, "tenant: acme, period: daily, to: [anna@shop.example, ben@shop.example]")
    send_reports()
    assert firsts(server) == ["Fri 20 Nov", "Sat 21 Nov", "Sun 22 Nov"]
    assert firsts(server, "ben@shop.example") == ["Sun 22 Nov"]

    asking.world.pass_time("2026-11-29T06:10:00Z")
    send_reports()
    assert firsts(server)[3:] == ["Thu 26 Nov", "Fri 27 Nov", "Sat 28 Nov"]


def test_a_recipient_who_was_refused_gets_what_they_lack_and_nobody_gets_it_twice(
    home: Path, server: ReceivedMails, asking: Asking
) -> None:
    write(home, "tenant: acme, period: daily, to: [anna@shop.example, ben@shop.example]")
    send_reports()
    asking.world.pass_time("2026-11-23T06:10:00Z")
    server.refused["ben@shop.example"] = "550 no such user"
    with pytest.raises(OperatorError, match="2 of the reports or recipients failed"):
        send_reports()
    server.refused.clear()
    send_reports()

    for to in ("anna@shop.example", "ben@shop.example"):
        assert firsts(server, to) == ["Fri 20 Nov", "Sat 21 Nov", "Sun 22 Nov"]


def test_a_new_recipient_who_has_to_wait_gets_their_first_report_later(
    home: Path, server: ReceivedMails, asking: Asking
) -> None:
    write(home, "tenant: acme, period: daily, to: [anna@shop.example, ben@shop.example]")
    server.refused["ben@shop.example"] = "451 try again later"
    with pytest.raises(GalateaError):
        send_reports()
    server.refused.clear()
    asking.world.pass_time("2026-11-23T06:10:00Z")
    send_reports()

    for to in ("anna@shop.example", "ben@shop.example"):
        assert firsts(server, to) == ["Fri 20 Nov", "Sat 21 Nov", "Sun 22 Nov"]


def test_a_mail_server_that_does_not_let_galatea_in_is_asked_once(
    home: Path, server: ReceivedMails, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "tenant: acme, period: daily, to: [anna@shop.example]")
    send_reports()
    asking.world.pass_time("2026-11-26T06:10:00Z")
    entered = []

    def refused(self: MailServer) -> MailServer:
        entered.append(self)
        raise MailServerRefusesError("the mail server refuses the user", do="check the password")

    monkeypatch.setattr(MailServer, "__enter__", refused)
    with pytest.raises(GalateaError, match="refuses the user"):
        send_reports()
    assert len(entered) == len(server.mails) == 1


def test_a_week_is_due_on_the_day_after_it(home: Path, server: ReceivedMails, asking: Asking) -> None:
    asking.world.pass_time("2026-11-23T06:10:00Z")  # a Monday
    write(home, "tenant: default, period: weekly, to: [anna@shop.example]")

    send_reports()

    assert [mail["Subject"].partition(": ")[0] for mail in server.mails] == [
        "default, weekly report for 16 Nov \N{EN DASH} 22 Nov 2026"
    ]


def test_one_that_fails_keeps_no_other_from_its_recipients(
    home: Path, server: ReceivedMails, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refused["ben@shop.example"] = "550 no such user"
    write(
        home,
        "tenant: default, period: daily, to: [ben@shop.example]",
        "tenant: acme, period: daily, to: [carl@shop.example]",
    )

    with pytest.raises(OperatorError, match="1 of the reports or recipients failed"):
        send_reports()

    assert "1 refused" in capsys.readouterr().out
    assert [mail["To"] for mail in server.mails] == ["carl@shop.example"]


def test_a_tenant_without_stores_is_left_out_with_a_warning(
    home: Path, server: ReceivedMails, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        home,
        "tenant: defualt, period: daily, to: [anna@shop.example]",
        "tenant: default, period: daily, to: [carl@shop.example]",
    )

    send_reports()

    warning = "Warning: no store has the tenant `defualt` yet. Did you mean `default`?"
    assert warning in "".join(capsys.readouterr())
    assert [mail["To"] for mail in server.mails] == ["carl@shop.example"]


def test_what_was_sent_before_the_connection_was_lost_is_in_the_answer(
    home: Path, server: ReceivedMails, capsys: pytest.CaptureFixture[str]
) -> None:
    server.refused["ben@shop.example"] = "421 closing the connection"
    write(home, "tenant: acme, period: daily, to: [anna@shop.example, ben@shop.example, carl@shop.example]")

    with pytest.raises(OperatorError, match="2 of the reports or recipients failed"):
        send_reports(as_json=True)
    [said] = json.loads(capsys.readouterr().out)["reports"]
    assert (said["sent"], said["deferred"]) == (["anna@shop.example"], ["ben@shop.example", "carl@shop.example"])

    with pytest.raises(MailServerUnavailableError, match="421"):
        report(tenant="acme", to=["anna@shop.example", "ben@shop.example"])
    assert "already sent to anna@shop.example" in (said := capsys.readouterr().err)
    assert "to be sent later to ben@shop.example" in said
    server.refused.clear()
    send_reports()
    assert [mail["To"] for mail in server.mails] == ["anna@shop.example", "ben@shop.example", "carl@shop.example"]


def test_a_record_that_is_not_whole_keeps_no_other_tenant_from_its_reports(
    home: Path, server: ReceivedMails, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        home,
        "tenant: default, period: daily, to: [anna@shop.example]",
        "tenant: acme, period: daily, to: [anna@shop.example]",
    )
    send_reports()
    for record in (home / "reports" / "sent").glob("*.json"):
        if '"default"' in record.read_text():
            record.write_text('{"tenant": "def')
        else:
            record.unlink()

    with pytest.raises(OperatorError, match=r"1 of the reports or recipients failed; the first: .*not a whole record"):
        send_reports()

    assert "1 sent" in capsys.readouterr().out.splitlines()[-1]
    assert [mail["Subject"].split(",")[0] for mail in server.mails] == ["default", "acme", "acme"]


def test_without_the_file_nothing_is_sent(
    home: Path, server: ReceivedMails, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home
    monkeypatch.delenv("GALATEA_REPORTS_FILE")

    send_reports(as_json=True)

    assert json.loads(capsys.readouterr().out) == {"reports": []}
    assert server.mails == []
