"""A page of Markdown, written from top to bottom."""

from collections.abc import Iterable, Sequence

NOTICE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


class Page:
    """`title`, what the page is for, then headings, paragraphs and tables in the order in which they are added."""

    def __init__(self, title: str, purpose: str) -> None:
        """`purpose` is one or two sentences."""
        self._parts = [f"# {title}", NOTICE, purpose]

    def heading(self, text: str, level: int = 2) -> None:
        """Begin a section."""
        self._parts.append(f"{'#' * level} {text}")

    def paragraph(self, text: str) -> None:
        """Add text; its line breaks are no breaks of the page."""
        self._parts.append("\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n")))

    def code(self, text: str) -> None:
        """Add text that is shown as it is, a block of its own."""
        self._parts.append("\n".join(f"    {line}" for line in text.splitlines()))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add a table; nothing is added when it has no rows."""
        if shown := list(rows):
            self._parts.append(table(columns, shown))

    def text(self) -> str:
        """The whole page."""
        return "\n\n".join(self._parts) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as Markdown has it."""
    return "\n".join([_row(columns), _row(["---"] * len(columns)), *(_row(row) for row in rows)])


def code(text: object) -> str:
    """Text as code; nothing for nothing."""
    return f"`{text}`" if str(text) else ""


def codes(texts: Iterable[object]) -> str:
    """A list of words as code."""
    return ", ".join(code(text) for text in texts)


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(" ".join(str(cell).split()).replace("|", "\\|") for cell in cells) + " |"
