"""Makes the PDF of a report with a Chromium without a window."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from deploy.reports.sections import ReportSettings
from master_dataset.errors import OperatorError, PdfNotMadeError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers have little of it
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # nothing is loaded from elsewhere
    "--no-pdf-header-footer",
)
SAID = 300
"""Characters of what Chromium says that are shown."""


def chromium_of(settings: ReportSettings) -> str:
    """Return the path of Chromium. OperatorError if there is none."""
    names = (settings.chromium,) if settings.chromium else NAMES
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        looked = f"`{settings.chromium}`" if settings.chromium else f"{', '.join(NAMES)} on the PATH"
        message = f"a PDF needs Chromium, and there is no {looked}"
        raise OperatorError(message, do="install Chromium, set GALATEA_REPORTS_CHROMIUM, or ask for HTML")
    return found


def pdf_of(html: str, settings: ReportSettings) -> bytes:
    """Return the PDF of an HTML document, which loads nothing from elsewhere.

    Args:
        html: The document.
        settings: Which Chromium, and how long it may take.

    Raises:
        OperatorError: There is no Chromium.
        PdfNotMadeError: It failed, or took too long.
    """
    program = chromium_of(settings)
    with tempfile.TemporaryDirectory(prefix="galatea-report-") as folder:  # only its owner can enter it
        page, pdf = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_text(html, encoding="utf-8")
        # The sandbox of Chromium does not work for root.
        flags = [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        words = [program, *flags, f"--user-data-dir={folder}/profile", f"--print-to-pdf={pdf}", page.as_uri()]
        said = _run(words, folder, settings.pdf_seconds)
        made = pdf.read_bytes() if pdf.is_file() else b""
    if not made.startswith(b"%PDF"):
        message = f"Chromium (`{program}`) made no PDF: {said[-SAID:] or 'it said nothing'}"
        raise PdfNotMadeError(message, do=f"run `{program} --headless --version` as this user, or ask for HTML")
    return made


def _run(words: list[str], folder: str, seconds: float) -> str:
    """What Chromium says. Its processes get no settings, and end with it."""
    environment = {"HOME": folder, "TMPDIR": folder, "PATH": os.environ.get("PATH", os.defpath)}
    try:
        child = subprocess.Popen(  # noqa: S603 - no shell
            words,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        message = f"Chromium (`{words[0]}`) cannot be run: {error.strerror}"
        raise PdfNotMadeError(message, do="correct GALATEA_REPORTS_CHROMIUM, or ask for HTML") from error
    try:
        _, said = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        do = "set GALATEA_REPORTS_PDF_SECONDS higher, or ask for HTML"
        raise PdfNotMadeError(f"Chromium took longer than {seconds:g} seconds for a PDF", do=do) from error
    finally:
        _end(child)
    return " ".join(said.decode(errors="replace").split())


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End Chromium and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stderr is not None:
        child.stderr.close()
