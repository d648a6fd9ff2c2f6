"""A report as the parts of a mail: HTML with inline styles, and plain text. The HTML is also what a PDF is made of."""

from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

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
    html, text = (_TEMPLATES.get_template(name).render({"report": document}) for name in ("mail.html", "mail.txt"))
    return MailContent(document.subject, html, text)


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
