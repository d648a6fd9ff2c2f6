"""A question as something to paste: into a terminal, or into a notebook. The key is named, never shown."""

import shlex
from urllib.parse import quote

from serving_layer.pages.question import Question


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
