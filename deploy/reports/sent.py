"""Which reports were sent to whom, so that a task that is tried again sends nobody the same mail twice.

A record is a file in the home, written as soon as the mail server has taken the mail. A process that is killed between
the two sends that one mail again: it has the same Message-ID, by which mail servers and clients recognize it.
"""

import fcntl
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from deploy.secret_files import write_private
from serving_layer.responses.reports import Report

KEPT = timedelta(days=400)
"""Of records, counted from the day of the report that is sent."""


def report_id(report: Report, recipient: str = "") -> str:
    """The id of a report, or of its mail to somebody: the same whenever it is made."""
    parts = [report.tenant, report.period, report.days.first.isoformat(), recipient]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class SentReport:
    """Who has got one report. Only its holder can write, because `SentReports.of` locks it."""

    file: Path

    @property
    def recipients(self) -> dict[str, str]:
        """By address when it was sent, in UTC."""
        try:
            found: dict[str, str] = json.loads(self.file.read_text(encoding="utf-8"))["sent"]
        except FileNotFoundError:
            return {}
        return found

    def add(self, report: Report, recipient: str) -> None:
        """Record that the mail server has taken the mail to somebody."""
        sent = self.recipients | {recipient: datetime.now(UTC).isoformat(timespec="seconds")}
        about = {"tenant": report.tenant, "period": report.period, "first": report.days.first.isoformat()}
        write_private(self.file, json.dumps({**about, "sent": sent}, indent=1) + "\n")


class SentReports:
    """The records of one home."""

    def __init__(self, home: Path) -> None:
        """`home` is the folder with all state."""
        self.folder = home / "reports" / "sent"

    @contextmanager
    def of(self, report: Report) -> Iterator[SentReport]:
        """The record of a report. While it is used, another process that sends reports waits."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._forget_before(report.days.first - KEPT)
            yield SentReport(self.folder / f"{report.days.first}-{report.period}-{report_id(report)}.json")

    def _forget_before(self, day: date) -> None:
        for file in self.folder.glob("*.json"):
            if file.name < day.isoformat():
                file.unlink(missing_ok=True)
