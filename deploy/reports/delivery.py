"""Sends a report to its recipients, each of them once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from deploy.reports.mail import Mail, MailServer
from deploy.reports.pdf import pdf_of
from deploy.reports.sent import SentReports, report_id
from deploy.settings import Settings
from master_dataset.errors import GalateaError, MailNotSentError, MailServerUnavailableError
from serving_layer.reports.mail import mail_of
from serving_layer.responses.reports import Report


@dataclass(frozen=True)
class Delivery:
    """The outcome of sending a report, by recipient; with the error for those who did not get it.

    Attributes:
        sent: The mail server has taken their mail now.
        already: They had got it before.
        refused: The mail server refuses them, or their mail.
        deferred: The mail server asks to try again later, or the connection was lost before their turn.
    """

    sent: Sequence[str]
    already: Sequence[str]
    refused: Sequence[tuple[str, MailNotSentError]]
    deferred: Sequence[tuple[str, MailServerUnavailableError]]

    @property
    def failures(self) -> Sequence[GalateaError]:
        """Why somebody has not got it."""
        return [error for _, error in (*self.refused, *self.deferred)]


def deliver(
    report: Report, recipients: Iterable[str], settings: Settings, *, pdf: bool = False, again: bool = False
) -> Delivery:
    """Send a report to everybody who has not got it yet. Everybody gets a mail of their own.

    It is in the language that `use_language` says.

    Args:
        report: The report.
        recipients: Addresses.
        settings: Of the mail server, of PDFs, and of the home that records what was sent.
        pdf: Attach a PDF.
        again: Send it also to those who have got it.

    Raises:
        MailServerUnavailableError: The mail server cannot be reached, so nobody has got a mail.
        OperatorError: A setting is wrong, or there is no PDF.
    """
    done = Delivery([], [], [], [])
    everybody = list(dict.fromkeys(recipients))
    with SentReports(settings.home).of(report) as record:
        known = {} if again else record.recipients
        left = [each for each in everybody if each not in known]
        if left:
            record.begin(report)  # a mail that cannot be recorded would be sent again and again
            content = mail_of(report)
            attached = pdf_of(content.html, settings.reports) if pdf else None
            name = f"{report.period}-{report.days.first}.pdf"
            mails = [
                Mail(
                    report_id(report, to),
                    to,
                    content.subject,
                    content.text,
                    content.html,
                    attached,
                    name,
                    content.language,
                )
                for to in left
            ]
            with MailServer(settings.smtp) as server:
                done = _sent(server, mails, lambda to: record.add(report, to))
    return replace(done, already=[each for each in everybody if each in known])


def _sent(server: MailServer, mails: Sequence[Mail], record: Callable[[str], None]) -> Delivery:
    """Send mails until all are sent or the connection is lost. `record`: called with each recipient who got theirs."""
    sent: list[str] = []
    refused: list[tuple[str, MailNotSentError]] = []
    deferred: list[tuple[str, MailServerUnavailableError]] = []
    for number, mail in enumerate(mails):
        try:
            server.send(mail)
        except MailNotSentError as error:
            refused.append((mail.to, error))
        except MailServerUnavailableError as error:
            if not server.is_connected:
                deferred += [(each.to, error) for each in mails[number:]]
                break
            deferred.append((mail.to, error))
        else:
            record(mail.to)
            sent.append(mail.to)
    return Delivery(sent, [], refused, deferred)
