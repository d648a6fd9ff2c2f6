"""A report as the parts of a mail: HTML with inline styles, and plain text. The HTML is also what a PDF is made of."""

from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from serving_layer.reports.document import Document
from serving_layer.responses.reports import Report


class MailContent(NamedTuple):
    """The subject and the two alternative parts."""

    subject: str
    html: str
    text: str


def mail_of(report: Report) -> MailContent:
    """The mail of a report. Nothing in it is loaded from elsewhere."""
    document = Document.of(report)
    values = {"report": document}
    text = _TEXT.get_template("mail.txt").render(values)
    return MailContent(document.subject, _HTML.get_template("mail.html").render(values), text)


def _environment(*, escapes: bool) -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=escapes,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


_HTML, _TEXT = _environment(escapes=True), _environment(escapes=False)
