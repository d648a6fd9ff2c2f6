"""Without Chromium, or with one that fails, a PDF is refused with a next step, and nothing is left behind.

A real one makes PDFs in tests/system/pages.
"""

import tempfile
from pathlib import Path

import pytest

from deploy.reports.pdf import pdf_of
from deploy.reports.sections import ReportSettings
from master_dataset.errors import OperatorError, PdfNotMadeError


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def program(tmp_path: Path, script: str) -> ReportSettings:
    file = tmp_path / "chromium"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o700)
    return ReportSettings(chromium=str(file), pdf_seconds=5)


def test_without_chromium_the_setting_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(OperatorError) as raised:
        pdf_of("<p>x</p>", ReportSettings())

    assert "a PDF needs Chromium" in raised.value.message
    assert "GALATEA_REPORTS_CHROMIUM" in raised.value.do


def test_a_program_that_makes_none_is_quoted(tmp_path: Path, temporary: Path) -> None:
    with pytest.raises(PdfNotMadeError, match="no display, and more"):
        pdf_of("<p>x</p>", program(tmp_path, "echo 'no display, and more' >&2; exit 1"))

    assert list(temporary.iterdir()) == []


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path, temporary: Path) -> None:
    slow = program(tmp_path, "sleep 60 & sleep 60").model_copy(update={"pdf_seconds": 0.2})

    with pytest.raises(PdfNotMadeError, match=r"longer than 0\.2 seconds"):
        pdf_of("<p>x</p>", slow)

    assert list(temporary.iterdir()) == []


def test_it_gets_no_settings_and_a_private_folder(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GALATEA_SMTP_PASSWORD", "secret")
    script = f'env > {tmp_path}/seen; stat -c %a "$HOME" >> {tmp_path}/seen; for each; do case $each in '
    script += '--print-to-pdf=*) printf "%%PDF-1.4" > "${each#--print-to-pdf=}";; esac; done'

    assert pdf_of("<p>x</p>", program(tmp_path, script)) == b"%PDF-1.4"

    seen = (tmp_path / "seen").read_text()
    assert "secret" not in seen
    assert seen.splitlines()[-1] == "700"
    assert list(temporary.iterdir()) == []
