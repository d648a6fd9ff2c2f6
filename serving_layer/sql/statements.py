"""What a statement is: a query, transaction control, a setting that clients send, or something that is refused.

Statements are told apart by their first words, and queries are parsed; nothing else is ever run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp, tokenize
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from serving_layer.sql.results import SqlStateError

POSTGRES = Dialect.get_or_raise("postgres")
READ_ONLY = "Tables are read-only here. Send events and products to the REST interface, or use the `galatea` command."
QUERIES_ONLY = "SELECT, WITH, VALUES, TABLE, EXPLAIN, SHOW and transaction control are answered."
MOST_LENGTH = 200_000
"""Characters of a statement."""


class Action(StrEnum):
    """What transaction control does."""

    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    SAVEPOINT = "SAVEPOINT"
    RELEASE = "RELEASE"
    ROLLBACK_TO = "ROLLBACK TO"


@dataclass(frozen=True)
class Query:
    """A query. `explains`: its plan is asked for, not its rows."""

    expression: exp.Query
    explains: bool = False


@dataclass(frozen=True)
class Control:
    """Transaction control. `name`: of a savepoint."""

    action: Action
    name: str = ""


@dataclass(frozen=True)
class Setting:
    """A setting of the session that is changed. `value`: None for its default; `name`: empty for all."""

    name: str
    value: str | None
    tag: str


@dataclass(frozen=True)
class Show:
    """A setting that is read; `all` for all."""

    name: str


@dataclass(frozen=True)
class NoOperation:
    """A statement that clients send to clean up; there is nothing to do."""

    tag: str


Statement = Query | Control | Setting | Show | NoOperation

_WRITES = frozenset(
    (
        "INSERT",
        "UPDATE",
        "DELETE",
        "MERGE",
        "TRUNCATE",
        "CREATE",
        "ALTER",
        "DROP",
        "GRANT",
        "REVOKE",
        "COPY",
        "IMPORT",
        "EXPORT",
        "COMMENT",
        "REINDEX",
        "CLUSTER",
        "VACUUM",
        "ANALYZE",
        "REFRESH",
        "LOCK",
        "REASSIGN",
        "SECURITY",
        "UPSERT",
        "REPLACE",
        "CHECKPOINT",
    )
)
_OUTSIDE = frozenset(
    (
        "ATTACH",
        "DETACH",
        "USE",
        "INSTALL",
        "LOAD",
        "UPDATE_EXTENSIONS",
        "PRAGMA",
        "CALL",
        "DO",
        "EXECUTE",
        "PREPARE",
        "LISTEN",
        "NOTIFY",
    )
)


def tokens_of(sql: str) -> list[Token]:
    """The words of a text. SqlStateError 42601 if it has none, 54000 if it is too long."""
    if len(sql) > MOST_LENGTH:
        message = f"The statement has {len(sql):,} characters; at most {MOST_LENGTH:,} are read."
        raise SqlStateError("54000", message, "Use parameters, or join a VALUES list that is shorter.")
    if "\0" in sql:
        raise SqlStateError("22021", "The statement has a character with the code 0.", "Leave it out.")
    try:
        return tokenize(sql, read=POSTGRES)
    except SqlglotError as error:
        raise SqlStateError("42601", f"The statement cannot be read: {_first_line(error)}", None) from error


def split(sql: str) -> list[str]:
    """The statements of a text, without the semicolons between them; empty ones are left out."""
    found, start = list[str](), 0
    tokens = tokens_of(sql)
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            found.append(sql[start : token.start])
            start = token.end + 1
    found.append(sql[start:])
    return [text for each in found if (text := each.strip()) and tokens_of(text)]


def read(sql: str) -> Query:
    """The statement of a text.

    Raises:
        SqlStateError: 42601 if it is none or several, 42501 if it writes or reaches outside, 0A000 if it is not known.
    """
    tokens = tokens_of(sql)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise SqlStateError("42601", "The statement is empty.", None)
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise SqlStateError("42601", "These are several statements.", "Send one at a time.")
    words = [token.text.upper() for token in tokens]
    if words[0] in ("SELECT", "WITH", "VALUES", "TABLE", "("):
        return Query(parsed(tokens, sql))
    raise refusal(words)


def refusal(words: Sequence[str]) -> SqlStateError:
    """Why a statement that begins with these words is not run."""
    if words[0] in _WRITES:
        return SqlStateError("42501", f"{words[0]} is not permitted: this is a read-only server.", READ_ONLY)
    if words[0] in _OUTSIDE:
        return SqlStateError("42501", f"{words[0]} is not permitted: statements reach nothing outside.", QUERIES_ONLY)
    return SqlStateError("0A000", f"{words[0][:40]} is not a statement of this server.", QUERIES_ONLY)


def parsed(tokens: list[Token], sql: str) -> exp.Query:
    """The syntax tree of a query."""
    try:
        found = POSTGRES.parser(error_level=ErrorLevel.RAISE).parse(tokens, sql)
    except SqlglotError as error:
        raise SqlStateError("42601", f"The statement cannot be read: {_first_line(error)}", None) from error
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise SqlStateError("42601", "The statement is no query.", QUERIES_ONLY)
    return found[0]


def _first_line(error: SqlglotError) -> str:
    return str(error).splitlines()[0]
