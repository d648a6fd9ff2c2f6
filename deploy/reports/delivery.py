"""Sends a report to its recipients, each of them once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deploy.reports.mail import Mail, MailServer
from deploy.reports.pdf import pdf_of
from deploy.reports.sent import SentReports, report_id
from deploy.settings import Settings
from master_dataset.errors import GalateaError, MailNotSentError
from serving_layer.reports.mail import mail_of
from serving_layer.responses.reports import Report


@dataclass(frozen=True)
class Delivery:
    """What came of sending a report. `refused`: recipients that the mail server refuses, with the error."""

    sent: Sequence[str]
    already: Sequence[str]
    refused: Sequence[tuple[str, MailNotSentError]]

    @property
    def failures(self) -> Sequence[GalateaError]:
        """Why somebody has not got it."""
        return [error for _, error in self.refused]


def deliver(
    report: Report, recipients: Iterable[str], settings: Settings, *, pdf: bool = False, again: bool = False
) -> Delivery:
    """Send a report to everybody who has not got it yet. Everybody gets a mail of their own.

    Args:
        report: The report.
        recipients: Addresses.
        settings: Of the mail server, of PDFs, and of the home that records what was sent.
        pdf: Attach a PDF.
        again: Send it also to those who have got it.

    Raises:
        MailServerUnavailableError: The mail server does not answer; the next attempt continues where this one ended.
        OperatorError: A setting is wrong, or there is no PDF.
    """
    sent: list[str] = []
    refused: list[tuple[str, MailNotSentError]] = []
    everybody = list(dict.fromkeys(recipients))
    with SentReports(settings.home).of(report) as record:
        known = {} if again else record.recipients
        left = [each for each in everybody if each not in known]
        if left:
            content = mail_of(report)
            attached = pdf_of(content.html, settings.reports) if pdf else None
            name = f"{report.period}-{report.days.first}.pdf"
            with MailServer(settings.smtp) as server:
                for to in left:
                    id_ = report_id(report, to)
                    try:
                        server.send(Mail(id_, to, content.subject, content.text, content.html, attached, name))
                    except MailNotSentError as error:
                        refused.append((to, error))
                    else:
                        record.add(report, to)
                        sent.append(to)
    return Delivery(sent, [each for each in everybody if each in known], refused)
