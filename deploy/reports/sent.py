"""Which reports were sent to whom: a command that is repeated sends no mail twice, and leaves no period out.

Two kinds of records are files in the home, written as soon as the mail server has taken a mail: who has got one report,
and up to which day each recipient has got every report of a tenant. A process that is killed between the two sends that
one mail again: it has the same Message-ID, by which mail servers and clients recognize it.
"""

import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import msgspec

from deploy.secret_files import write_private
from master_dataset.errors import OperatorError
from serving_layer.responses.reports import Report, ReportPeriodName

KEPT = timedelta(days=400)
"""Of records, counted from the day of the report that is sent."""


def report_id(report: Report, recipient: str = "") -> str:
    """The id of a report, or of its mail to somebody: the same whenever it is made."""
    return _id(report.tenant, report.period, report.days.first.isoformat(), recipient)


class _Record(msgspec.Struct):
    """The content of the record of one report. `sent`: by recipient when it was sent, in UTC."""

    tenant: str
    period: ReportPeriodName
    first: date
    sent: dict[str, str]


class _Served(msgspec.Struct):
    """Up to which day each recipient has got every report that there was for them."""

    tenant: str
    period: ReportPeriodName
    last_days: dict[str, date]


@dataclass(frozen=True)
class SentReport:
    """Who has got one report. Only its holder can write, because `SentReports.of` locks it."""

    file: Path

    @property
    def recipients(self) -> dict[str, str]:
        """By address when it was sent, in UTC. OperatorError if the record cannot be read."""
        found = _read(self.file, _Record)
        return found.sent if found else {}

    def begin(self, report: Report) -> None:
        """Write the record as it is, before any mail is sent. OperatorError if it cannot be written."""
        self._write(report, self.recipients)

    def add(self, report: Report, recipient: str) -> None:
        """Record that the mail server has taken the mail to somebody. OperatorError if it cannot be written."""
        self._write(report, self.recipients | {recipient: datetime.now(UTC).isoformat(timespec="seconds")})

    def _write(self, report: Report, sent: dict[str, str]) -> None:
        _write(self.file, _Record(report.tenant, report.period, report.days.first, sent))


class SentReports:
    """The records of one home. Every method raises OperatorError if they cannot be read or written."""

    def __init__(self, home: Path) -> None:
        """`home` is the folder with all state."""
        self.folder = home / "reports" / "sent"

    @contextmanager
    def of(self, report: Report) -> Iterator[SentReport]:
        """The record of a report. While it is used, another process that sends reports waits."""
        with self._locked():
            self._forget_before(report.days.first - KEPT)
            yield SentReport(self.folder / f"{report.days.first}-{report.period}-{report_id(report)}.json")

    def last_days(self, tenant: str, period: ReportPeriodName) -> dict[str, date]:
        """By recipient, the day up to which they have got every report that there was for them."""
        found = _read(self._served(tenant, period), _Served)
        return found.last_days if found else {}

    def advance(self, tenant: str, period: ReportPeriodName, last_days: Mapping[str, date]) -> None:
        """Record up to which day recipients have got every report. A later day that is recorded stays."""
        if not last_days:
            return
        oldest = max(last_days.values()) - KEPT
        with self._locked():
            known = {to: day for to, day in self.last_days(tenant, period).items() if day >= oldest}
            newest = {to: max(day, known.get(to, day)) for to, day in last_days.items()}
            _write(self._served(tenant, period), _Served(tenant, period, known | newest))

    def _served(self, tenant: str, period: ReportPeriodName) -> Path:
        return self.folder / f"served-{period}-{_id(tenant, period)}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with ExitStack() as stack:
            with _usable(self.folder):
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                lock = stack.enter_context((self.folder / "lock").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _forget_before(self, day: date) -> None:
        """Forget records of reports about earlier days. Those that begin with `served` are no such records."""
        with _usable(self.folder):
            for file in self.folder.glob("*.json"):
                if file.name < day.isoformat():
                    file.unlink(missing_ok=True)


def _id(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


R = TypeVar("R", _Record, _Served)


def _read(file: Path, kind: type[R]) -> R | None:
    """The record in a file; None if there is none."""
    with _usable(file):
        try:
            return msgspec.json.decode(file.read_bytes(), type=kind)
        except FileNotFoundError:
            return None


def _write(file: Path, record: _Record | _Served) -> None:
    with _usable(file):
        write_private(file, msgspec.json.format(msgspec.json.encode(record), indent=1).decode() + "\n")


@contextmanager
def _usable(place: Path) -> Iterator[None]:
    """Say which file or folder of the records cannot be used, and what to do."""
    try:
        yield
    except OSError as error:
        message = f"`{place}`, which records who has got which report, cannot be used: {error.strerror or error}"
        do = "give the user of this command the right to read and write it, and check that the disk is not full"
        raise OperatorError(message, do=do) from error
    except (ValueError, msgspec.MsgspecError) as error:
        message = f"`{place}` is not a whole record of who has got a report: {error}"
        do = "delete it; what it recorded may then be sent once more"
        raise OperatorError(message, do=do) from error
