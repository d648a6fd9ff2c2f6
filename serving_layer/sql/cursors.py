"""Cursors: the rows of a query that are fetched in parts, with `DECLARE`, `FETCH`, `MOVE` and `CLOSE`.

A cursor holds the whole result of its query, which was read when it was declared, within the limits of any statement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sqlglot.tokenizer_core import Token, TokenType

from serving_layer.sql.held_rows import PartOfRows
from serving_layer.sql.results import Column, QueryResult, SqlStateError, SqlValue

MOST_CURSORS = 100
"""Of one session."""
Way = Literal["forward", "backward", "absolute", "relative"]
_STEPS: dict[str, tuple[Way, int]] = {
    "NEXT": ("forward", 1),
    "PRIOR": ("backward", 1),
    "FIRST": ("absolute", 1),
    "LAST": ("absolute", -1),
}
_WAYS: dict[str, Way] = {
    "FORWARD": "forward",
    "BACKWARD": "backward",
    "ABSOLUTE": "absolute",
    "RELATIVE": "relative",
}
_OPTIONS = frozenset({"BINARY", "INSENSITIVE", "ASENSITIVE", "SCROLL", "NO"})
MOST_DIGITS = 18
"""Of a number of rows: no result has more."""


@dataclass(frozen=True)
class Fetch:
    """Rows of a cursor that are read or passed over.

    Attributes:
        name: of the cursor.
        way: from where `count` counts.
        count: how many rows forward or backward, or which row; None: all that are left.
        moves: no rows are sent.
    """

    name: str
    way: Way = "forward"
    count: int | None = 1
    moves: bool = False


@dataclass(frozen=True)
class CloseCursor:
    """A cursor that is no longer needed. `name`: None for all."""

    name: str | None


class DeclaredCursor(NamedTuple):
    """How a cursor is declared.

    Attributes:
        name: of the cursor.
        scrolls: False: it is read forward only.
        holds: it outlives its transaction.
        query_at: the number of the token at which its query begins.
    """

    name: str
    scrolls: bool
    holds: bool
    query_at: int


@dataclass
class Cursor:
    """The result of a query, and a place in it.

    Attributes:
        columns: of the result.
        rows: all of them.
        statement: that declared it.
        scrolls: False: it is read forward only.
        holds: it outlives its transaction.
        is_new: the transaction that declared it has not ended.
        held: counts the memory of `statement`.
        at: the number of the row that was fetched last; 0: before the first one.
    """

    columns: Sequence[Column]
    rows: Sequence[tuple[SqlValue, ...]]
    statement: str
    scrolls: bool
    holds: bool
    is_new: bool
    held: object = None
    at: int = 0

    def fetch(self, fetch: Fetch) -> QueryResult:
        """The rows that a FETCH is about; for a MOVE their number. SqlStateError 55000 if it goes back and must not."""
        end = len(self.rows) + 1
        way, count = fetch.way, fetch.count
        if count is None:
            count = end
        elif way in ("forward", "backward") and count < 0:
            way, count = ("backward" if way == "forward" else "forward"), -count
        if way in ("forward", "backward") and count == 0:
            way = "relative"
        if way == "absolute":
            target = count if count >= 0 else end + count
        else:
            target = self.at - count if way == "backward" else self.at + count
        target = min(max(target, 0), end)
        if target < self.at and not self.scrolls:
            hint = "Declare it with SCROLL, or without NO SCROLL."
            raise SqlStateError("55000", f'The cursor "{fetch.name}" is read forward only.', hint)
        if way == "forward":
            rows = self.rows[self.at : target]
        elif way == "backward":
            rows = self.rows[max(target - 1, 0) : max(self.at - 1, 0)][::-1]
        else:
            rows = self.rows[max(target - 1, 0) : target]
        self.at = target
        if fetch.moves:
            return QueryResult(f"MOVE {len(rows)}")
        return QueryResult(f"FETCH {len(rows)}", self.columns, PartOfRows(rows, self.rows))


def declared(tokens: Sequence[Token]) -> DeclaredCursor:
    """How a DECLARE declares its cursor; `tokens` follow that word. SqlStateError if it cannot be read."""
    name, words, place = _name(tokens[:1]), _words(tokens), 1
    scrolls, holds = True, False
    while words[place : place + 1] and words[place] in _OPTIONS:
        if words[place] == "BINARY":
            raise SqlStateError("0A000", "BINARY cursors are not answered.", "Request binary values when you fetch.")
        scrolls = scrolls and words[place] != "NO"
        place += 1
    is_cursor = words[place : place + 1] == ["CURSOR"]
    place += 1
    if words[place : place + 2] in (["WITH", "HOLD"], ["WITHOUT", "HOLD"]):
        holds, place = words[place] == "WITH", place + 2
    if not is_cursor or words[place : place + 1] != ["FOR"] or len(words) == place + 1:
        form = "`DECLARE name CURSOR FOR SELECT ...`, with SCROLL, NO SCROLL or WITH HOLD if you need it"
        raise SqlStateError("42601", "The DECLARE statement cannot be read.", f"Write {form}.")
    return DeclaredCursor(name, scrolls, holds, place + 1)


def fetched(tokens: Sequence[Token], *, moves: bool) -> Fetch:
    """What a FETCH or MOVE is about; `tokens` follow that word. SqlStateError 42601 if it cannot be read."""
    name, said = _name(tokens[-1:]), _words(tokens[:-1])
    if said and said[-1] in ("FROM", "IN"):
        said.pop()
    if len(said) == 1 and said[0] in _STEPS:
        return Fetch(name, *_STEPS[said[0]], moves)
    way: Way = "forward"
    if said and said[0] in _WAYS:
        way = _WAYS[said.pop(0)]
    counts_rows = way in ("forward", "backward")
    if counts_rows and said in ([], ["ALL"]):
        return Fetch(name, way, None if said else 1, moves)
    return Fetch(name, way, _number(said), moves)


def closed(tokens: Sequence[Token]) -> CloseCursor:
    """What a CLOSE is about; `tokens` follow that word. SqlStateError 42601 if it cannot be read."""
    if len(tokens) != 1:
        raise SqlStateError("42601", "The CLOSE statement cannot be read.", "Write `CLOSE name` or `CLOSE ALL`.")
    is_all = tokens[0].text.upper() == "ALL" and tokens[0].token_type is not TokenType.IDENTIFIER
    return CloseCursor(None if is_all else _name(tokens))


def missing(name: str) -> SqlStateError:
    """There is no such cursor."""
    return SqlStateError("34000", f'There is no cursor "{name}".', "Declare it first; it ends with its transaction.")


def _name(tokens: Sequence[Token]) -> str:
    """The name that a token is: as it is in quotes, and else in small letters."""
    if not tokens or tokens[0].token_type in (TokenType.STRING, TokenType.NUMBER) or not tokens[0].text:
        raise SqlStateError("42601", "The statement names no cursor.", "Write `FETCH FORWARD 100 FROM name`.")
    is_quoted = tokens[0].token_type is TokenType.IDENTIFIER
    return tokens[0].text if is_quoted else tokens[0].text.lower()


def _words(tokens: Sequence[Token]) -> list[str]:
    return [token.text.upper() for token in tokens]


def _number(words: Sequence[str]) -> int:
    sign, digits = words[:-1], words[-1] if words else ""
    if list(sign) not in ([], ["-"], ["+"]) or not digits.isdecimal():
        message = "The FETCH or MOVE statement cannot be read."
        raise SqlStateError("42601", message, "Write `FETCH FORWARD 100 FROM name`, or `FETCH ALL FROM name`.")
    return (-1 if list(sign) == ["-"] else 1) * int(digits[:MOST_DIGITS])
