"""Templates become pages in the language of the request.

Everything is escaped, and a name that is not passed to a template is an error.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import orjson
from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from master_dataset.registry.hidden_characters import visible
from master_dataset.registry.stores import currency
from serving_layer.api.parameters import write_id
from serving_layer.pages import charts, figures, language
from serving_layer.pages.assets import address
from serving_layer.pages.flags import flag_text
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.period import COMPARISONS, GRAIN_NAMES
from serving_layer.pages.pickers import MOST_LISTED
from serving_layer.pages.queries import PageQuery
from serving_layer.pages.sentences import rule_in_words, translated
from serving_layer.pages.sessions import SHARED_VISIT, Visitor
from serving_layer.saved.addresses import SHARED_PATH, has_page, is_shareable
from views.control.recompute import LATE_EVENTS_REASON

if TYPE_CHECKING:
    from serving_layer.saved.service import SavedService

POLICY = "default-src 'self'; frame-ancestors {frames}; base-uri 'none'; form-action {forms}"
"""The content security policy of pages. `frames`: which origins may show one in a frame. `forms`: where it may send."""
HEADERS = {
    "Content-Security-Policy": POLICY.format(frames="'none'", forms="'self'"),
    # With `no-referrer`, browsers would not say where a form was sent from either.
    "Referrer-Policy": "same-origin",
}
"""Where pages differ from REST responses."""
_CODE = re.compile("`([^`]+)`")


def as_curl(query: PageQuery, origin: str) -> str:
    """A query as a command. It names the variable of the key, never the key."""
    header = '-H "Authorization: Bearer $GALATEA_KEY"'
    return f"curl {header} {shlex.quote(origin + query.path)}"


def as_python(query: PageQuery, origin: str) -> str:
    """A query as a few lines of Python that ask for the key and print the first series."""
    arguments: dict[str, list[str]] = {}
    for name, value in query.arguments:
        arguments.setdefault(name, []).append(value)
    url = f"{origin}/v1/metrics/{quote(query.metric, safe='')}"
    return "\n".join(
        [
            "import getpass, httpx",
            "",
            'key = {"Authorization": "Bearer " + getpass.getpass("key: ")}',
            f"arguments = {arguments!r}",
            f"answer = httpx.get({url!r}, params=arguments, headers=key).raise_for_status().json()",
            'print(answer["series"][0]["points"], answer["as_of"])',
        ]
    )


def _with_code(sentence: str) -> Markup:
    """A sentence of ours with what is in backquotes marked as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(sentence))))  # noqa: S704 - escaped before


_REASONS = {LATE_EVENTS_REASON: gettext_noop("late events")}


def _reason(why: str) -> str:
    """Why something was published or recomputed: in the reader's language if Galatea wrote it, else as it is."""
    return language.gettext(_REASONS[why]) if why in _REASONS else why


def _as_data(values: object) -> str:
    """JSON in an attribute, for a script to read. Decimals lose digits that no drawing shows."""
    return orjson.dumps(values, default=float).decode()


SCRIPT_TEXTS = (
    gettext_noop("Live"),
    gettext_noop("updated {age} ago"),
    gettext_noop("Paused in the background"),
    gettext_noop("No response; these are the last known numbers"),
    gettext_noop("Too many requests; waiting {time} before the next one"),
    gettext_noop("as of {time} UTC"),
    gettext_noop("nothing to compare with"),
    gettext_noop("from {number}"),
    gettext_noop("points"),
    gettext_noop("Loading history"),
    gettext_noop("All of it is final"),
    gettext_noop("{share} % of it provisional"),
    gettext_noop("final"),
    gettext_noop("provisional"),
    gettext_noop("unknown"),
    gettext_noop("so far"),
    gettext_noop("not started"),
    gettext_noop("Copied."),
    gettext_noop("Selected: copy it with the keyboard."),
    gettext_noop("Chart saved."),
)
"""The texts of `static/*.js`, which find their translations in the page."""


def _texts_of_scripts() -> Markup:
    """An attribute with the translations of `SCRIPT_TEXTS`; empty in English."""
    texts = {text: translated for text in SCRIPT_TEXTS if (translated := language.gettext(text)) != text}
    return Markup(' data-texts="{}"').format(_as_data(texts)) if texts else Markup()


_LAYOUT = "\n\r\t"
"""Control characters that a page may have."""


def _visible(value: object) -> object:
    """Write hidden characters of texts out, so that they do not reorder the page. Markup stays: it is not a value."""
    return visible(value, _LAYOUT) if isinstance(value, str) and not isinstance(value, Markup) else value


def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    made = Environment(
        loader=loader,
        auto_reload=False,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
        extensions=["jinja2.ext.i18n"],
    )
    made.install_gettext_callables(language.gettext, language.ngettext, newstyle=True)  # type: ignore[attr-defined]  # of the extension
    made.filters |= {
        "figure": figures.figure,
        "suffix": figures.suffix,
        "change": figures.change,
        "direction": figures.direction,
        "before": figures.before,
        "as_sentence": lambda text: text[:1].upper() + text[1:],
        "whole": figures.count,
        "rounded": figures.rounded,
        "query": urlencode,
        "age": figures.age,
        "instant": figures.instant,
        "duration": figures.duration,
        "clock": language.clock,
        "moment": language.moment,
        "day": language.day,
        "long_day": language.long_day,
        "parsed_day": date.fromisoformat,
        "as_data": _as_data,
        "digits": lambda code: currency(code).digits if code else 0,
        "begun": charts.begun,
        "highest": charts.highest,
        "drawn": charts.drawn,
        "annotated_days": charts.annotated_days,
        "with_code": _with_code,
        "reason": _reason,
        "translated": translated,
        "rule_in_words": rule_in_words,
        "write_id": write_id,
    }
    made.globals |= {
        "asset": address,
        "as_curl": as_curl,
        "as_python": as_python,
        "symbol": language.currency_symbol,
        "has_symbol_first": language.has_symbol_first,
        "most_listed": MOST_LISTED,
        "language": language.current,
        "languages": language.NAMES,
        "flag_text": flag_text,
        "comparisons": COMPARISONS,
        "grain_names": GRAIN_NAMES,
        "texts_of_scripts": _texts_of_scripts,
    }
    return made


ENVIRONMENT = _environment()


class Keeping(NamedTuple):
    """What the visitor can do with the address of a page. `origins`: those that may show a shared page in a frame."""

    is_shareable: bool
    names_tenant: bool
    origins: Sequence[str]


def _keeping(request: Request, visitor: Visitor | None) -> Keeping | None:
    """None for visitors who cannot save or share anything."""
    saved: SavedService | None = request.app.state.saved
    if saved is None or visitor is None or visitor.session is None:
        return None
    here = request.url.path
    return Keeping(is_shareable(here), here == "/" and visitor.caller.sees_all, saved.shares.origins)


def address_of(request: Request) -> str:
    """The path and query of a request, percent-encoded as `parse_address` takes it."""
    encoded, query = quote(request.url.path, safe="/!$&'()*+,;=:@~-._"), request.scope["query_string"]
    return f"{encoded}?{query.decode('latin-1')}" if query else encoded


def address_to_return_to(request: Request) -> str:
    """The address of the page that is shown; in the answer to a form, of the page that it was on, if that is ours."""
    if request.method in {"GET", "HEAD"}:
        return address_of(request)
    try:
        before = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return "/"
    if before.netloc != request.headers.get("host") or not has_page(before.path, request.app.routes):
        return "/"
    return f"{before.path}?{before.query}" if before.query else before.path


def render(
    request: Request, template: str, visitor: Visitor | None, values: Mapping[str, object], *, status: int = 200
) -> HTMLResponse:
    """The page of a template. `visitor`: None where nobody is known, as on the login page."""
    here = request.url.path
    shared = {
        "visitor": visitor,
        "here": here,
        "here_with_query": address_of(request),
        "return_to": address_to_return_to(request),
        "origin": str(request.base_url).rstrip("/"),
        "is_shared": SHARED_VISIT in request.scope or here.startswith(SHARED_PATH),
        "keeping": _keeping(request, visitor),
    }
    headers = {**HEADERS, "Content-Language": language.current(), "Vary": "Cookie, Accept-Language"}
    return HTMLResponse(ENVIRONMENT.get_template(template).render(shared | dict(values)), status, headers)
