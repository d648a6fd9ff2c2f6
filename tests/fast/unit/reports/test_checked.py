"""What the doctor says of reports: who gets which, and whether the mail server lets Galatea in."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.checks.environment import report_findings
from deploy.settings import Settings
from tests.support.mail_server import PASSWORD, USER, ReceivedMails, mail_server
from tests.support.secured_servers import Authority

WRONG = "not-the-password"
REPORTS = "reports:\n- {tenant: acme, period: daily, to: [anna@shop.example, ben@shop.example]}\n"


@pytest.fixture
def server() -> Iterator[ReceivedMails]:
    with mail_server() as kept:
        yield kept


def said(home: Path, **more: Any) -> list[tuple[str, bool, str, str]]:
    usual = {"smtp_host": "127.0.0.1", "smtp_from": "reports@shop.example", "smtp_tls": "none"}
    settings = Settings(home=home, **(usual | more if "smtp_port" in more else more))
    return [(each.check, each.ok, each.found, each.do) for each in report_findings(settings)]


def test_where_no_report_is_sent_nothing_is_checked(tmp_path: Path) -> None:
    assert said(tmp_path) == []


def test_recipients_are_counted_and_no_mail_is_sent(server: ReceivedMails, tmp_path: Path) -> None:
    file = tmp_path / "reports.yaml"
    file.write_text(REPORTS)
    assert said(tmp_path, smtp_port=server.port, reports_file=str(file)) == [
        ("reports", True, "1 to 2 recipients", ""),
        ("mail server", True, f"127.0.0.1:{server.port} asks for no user; encrypted: no", ""),
    ]
    assert server.mails == []


def test_a_field_that_is_wrong_is_named(tmp_path: Path) -> None:
    file = tmp_path / "reports.yaml"
    file.write_text(REPORTS.replace("daily", "hourly"))
    [(check, is_good, found, do)] = said(tmp_path, reports_file=str(file))
    assert (check, is_good) == ("reports", False)
    assert "reports[0].period" in found
    assert do


def test_a_report_as_pdf_needs_chromium(tmp_path: Path) -> None:
    file = tmp_path / "reports.yaml"
    file.write_text(REPORTS.replace("}", ", pdf: true}"))
    [(_, is_good, found, do)] = said(tmp_path, reports_file=str(file), reports_chromium=str(tmp_path / "none"))
    assert not is_good
    assert "a PDF needs Chromium" in found
    assert "GALATEA_REPORTS_CHROMIUM" in do


def test_a_wrong_password_is_found_and_not_shown(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    login = {"smtp_tls": "starttls", "smtp_ca_file": authority.file, "smtp_user": USER}
    with mail_server(authority.issue("smtp").server(), needs_login=True) as server:
        [right] = said(tmp_path, smtp_port=server.port, **login, smtp_password=PASSWORD)
        [wrong] = said(tmp_path, smtp_port=server.port, **login, smtp_password=WRONG)
    assert right == ("mail server", True, f"127.0.0.1:{server.port} lets the user `{USER}` in; encrypted: starttls", "")
    assert not wrong[1]
    assert "GALATEA_SMTP_PASSWORD" in wrong[3]
    assert WRONG not in str(wrong)
