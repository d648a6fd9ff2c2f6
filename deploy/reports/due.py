"""Sends the reports of `reports.yaml` that are due: each recipient gets every period since the last one that they got.

Which period is the newest one depends on when a command runs, because days end at other times in other time zones, and
clocks change. So a recipient is owed every period that has ended since, however often the command did not run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from deploy.reports.delivery import Delivery, deliver
from deploy.reports.mail import MailServerRefusesError
from deploy.reports.recipients import ScheduledReport
from deploy.reports.sent import SentReports
from deploy.settings import Settings
from master_dataset.errors import GalateaError, MailServerUnavailableError
from serving_layer.pages.language import use_language
from serving_layer.reports.period import LENGTHS
from serving_layer.responses.reports import Report, ReportPeriodName

MOST_OWED: Mapping[ReportPeriodName, int] = {"daily": 7, "weekly": 2}
"""Periods that a recipient gets at most after a pause."""
FetchReport = Callable[[ScheduledReport, date | None], Report]
"""Returns the report of the period that a day lies in, or of the newest one. GalateaError if there is none."""


@dataclass(frozen=True)
class DueReport:
    """What came of one report that is due.

    Attributes:
        scheduled: what the file says.
        report: None if it could not be made.
        delivery: None if nothing was sent because of the error.
        error: why it could not be made, sent at all, or recorded; None if it could.
    """

    scheduled: ScheduledReport
    report: Report | None = None
    delivery: Delivery | None = None
    error: GalateaError | None = None

    @property
    def failures(self) -> Sequence[GalateaError]:
        """The error, and why some recipients have not got it."""
        return [*([self.error] if self.error else []), *(self.delivery.failures if self.delivery else [])]


class DueReports:
    """Sends what is due of the entries of the file."""

    def __init__(self, settings: Settings, fetch: FetchReport) -> None:
        """`fetch`: makes reports."""
        self._settings, self._fetch, self._records = settings, fetch, SentReports(settings.home)

    def send(self, scheduled: ScheduledReport) -> Iterator[DueReport]:
        """Send what is due of one entry, the oldest period first. Yields a result for each period, also the newest one.

        An error of one period keeps nobody from the next one, but a mail server that cannot be reached, or does not let
        Galatea in, is not tried again: its error is the last result.
        """
        try:
            newest = self._fetch(scheduled, None)
            owed = self._owed(scheduled, newest)
            self._begin(scheduled, owed, newest)
        except GalateaError as error:
            yield DueReport(scheduled, error=error)
            return
        last = newest.days.last
        left_out: set[str] = set()
        for day in sorted({last}.union(*owed.values())):
            recipients = [to for to in scheduled.to if day in owed[to]]
            done = self._sent(scheduled, newest if day == last else day, recipients)
            got = [*done.delivery.sent, *done.delivery.already] if done.delivery else []
            left_out.update(to for to in recipients if to not in got)
            done = self._recorded(done, {to: day for to in got if to not in left_out})
            if done.delivery and day == last:
                before = [*done.delivery.already, *(to for to in scheduled.to if not owed[to])]
                done = replace(done, delivery=replace(done.delivery, already=before))
            yield done
            if done.delivery is None and isinstance(done.error, MailServerUnavailableError | MailServerRefusesError):
                return

    def _owed(self, scheduled: ScheduledReport, newest: Report) -> dict[str, list[date]]:
        """By recipient, the last days of the periods to send. A recipient without a record is owed the newest one."""
        served = self._records.last_days(scheduled.tenant, scheduled.period)
        length, last = LENGTHS[scheduled.period], newest.days.last
        days = [last - back * length for back in range(MOST_OWED[scheduled.period])]
        return {to: [day for day in days if day > served.get(to, last - length)] for to in scheduled.to}

    def _begin(self, scheduled: ScheduledReport, owed: Mapping[str, Sequence[date]], newest: Report) -> None:
        """Record from which period on new recipients are owed reports, also if they are refused or have to wait."""
        served = self._records.last_days(scheduled.tenant, scheduled.period)
        before = newest.days.last - LENGTHS[scheduled.period]
        self._records.advance(scheduled.tenant, scheduled.period, {to: before for to in owed if to not in served})

    def _sent(self, scheduled: ScheduledReport, of: Report | date, recipients: Sequence[str]) -> DueReport:
        report = None
        try:
            report = self._fetch(scheduled, of) if isinstance(of, date) else of
            with use_language(scheduled.language):
                return DueReport(scheduled, report, deliver(report, recipients, self._settings, pdf=scheduled.pdf))
        except GalateaError as error:
            return DueReport(scheduled, report, error=error)

    def _recorded(self, done: DueReport, last_days: Mapping[str, date]) -> DueReport:
        """Record up to which day recipients have got all reports; not for those who lack an earlier one."""
        try:
            self._records.advance(done.scheduled.tenant, done.scheduled.period, last_days)
        except GalateaError as error:
            return replace(done, error=error)
        return done
