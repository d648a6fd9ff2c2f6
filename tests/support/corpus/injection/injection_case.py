"""One case: a text, and to whom it would mean something."""

import json
from pathlib import Path
from typing import NamedTuple

CASES = Path(__file__).with_name("cases.json")


class InjectionCase(NamedTuple):
    """`kind`: cql, sql, path, formula, crlf, template, regex, shell or markup."""

    kind: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.text.encode('unicode_escape').decode()}"

    @property
    def is_printed(self) -> bool:
        """Whether it has no control characters of ASCII."""
        return not any(character < " " or character == "\x7f" for character in self.text)


def injection_cases() -> list[InjectionCase]:
    """All of them."""
    return [InjectionCase(**entry) for entry in json.loads(CASES.read_text(encoding="utf-8"))]
