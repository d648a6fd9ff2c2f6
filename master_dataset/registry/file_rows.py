"""Rows of files that users load: CSV with a header, or JSON Lines. One pass; every error names the line."""

import csv
import io
import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any

import msgspec

from master_dataset.errors import BadFileError

LINE_LENGTH = 65_536
NAME_LENGTH = 100
"""Characters of a wrong name that an error repeats."""
_OBJECT = msgspec.json.Decoder(dict[str, Any])

_PLAIN_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")

Row = tuple[int, dict[str, Any]]
"""The number of a line, from 1, and its fields by name."""


def plain_date(text: str) -> date:
    """A date such as `2026-05-01`, and no other form of ISO 8601. ValueError if it is none."""
    if not _PLAIN_DATE.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text)


@dataclass(frozen=True)
class FileRows:
    """Reads the rows of one kind of file.

    Attributes:
        kind: what the rows are, such as `products`.
        columns: the fields that there are.
        required: those that a CSV must have.
    """

    kind: str
    columns: Sequence[str]
    required: Collection[str]

    @contextmanager
    def opened(self, file: Path) -> Iterator[IO[bytes]]:
        """Open a file for `read`. Raises BadFileError if it cannot be read."""
        try:
            with file.open("rb") as stream:
                yield stream
        except OSError as error:
            message = f"`{file}` cannot be read: {error.strerror}."
            raise BadFileError(message, do=f"Name a file of {self.kind}.") from error

    def read(self, stream: IO[bytes]) -> Iterator[Row]:
        """Yield the rows. Fields of a CSV that are empty are left out.

        Args:
            stream: UTF-8, with or without a byte order mark. It is JSON Lines if it begins with `{`, and else CSV.

        Raises:
            BadFileError: A line cannot be read, or there are no rows.
        """
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        found = False
        try:
            lines = self._lines(text)
            blank, first = _first_line(lines)
            rows = self._json_rows if first.lstrip().startswith("{") else self._csv_rows
            for row in rows(chain(repeat("\n", blank), [first], lines)):
                found = True
                yield row
        except UnicodeDecodeError as error:
            raise BadFileError(f"The {self.kind} are not UTF-8.", do="Save them as UTF-8.") from error
        finally:
            if not stream.closed:  # nobody reads on after an error in a row, and the stream may end first
                text.detach()
        if not found:
            do = "Give a CSV with a header, or JSON Lines."
            raise BadFileError(f"There are no {self.kind}.", do=do, code=f"no_{self.kind}")

    def error(self, message: str, code: str) -> BadFileError:
        """An error in the file: nothing of it is loaded."""
        return BadFileError(message, do=f"Correct it and load the {self.kind} again; nothing was loaded.", code=code)

    def unknown_field(self, number: int, what: str, name: str) -> BadFileError:
        """An error for a line with a field (or column) that there is not."""
        known = ", ".join(f"`{each}`" for each in self.columns)
        return self._bad_line(number, f"has an unknown {what} `{name}`; there is {known}", "unknown_field")

    def _lines(self, text: IO[str]) -> Iterator[str]:
        number = 0
        while line := text.readline(LINE_LENGTH + 1):
            number += 1
            if len(line) > LINE_LENGTH:
                raise self._bad_line(number, f"is longer than {LINE_LENGTH:,} characters", "bad_file")
            yield line

    def _json_rows(self, lines: Iterator[str]) -> Iterator[Row]:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    fields, repeated = _OBJECT.decode(line), None
                    if line.count(":") > len(fields):  # else every field has its own colon
                        repeated = _repeated(json.loads(line, object_pairs_hook=_names))
                except (msgspec.DecodeError, ValueError, RecursionError) as error:
                    raise self._bad_line(number, f"is no JSON object: {error}", "bad_file") from error
                if repeated is not None:
                    raise self._bad_line(number, f"has the field `{repeated[:NAME_LENGTH]}` twice", "repeated_field")
                yield number, fields

    def _csv_rows(self, lines: Iterator[str]) -> Iterator[Row]:
        reader = csv.reader(lines, strict=True)
        names: list[str] = []
        before = 0
        try:
            for row in reader:
                number, before = before + 1, reader.line_num
                if not row:
                    continue
                if not names:
                    names = self._header(number, [name.strip() for name in row])
                elif len(row) != len(names):
                    raise self._bad_line(number, f"has {len(row)} fields instead of {len(names)}", "bad_file")
                else:
                    yield number, {name: value for name, value in zip(names, row, strict=True) if value}
        except csv.Error as error:
            raise self._bad_line(before + 1, f"is no CSV: {error}", "bad_file") from error

    def _header(self, number: int, names: list[str]) -> list[str]:
        for name in names:
            if name not in self.columns:
                raise self.unknown_field(number, "column", name[:NAME_LENGTH])
            if names.count(name) > 1:
                raise self._bad_line(number, f"has the column `{name}` twice", "bad_file")
        if missing := set(self.required).difference(names):
            raise self._bad_line(number, f"lacks the column `{min(missing)}`", "missing_field")
        return names

    def _bad_line(self, number: int, why: str, code: str) -> BadFileError:
        return self.error(f"Line {number} {why}.", code)


def _names(pairs: list[tuple[str, object]]) -> list[str]:
    return [name for name, _ in pairs]


def _repeated(names: Sequence[str]) -> str | None:
    """The first name that is there twice; None if there is none."""
    return next((name for place, name in enumerate(names) if name in names[:place]), None)


def _first_line(lines: Iterator[str]) -> tuple[int, str]:
    """How many blank lines there are before the first other one, and that one."""
    blank = 0
    for line in lines:
        if line.strip():
            return blank, line
        blank += 1
    return blank, ""
