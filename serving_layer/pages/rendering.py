"""A question as something to paste: into a terminal, or into a notebook. The key is named, never shown.

A template and what it says become a page. Everything is escaped; a name that nobody gave is an error.
"""

import re
import shlex
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from urllib.parse import quote
from zoneinfo import ZoneInfo

import orjson
from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from serving_layer.pages import figures
from serving_layer.pages.assets import address
from serving_layer.pages.queries import Question
from serving_layer.pages.sessions import Visitor


def as_curl(question: Question, origin: str) -> str:
    """One command."""
    header = '-H "Authorization: Bearer $GALATEA_KEY"'
    return f"curl {header} {shlex.quote(origin + question.path)}"


def as_python(question: Question, origin: str) -> str:
    """A few lines that print the first series."""
    arguments: dict[str, list[str]] = {}
    for name, value in question.arguments:
        arguments.setdefault(name, []).append(value)
    address = f"{origin}/v1/metrics/{quote(question.metric, safe='')}"
    return "\n".join(
        [
            "import getpass, httpx",
            "",
            'key = {"Authorization": "Bearer " + getpass.getpass("key: ")}',
            f"asked = {arguments!r}",
            f"answer = httpx.get({address!r}, params=asked, headers=key).raise_for_status().json()",
            'print(answer["series"][0]["points"], answer["as_of"])',
        ]
    )


HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    # With `no-referrer` a browser would not say either where a form was sent from.
    "Referrer-Policy": "same-origin",
}
"""Where pages differ from answers."""
_QUOTED = re.compile("`([^`]+)`")


def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {
        "figure": figures.figure,
        "change": figures.change,
        "direction": figures.direction,
        "whole": figures.whole,
        "aged": figures.aged,
        "read_at": figures.read_at,
        "lasted": figures.lasted,
        "local": _local,
        "parsed_day": date.fromisoformat,
        "as_data": _as_data,
        "coded": _coded,
    }
    made.globals |= {"asset": address, "as_curl": as_curl, "as_python": as_python}
    return made


def _local(at: datetime | None, zone: str = "UTC", how: str = "%a %-d %b %Y, %H:%M") -> str:
    return figures.NOTHING if at is None else at.astimezone(ZoneInfo(zone)).strftime(how)


def _coded(sentence: str) -> Markup:
    """A sentence of ours: what stands in backquotes there is code."""
    return Markup(_QUOTED.sub(r"<code>\1</code>", str(escape(sentence))))  # noqa: S704 - escaped before


def _as_data(values: Mapping[str, object]) -> str:
    """For a script to read from an attribute."""
    return orjson.dumps(values, default=float).decode()


ENVIRONMENT = _environment()


def page(
    request: Request, template: str, visitor: Visitor | None, said: Mapping[str, object], *, status: int = 200
) -> HTMLResponse:
    """`visitor`: None where nobody is known, as at the door. `said`: what the template asks for."""
    given = {"visitor": visitor, "here": request.url.path, "origin": str(request.base_url).rstrip("/"), **said}
    return HTMLResponse(ENVIRONMENT.get_template(template).render(given), status, HEADERS)
