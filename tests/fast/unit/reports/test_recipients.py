"""`reports.yaml` says who gets which report; every mistake is named."""

from pathlib import Path

import pytest

from deploy.reports.address import mail_address
from deploy.reports.recipients import read_reports
from master_dataset.errors import BadFileError

GOOD = """
reports:
  - {tenant: acme, period: daily, to: [anna@shop.example], pdf: true}
  - {tenant: "010", period: weekly, to: [ben@shop.example, carl@shop.example]}
"""


def test_each_entry_has_its_recipients(tmp_path: Path) -> None:
    file = tmp_path / "reports.yaml"
    file.write_text(GOOD)

    first, second = read_reports(file)

    assert (first.tenant, first.period, first.to, first.pdf) == ("acme", "daily", ("anna@shop.example",), True)
    assert (second.tenant, second.pdf, len(second.to)) == ("010", False, 2)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "reports"),
        ("reports: x", "reports"),
        ("reports: [{tenant: a, period: daily, to: []}]", "reports[0].to"),
        ("reports: [{tenant: a, period: hourly, to: [a@b.example]}]", "reports[0].period"),
        ("reports: [{tenant: a, period: daily, to: [nobody]}]", "reports[0].to[0]"),
        ("reports: [{tenant: a, period: daily, to: [a@b.example], langage: en}]", "reports[0].langage"),
        ("reports: [{period: daily, to: [a@b.example]}]", "reports[0].tenant"),
        ("recipients: []", "reports"),
        ("reports: [", "not YAML"),
        ("\x00", "not YAML"),
        ("[" * 1500, "not YAML"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "reports.yaml"
    file.write_text(text)

    with pytest.raises(BadFileError) as raised:
        read_reports(file)

    assert named in raised.value.message
    assert "GALATEA_REPORTS_FILE" in raised.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "none.yaml"
    with pytest.raises(BadFileError, match="cannot be read") as raised:
        read_reports(file)

    assert raised.value.message.count(str(file)) == 1
    assert "GALATEA_REPORTS_FILE" in raised.value.do


@pytest.mark.parametrize(
    "text",
    [
        "",
        "anna",
        "anna@",
        "@shop.example",
        "a b@shop.example",
        "anna@shop.example\n",
        "anna@shop.example, ben@shop.example",
        "Anna <anna@shop.example>",
        "änna@shop.example",
        "a\r\nBcc: b@c.example",
        f"{'a' * 250}@b.example",
    ],
)
def test_what_is_no_plain_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a mail address"):
        mail_address(text)
