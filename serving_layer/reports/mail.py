"""A report as the parts of a mail: HTML with inline styles, and plain text. The HTML is also what a PDF is made of."""

from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from serving_layer.pages import language
from serving_layer.pages.language import Language
from serving_layer.reports.document import Document
from serving_layer.responses.reports import Report


class MailContent(NamedTuple):
    """The subject and the two alternative parts, and the language that they are in."""

    subject: str
    html: str
    text: str
    language: Language


def mail_of(report: Report) -> MailContent:
    """The mail of a report, in the language that `use_language` says. Nothing in it is loaded from elsewhere."""
    document, spoken = Document.of(report), language.current()
    values = {"report": document, "language": spoken}
    html, text = (_TEMPLATES.get_template(name).render(values) for name in ("mail.html", "mail.txt"))
    return MailContent(document.subject, html, text, spoken)


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(["html"]),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    extensions=["jinja2.ext.i18n"],
)
_TEMPLATES.install_gettext_callables(language.gettext, language.ngettext, newstyle=True)  # type: ignore[attr-defined]  # of the extension
