"""Reports reach a mail server, each recipient once, and every failure names the setting to look at."""

import socket
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from deploy.reports.delivery import deliver
from deploy.reports.mail import Mail
from deploy.sections import InvalidSettingsError
from deploy.settings import Settings
from master_dataset.errors import GalateaError, MailNotSentError, MailServerUnavailableError, OperatorError
from serving_layer.responses.reports import Report
from tests.fast.unit.reports.conftest import report_of
from tests.support.mail_server import PASSWORD, USER, ReceivedMails, mail_server
from tests.support.secured_servers import Authority
from tests.support.world_api import Asking

ANNA, BEN, CARL = "anna@shop.example", "ben@shop.example", "carl@shop.example"


@pytest.fixture
def report(asking: Asking) -> Report:
    return report_of(asking)


@pytest.fixture
def server() -> Iterator[ReceivedMails]:
    with mail_server() as kept:
        yield kept


def settings(home: Path, port: int, **more: Any) -> Settings:
    usual = {"smtp_host": "127.0.0.1", "smtp_port": port, "smtp_from": "reports@shop.example", "smtp_tls": "none"}
    return Settings(home=home, **{**usual, **more})


def body(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content())


def test_a_mail_has_plain_text_and_html_and_says_the_numbers(
    server: ReceivedMails, report: Report, tmp_path: Path
) -> None:
    deliver(report, [ANNA], settings(tmp_path, server.port))

    [mail] = server.mails
    assert mail["Subject"] == "default, daily report for Fri, 20 Nov 2026: net sales €15.50 (+55.0 %), £5.00"
    assert (mail["From"], mail["To"]) == ("Galatea <reports@shop.example>", ANNA)
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"]
    assert [part.get_content_type() for part in mail.walk()] == ["multipart/alternative", "text/plain", "text/html"]
    for kind in ("plain", "html"):
        assert "€15.50" in body(mail, kind)
    assert server.envelopes[0].mail_from == "reports@shop.example"


def test_everybody_gets_a_mail_of_their_own_once(server: ReceivedMails, report: Report, tmp_path: Path) -> None:
    at = settings(tmp_path, server.port)

    first = deliver(report, [ANNA, BEN, ANNA], at)
    second = deliver(report, [ANNA, CARL], at)

    assert (first.sent, first.already) == ([ANNA, BEN], [])
    assert (second.sent, second.already) == ([CARL], [ANNA])
    assert [mail["To"] for mail in server.mails] == [ANNA, BEN, CARL]
    assert len({mail["Message-ID"] for mail in server.mails}) == 3


def test_a_mail_that_is_sent_again_has_the_same_id(server: ReceivedMails, report: Report, tmp_path: Path) -> None:
    at = settings(tmp_path, server.port)
    deliver(report, [ANNA], at)
    deliver(report, [ANNA], at, again=True)

    ids = [mail["Message-ID"] for mail in server.of(ANNA)]
    assert len(ids) == 2
    assert len(set(ids)) == 1


def test_a_refused_recipient_keeps_nobody_else_from_the_report(
    server: ReceivedMails, report: Report, tmp_path: Path
) -> None:
    server.refused[BEN] = "550 no such user"
    at = settings(tmp_path, server.port)

    done = deliver(report, [ANNA, BEN, CARL], at)

    assert done.sent == [ANNA, CARL]
    [(address, error)] = done.refused
    assert address == BEN
    assert "550 no such user" in error.message
    assert "GALATEA_REPORTS_FILE" in error.do
    server.refused.clear()
    assert deliver(report, [ANNA, BEN, CARL], at).sent == [BEN]


@pytest.mark.parametrize(
    ("refused", "answers"),
    [
        ({BEN: "450 mailbox busy"}, {}),
        ({BEN: "452 mailbox full"}, {}),
        ({}, {BEN: "451 greylisted"}),
    ],
)
def test_a_recipient_who_has_to_wait_keeps_nobody_else_from_the_report(
    server: ReceivedMails, report: Report, tmp_path: Path, refused: dict[str, str], answers: dict[str, str]
) -> None:
    server.refused.update(refused)
    server.answers.update(answers)
    at = settings(tmp_path, server.port)

    done = deliver(report, [ANNA, BEN, CARL], at)

    assert (done.sent, done.refused) == ([ANNA, CARL], [])
    [(address, error)] = done.deferred
    assert address == BEN
    assert isinstance(error, MailServerUnavailableError)
    assert (refused | answers)[BEN] in error.message
    server.refused.clear()
    server.answers.clear()
    assert deliver(report, [ANNA, BEN, CARL], at).sent == [BEN]


@pytest.mark.parametrize("place", ["refused", "answers"])
def test_a_connection_that_is_closed_defers_everybody_after_it_and_keeps_what_was_sent(
    server: ReceivedMails, report: Report, tmp_path: Path, place: str
) -> None:
    answers: dict[str, str] = getattr(server, place)
    answers[BEN] = "421 closing the connection"
    at = settings(tmp_path, server.port)

    done = deliver(report, [ANNA, BEN, CARL], at)

    assert (done.sent, [to for to, _ in done.deferred]) == ([ANNA], [BEN, CARL])
    assert "421 closing the connection" in done.failures[0].message
    answers.clear()
    assert deliver(report, [ANNA, BEN, CARL], at).sent == [BEN, CARL]


def test_a_mail_that_is_refused_is_an_error_with_the_answer(
    server: ReceivedMails, report: Report, tmp_path: Path
) -> None:
    server.answer = "552 too large"

    [(_, error)] = deliver(report, [ANNA], settings(tmp_path, server.port)).refused

    assert "552 too large" in error.message


def test_starttls_and_a_login_are_used(report: Report, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    secret = tmp_path / "smtp.password"
    secret.write_text(f"{PASSWORD}\n")
    secret.chmod(0o600)
    with mail_server(authority.issue("smtp").server(), needs_login=True) as server:
        at = settings(
            tmp_path,
            server.port,
            smtp_tls="starttls",
            smtp_ca_file=authority.file,
            smtp_user=USER,
            smtp_password_file=str(secret),
        )
        assert deliver(report, [ANNA], at).sent == [ANNA]
        assert len(server.mails) == 1


def test_tls_from_the_start_is_used(report: Report, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with mail_server(authority.issue("smtp").server(), is_implicit=True) as server:
        at = settings(tmp_path, server.port, smtp_tls="tls", smtp_ca_file=authority.file)
        assert deliver(report, [ANNA], at).sent == [ANNA]


def failure(report: Report, at: Settings) -> GalateaError:
    with pytest.raises(GalateaError) as raised:
        deliver(report, [ANNA], at)
    assert PASSWORD not in f"{raised.value.message} {raised.value.do}"
    return raised.value


def test_a_wrong_password_names_its_settings(report: Report, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with mail_server(authority.issue("smtp").server(), needs_login=True) as server:
        more = {"smtp_ca_file": authority.file, "smtp_user": USER, "smtp_password": "wrong"}
        error = failure(report, settings(tmp_path, server.port, smtp_tls="starttls", **more))

    assert isinstance(error, OperatorError)
    assert f"refuses the user `{USER}`: 535" in error.message
    assert "GALATEA_SMTP_PASSWORD" in error.do
    assert "wrong" not in error.message


def test_a_password_in_a_file_that_is_not_ascii_is_refused_and_not_shown(
    server: ReceivedMails, report: Report, tmp_path: Path
) -> None:
    secret = tmp_path / "smtp.password"
    secret.write_text("caf\u00e9\n", encoding="utf-8")
    secret.chmod(0o600)

    error = failure(report, settings(tmp_path, server.port, smtp_user=USER, smtp_password_file=str(secret)))

    assert str(secret) in error.message
    assert "caf" not in f"{error.message} {error.do}".replace(str(secret), "")
    assert "\\xe9" not in error.message


@pytest.mark.parametrize("content", ['{"tenant": "default", "sent": {"an', "[]", "\x00"])
def test_a_record_that_was_cut_short_is_named_with_the_next_step(
    server: ReceivedMails, report: Report, tmp_path: Path, content: str
) -> None:
    at = settings(tmp_path, server.port)
    deliver(report, [ANNA], at)
    [record] = (tmp_path / "reports" / "sent").glob("*.json")
    record.write_text(content)

    error = failure(report, at)

    assert isinstance(error, OperatorError)
    assert str(record) in error.message
    assert "delete it" in error.do
    assert len(server.mails) == 1


def test_records_that_cannot_be_used_are_named_with_the_next_step(
    server: ReceivedMails, report: Report, tmp_path: Path
) -> None:
    (tmp_path / "reports").write_text("a file in place of the folder")

    error = failure(report, settings(tmp_path, server.port))

    assert isinstance(error, OperatorError)
    assert str(tmp_path / "reports" / "sent") in error.message
    assert server.mails == []


def test_a_certificate_of_an_unknown_authority_names_the_setting_of_the_authority(
    report: Report, tmp_path: Path
) -> None:
    with mail_server(Authority(tmp_path).issue("smtp").server()) as server:
        error = failure(report, settings(tmp_path, server.port, smtp_tls="starttls"))

    assert "certificate of the mail server" in error.message
    assert "GALATEA_SMTP_CA_FILE" in error.do


def test_a_server_without_starttls_names_the_setting(server: ReceivedMails, report: Report, tmp_path: Path) -> None:
    error = failure(report, settings(tmp_path, server.port, smtp_tls="starttls"))

    assert "does not offer STARTTLS" in error.message
    assert "GALATEA_SMTP_TLS" in error.do


def test_tls_to_a_server_without_it_names_the_setting(server: ReceivedMails, report: Report, tmp_path: Path) -> None:
    error = failure(report, settings(tmp_path, server.port, smtp_tls="tls"))

    assert "TLS handshake" in error.message
    assert "GALATEA_SMTP_TLS" in error.do


def test_a_server_that_is_not_there_names_host_and_port(report: Report, tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, and nothing listens
        taken.bind(("127.0.0.1", 0))
        error = failure(report, settings(tmp_path, taken.getsockname()[1]))

    assert isinstance(error, MailServerUnavailableError)
    assert "cannot be reached" in error.message
    assert "GALATEA_SMTP_HOST" in error.do


def test_a_server_that_says_nothing_is_waited_for_and_no_longer(report: Report, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = failure(report, settings(tmp_path, silent.getsockname()[1], smtp_seconds=0.2))

    assert "did not answer in time" in error.message


def test_a_sender_that_is_refused_names_the_setting(server: ReceivedMails, report: Report, tmp_path: Path) -> None:
    server.sender = "553 not your address"

    [(_, error)] = deliver(report, [ANNA], settings(tmp_path, server.port)).refused

    assert "refuses the sender `reports@shop.example`" in error.message
    assert "GALATEA_SMTP_FROM" in error.do


def test_without_a_mail_server_the_settings_are_named(report: Report, tmp_path: Path) -> None:
    with pytest.raises(OperatorError) as raised:
        deliver(report, [ANNA], Settings(home=tmp_path))

    assert "GALATEA_SMTP_HOST" in raised.value.do


@pytest.mark.parametrize("text", ["a\r\nBcc: eve@evil.example", "a\nX: y", "a\r"])
def test_no_text_adds_a_header(text: str) -> None:
    mail = Mail("id", ANNA, text, "text", "<p>html</p>")

    headers = mail.message("reports@shop.example").as_bytes().split(b"\r\n\r\n")[0]

    assert b"\r\nBcc:" not in headers
    assert b"\r\nX:" not in headers


def test_records_are_private_and_old_ones_are_forgotten(server: ReceivedMails, report: Report, tmp_path: Path) -> None:
    at = settings(tmp_path, server.port)
    folder = tmp_path / "reports" / "sent"
    folder.mkdir(parents=True)
    (folder / "2025-01-01-daily-x.json").write_text("{}")

    deliver(report, [ANNA], at)

    [record] = folder.glob("*.json")
    assert record.name.startswith("2026-11-20-daily-")
    assert record.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"smtp_from": ""}, "GALATEA_SMTP_HOST needs GALATEA_SMTP_FROM"),
        ({"smtp_from": "Anna <anna@shop.example>"}, "`GALATEA_SMTP_FROM`"),
        ({"smtp_from": "a@b.example\r\nBcc: c@d.example"}, "`GALATEA_SMTP_FROM`"),
        ({"smtp_user": "x"}, "GALATEA_SMTP_USER needs GALATEA_SMTP_PASSWORD or GALATEA_SMTP_PASSWORD_FILE"),
        ({"smtp_password": "x"}, "GALATEA_SMTP_PASSWORD needs GALATEA_SMTP_USER"),
        ({"smtp_user": "x", "smtp_password": "x", "smtp_password_file": "y"}, "are both set"),
        ({"smtp_user": "anna\u00e9", "smtp_password": "x"}, "GALATEA_SMTP_USER has characters beside ASCII"),
        ({"smtp_user": "x", "smtp_password": "\u00e9"}, "GALATEA_SMTP_PASSWORD has characters beside ASCII"),
        (
            {"smtp_host": "mail.shop.example", "smtp_user": "x", "smtp_password": "x"},
            "the password would be readable on the network",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path: Path, more: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSettingsError, match=said) as raised:
        settings(tmp_path, 25, **more)

    assert "\u00e9" not in str(raised.value)


def test_a_refusal_is_an_operators_matter() -> None:
    assert issubclass(MailNotSentError, OperatorError)
