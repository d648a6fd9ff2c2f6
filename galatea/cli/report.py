"""`galatea report`: the report of a tenant for a day or a week, on the terminal, in files, and by mail."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from deploy.console import print_json, print_message, text_output
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.cli.common.rest import KeyFile, rest_client
from master_dataset.errors import RequestError, UnknownNameError

if TYPE_CHECKING:
    from deploy.reports.delivery import Delivery
    from serving_layer.pages.language import Language
    from serving_layer.responses.reports import Report


def report(  # noqa: PLR0913 - one parameter per option
    *,
    tenant: Annotated[str, Option("--tenant", help="Tenant whose stores the report is about.")] = "default",
    period: Annotated[str, Option("--period", help="daily or weekly.")] = "daily",
    day: Annotated[
        str | None, Option("--day", help="A business date of the period. Default: the newest one that is over.")
    ] = None,
    to: Annotated[list[str] | None, Option("--to", help="Send the report to this address; repeatable.")] = None,
    attach_pdf: Annotated[bool, Option("--attach-pdf", help="Attach the report as a PDF.")] = False,
    again: Annotated[bool, Option("--again", help="Also send it to recipients who already received it.")] = False,
    html: Annotated[Path | None, Option("--html", help="Write the report to this HTML file.")] = None,
    pdf: Annotated[Path | None, Option("--pdf", help="Write the report to this PDF file, with Chromium.")] = None,
    language: Annotated[str, Option("--language", help="Language of the report: en, de, sk or es.")] = "en",
    key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Print the report of a day or a week, write it to files, or send it. Each recipient gets it once."""
    from deploy.reports.address import mail_address
    from deploy.reports.delivery import deliver
    from serving_layer.pages.language import use_language
    from serving_layer.reports.mail import mail_of

    settings, spoken = Settings(), _language(language)
    for address in to or ():
        try:
            mail_address(address)
        except ValueError as error:
            raise RequestError(f"`--to {address}` is {error}", do="correct it") from error
    found = fetch(settings, period, tenant, day, key_file)
    with use_language(spoken):
        content = mail_of(found)
        if html is not None:
            _write(html, content.html.encode())
        if pdf is not None:
            from deploy.reports.pdf import pdf_of

            _write(pdf, pdf_of(content.html, settings.reports))
        done = deliver(found, to, settings, pdf=attach_pdf, again=again) if to else None
    if as_json:
        print_json({"report": found} if done is None else {"report": found, **outcome(found, done)})
    elif not (to or html or pdf):
        text_output().write(content.text)
    if done is not None:
        print_outcome(done)
        if done.failures:
            raise done.failures[0]


def _language(name: str) -> "Language":
    """The language of that code. UnknownNameError."""
    from serving_layer.pages.language import LANGUAGES

    for known in LANGUAGES:
        if known == name:
            return known
    raise UnknownNameError("language", name, LANGUAGES)


def fetch(settings: Settings, period: str, tenant: str, day: str | None, key_file: Path | None) -> "Report":
    """Return a report from the REST interface. RequestError, OperatorError."""
    from typing import get_args

    from galatea.client.connection import Call, path, query
    from serving_layer.responses.reports import ReportPeriodName, read_report

    periods = get_args(ReportPeriodName)
    if period not in periods:
        raise UnknownNameError("period", period, periods)
    with rest_client(settings, key_file) as galatea:
        return galatea.call(Call(path("reports", period), read_report, query(tenant=tenant, day=day)))


def outcome(of: "Report", done: "Delivery") -> dict[str, Any]:
    """What came of sending a report, as JSON."""
    return {
        "tenant": of.tenant,
        "period": of.period,
        "first": of.days.first,
        "last": of.days.last,
        "final": of.final,
        "sent": done.sent,
        "already_sent": done.already,
        "refused": [address for address, _ in done.refused],
        "deferred": [address for address, _ in done.deferred],
    }


def print_outcome(done: "Delivery") -> None:
    """Print what came of sending a report."""
    lists = (
        ("sent to", done.sent),
        ("already sent to", done.already),
        ("refused for", [address for address, _ in done.refused]),
        ("to be sent later to", [address for address, _ in done.deferred]),
    )
    for words, addresses in lists:
        if addresses:
            print_message(f"  {words} {', '.join(addresses)}")


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise RequestError(f"{file} cannot be written: {error.strerror or error}", do="name another file") from error
    print_message(f"  wrote {file}")
