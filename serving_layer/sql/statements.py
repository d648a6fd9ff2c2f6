"""What a statement is: a query, transaction control, a setting that clients send, or something that is refused.

Statements are distinguished by their first words, and queries are parsed. A query is the only kind that is ever run,
and what it may hold is checked twice: here in the tree that is translated, and in what DuckDB itself reads
(`permissions`).
"""

import logging
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NoReturn

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from serving_layer.sql.cursors import CloseCursor, DeclaredCursor, Fetch, closed, declared, fetched
from serving_layer.sql.error_messages import too_deep, unreadable
from serving_layer.sql.results import SqlStateError
from serving_layer.sql.suggestions import did_you_mean

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # its warnings repeat the texts of statements
MOST_REREAD, MOST_REREAD_OF_ANY = 4, 500
"""How many words the parser may read again: for each word of a statement, and beside these."""


MOST_INDEXED = 100
"""How many elements and parts of arrays a statement may name."""


class _Parser(PostgresParser):
    """A parser that gives up before it tries too many readings of a statement.

    It tries `date(...)`, `array[...]` and others in two ways, so each one that is nested in another doubles the time.
    """

    _reread = _indexed = 0

    def _retreat(self, index: int) -> None:
        self._reread += max(0, self._index - index)
        if self._reread > MOST_REREAD * self._tokens_size + MOST_REREAD_OF_ANY:
            message = "Calls that are named like types, array[...] and such are nested too deep to be read."
            raise SqlStateError("54001", message, "Nest them at most 5 deep, or name the inner ones in a WITH clause.")
        super()._retreat(index)

    def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """What is in brackets, for each of which the parser looks at all of what is before them."""
        is_index = this is not None and this.name.upper() not in self.ARRAY_CONSTRUCTORS
        if is_index and self._curr.token_type is TokenType.L_BRACKET:
            self._indexed += 1
            if self._indexed > MOST_INDEXED:
                message = f"The statement has more than {MOST_INDEXED} elements of arrays, such as `a[1]`."
                raise SqlStateError("54001", message, "Name fewer of them, or use unnest.")
        return super()._parse_bracket(this)


class _Dialect(Postgres):
    NUMBERS_CAN_BE_UNDERSCORE_SEPARATED = True
    Parser = _Parser


POSTGRES = _Dialect()
READ_ONLY = "Tables are read-only here. Send events and products to the REST interface, or use the `galatea` command."
QUERIES_ONLY = "SELECT, WITH, VALUES, TABLE, EXPLAIN, SHOW, SET, cursors and transaction control are answered."
MOST_LENGTH, MOST_WORDS = 200_000, 20_000
"""Characters and words of a statement."""
MOST_DEPTH = 200
"""How deep brackets may be nested."""
MOST_NESTED = 500
"""How deep expressions may be nested, but for AND, OR and UNION."""
MOST_COLUMNS = 1_664
"""Columns of a query, as in PostgreSQL."""


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
    """A setting that is changed. `name`: empty for all; `value`: None for the default; `is_local`: by SET LOCAL."""

    name: str
    value: str | None
    tag: str = "SET"
    is_local: bool = False


@dataclass(frozen=True)
class Show:
    """A setting that is read; `all` for all."""

    name: str


@dataclass(frozen=True)
class NoOperation:
    """A statement that clients send to clean up, when there is nothing to clean. `tag`: its command tag."""

    tag: str


@dataclass(frozen=True)
class Declare:
    """A cursor over a query."""

    cursor: DeclaredCursor
    query: Query


Statement = Query | Control | Setting | Show | NoOperation | Declare | Fetch | CloseCursor

_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "("})
_FIRST_WORDS = ("select", "with", "values", "explain", "begin", "commit", "rollback", "declare", "fetch")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WRITES = _words(
    """
    ALTER ANALYZE CHECKPOINT CLUSTER COMMENT COPY CREATE DELETE DROP EXPORT GRANT IMPORT INSERT LOCK MERGE REASSIGN
    REFRESH REINDEX REPLACE REVOKE SECURITY TRUNCATE UPDATE UPSERT VACUUM
    """
)
_REACH_OUT = _words(
    """
    ATTACH CALL DESCRIBE DETACH DO EXECUTE FROM INSTALL LISTEN LOAD NOTIFY PIVOT PRAGMA PREPARE SUMMARIZE UNPIVOT USE
    """
)
_ISOLATION = _words(
    """
    , AND AS CHAIN CHARACTERISTICS COMMITTED DEFERRABLE ISOLATION LEVEL NO NOT ONLY READ REPEATABLE SERIALIZABLE
    SESSION SNAPSHOT TRANSACTION UNCOMMITTED WORK WRITE
    """
)
"""Words of transaction control that change nothing: everything is read-only, and of one snapshot."""


def tokens_of(sql: str) -> list[Token]:
    """The words of a text. SqlStateError 42601 if it has none, 54000 if it is too long."""
    if len(sql) > MOST_LENGTH:
        message = f"The statement has {len(sql):,} characters; at most {MOST_LENGTH:,} are read."
        raise SqlStateError("54000", message, "Use parameters, or a shorter list of values.")
    if "\0" in sql:
        raise SqlStateError("22021", "The statement has a character with the code 0.", "Leave it out.")
    try:
        found = _tokens(sql)
    except SqlglotError as error:
        raise unreadable(error) from error
    if len(found) > MOST_WORDS:
        raise SqlStateError("54000", f"The statement has more than {MOST_WORDS:,} words.", "Use a shorter one.")
    return found


_NO_PARAMETER = re.compile(
    r"""
      [eE]'(?:[^'\\]|\\.|'')*+(?:'|\Z) | '[^']*+(?:'|\Z) | "[^"]*+(?:"|\Z)
      | --[^\r\n]* | /\*.*?(?:\*/|\Z) | [^\W\d][\w$]*
      | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z) | (?P<parameter>\$[0-9]+)
    """,
    re.DOTALL | re.VERBOSE,
)
"""Texts, names and comments, also those that are not closed, which end with the statement; and parameters."""


def _tokens(sql: str) -> list[Token]:
    """The words of a text, in which `$1,$` is no tag of a text: the tokenizer reads a space behind each parameter."""
    ends = [match.end() for match in _NO_PARAMETER.finditer(sql) if match["parameter"]] if "$" in sql else []
    if not ends:
        return POSTGRES.tokenize(sql)
    spaced = " ".join(sql[start:end] for start, end in pairwise([0, *ends, len(sql)]))
    places = [end + number for number, end in enumerate(ends)]
    return [
        Token(
            each.token_type,
            each.text,
            line=each.line,
            col=each.col,
            start=each.start - bisect_left(places, each.start),
            end=each.end - bisect_left(places, each.end),
            comments=each.comments,
        )
        for each in POSTGRES.tokenize(spaced)
    ]


def split(sql: str) -> list[str]:
    """The statements of a text, without the semicolons between them; empty ones and comments are left out."""
    found, start, has_words = list[str](), 0, False
    for token in tokens_of(sql):
        if token.token_type is not TokenType.SEMICOLON:
            has_words = True
            continue
        if has_words:
            found.append(sql[start : token.start].strip())
        start, has_words = token.end + 1, False
    return [*found, sql[start:].strip()] if has_words else found


def read(sql: str) -> Statement:
    """The statement of a text.

    Raises:
        SqlStateError: 42601 if it is none or several, 42501 if it writes or reaches outside, 0A000 if it is not known.
    """
    tokens = tokens_of(sql)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise SqlStateError("42601", "The statement is empty.", "Send one.")
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise SqlStateError("42601", "These are several statements.", "Send one at a time.")
    words = [token.text.upper() for token in tokens]
    if words[0] in _QUERIES:
        return Query(_parsed(tokens, sql))
    if words[0] == "EXPLAIN":
        return _explain(sql[tokens[0].end + 1 :].rstrip().rstrip(";"))
    if words[0] in ("DECLARE", "FETCH", "MOVE", "CLOSE"):
        return _cursor(words[0], sql[tokens[0].end + 1 :].rstrip().rstrip(";"))
    return _control(words) or _session(tokens, words) or _refused(words)


def _cursor(first: str, sql: str) -> Declare | Fetch | CloseCursor:
    """`sql`: what follows the first word, which the parser takes for one text."""
    tokens = tokens_of(sql)
    words = [token.text.upper() for token in tokens]
    if first != "DECLARE":
        return closed(tokens) if first == "CLOSE" else fetched(tokens, moves=first == "MOVE")
    cursor = declared(tokens)
    if words[cursor.query_at] not in _QUERIES:
        _refused(words[cursor.query_at :])
    return Declare(cursor, Query(_parsed(tokens[cursor.query_at :], sql)))


def _explain(sql: str) -> Query:
    """`sql`: what follows the word EXPLAIN."""
    tokens = tokens_of(sql)
    words, rest = [token.text.upper() for token in tokens], 0
    if words[:1] == ["("]:
        rest = words.index(")") + 1 if ")" in words else len(words)
    while words[rest : rest + 1] and words[rest] in ("VERBOSE", "ANALYZE"):
        rest += 1
    if "ANALYZE" in words[:rest]:
        raise SqlStateError("0A000", "EXPLAIN ANALYZE is not supported.", "Use EXPLAIN, or run the statement.")
    if not (words[rest : rest + 1] and words[rest] in _QUERIES):
        _refused(words[rest:] or ["EXPLAIN"])
    return Query(_parsed(tokens[rest:], sql), explains=True)


def _control(words: list[str]) -> Control | None:  # noqa: PLR0911 - one line a command
    first, rest = words[0], words[1:]
    if first in ("SAVEPOINT", "RELEASE"):
        name = rest[-1] if rest else ""
        return Control(Action(first), name) if name and len(rest) <= len(("SAVEPOINT", "name")) else None
    if first == "ROLLBACK" and "TO" in rest:
        return Control(Action.ROLLBACK_TO, rest[-1])
    if first == "ROLLBACK" and rest[:1] == ["PREPARED"]:
        return None
    if not set(rest) <= _ISOLATION:
        return None
    if first == "BEGIN" or (first == "START" and rest[:1] == ["TRANSACTION"]):
        return Control(Action.BEGIN)
    if first in ("COMMIT", "END"):
        return Control(Action.COMMIT)
    return Control(Action.ROLLBACK) if first in ("ROLLBACK", "ABORT") else None


def _session(tokens: list[Token], words: list[str]) -> Setting | Show | NoOperation | None:
    """What clients say about their session."""
    first, rest = words[0], words[1:]
    if first == "SHOW" and rest and _metadata_hint(words) is None:
        named = " ".join(rest)
        return Show(
            {"TIME ZONE": "timezone", "TRANSACTION ISOLATION LEVEL": "transaction_isolation"}.get(named, named.lower())
        )
    if first == "RESET" and rest:
        named = " ".join(rest)
        return Setting("" if named == "ALL" else {"TIME ZONE": "timezone"}.get(named, named.lower()), None, "RESET")
    if first == "SET":
        return _set(tokens, words)
    if first == "DISCARD" and rest in (["ALL"], ["PLANS"], ["SEQUENCES"], ["TEMP"], ["TEMPORARY"]):
        return Setting("", None, f"DISCARD {rest[0]}") if rest == ["ALL"] else NoOperation(f"DISCARD {rest[0]}")
    if first == "DEALLOCATE" and rest:
        return NoOperation("DEALLOCATE ALL" if rest[-1] == "ALL" else "DEALLOCATE")
    return NoOperation("UNLISTEN") if first == "UNLISTEN" and rest else None


def _set(tokens: list[Token], words: list[str]) -> Setting | NoOperation | None:
    is_local = words[1:2] == ["LOCAL"]
    place = 1 + (is_local or words[1:2] == ["SESSION"])
    rest = words[place:]
    if rest[:1] == ["TRANSACTION"] or rest[:1] == ["CHARACTERISTICS"]:
        return NoOperation("SET") if set(rest) <= _ISOLATION else None
    if rest[:1] in (["ROLE"], ["AUTHORIZATION"], ["CONSTRAINTS"]):
        raise SqlStateError("42501", f"SET {rest[0]} is not permitted.", "Connect as the tenant whose data you read.")
    if rest[:2] == ["TIME", "ZONE"]:
        return Setting("timezone", _value(tokens[place + 2 :]), is_local=is_local)
    if rest[:1] == ["NAMES"]:
        return Setting("client_encoding", _value(tokens[place + 1 :]), is_local=is_local)
    for number, word in enumerate(rest):
        if word in ("=", "TO") and number:
            name = "".join(token.text for token in tokens[place : place + number])
            return Setting(name.lower(), _value(tokens[place + number + 1 :]), is_local=is_local)
    return None


def _value(tokens: Sequence[Token]) -> str | None:
    """The value of a setting; None for the default."""
    if not tokens:
        raise SqlStateError("42601", "The setting has no value.", "Write `SET name TO value`.")
    texts = [token.text for token in tokens]
    if [text.upper() for text in texts] in (["DEFAULT"], ["LOCAL"]):
        return None
    allowed = {TokenType.STRING, TokenType.NUMBER, TokenType.VAR, TokenType.COMMA, TokenType.DASH, TokenType.IDENTIFIER}
    words = [token for token in tokens if token.token_type not in allowed and not token.text.replace("_", "").isalnum()]
    if words:
        raise SqlStateError("42601", "The value of the setting cannot be read.", "Write a constant.")
    return "".join(f"{text} " if text == "," else text for text in texts)


TABLES = "select table_name from information_schema.tables where table_schema = 'public'"
COLUMNS = "select column_name, data_type from information_schema.columns where table_name = '{table}'"
AS_CSV = 'For CSV, run the query with `galatea sql --csv "select ..."` or `psql --csv -c "select ..."`.'
_LISTS = frozenset({"TABLES", "DATABASES", "SCHEMAS", "VIEWS", "CATALOGS"})


def _metadata_hint(words: Sequence[str]) -> str | None:
    """How to ask for tables and columns; None for a statement that does not."""
    words = " ".join(words).split()  # the tokenizer takes what follows SHOW for one word
    table = next((word.lower() for word in reversed(words[1:]) if word.replace("_", "").isalnum()), "sales_day")
    of_table = f"Ask `{COLUMNS.format(table=table)}`; in psql, `\\d {table}`."
    if words[0] in ("DESCRIBE", "DESC") or words[:2] in (["SHOW", "COLUMNS"], ["SHOW", "FIELDS"]):
        return of_table
    if words[0] == "SHOW" and not _LISTS.isdisjoint(words[1:3]):
        return f"Ask `{TABLES}`; in psql, `\\d`."
    if words[0] == "\\":
        return f"Commands with a backslash work in psql alone. Ask `{TABLES}`."
    return None


def _refused(words: Sequence[str]) -> NoReturn:
    """Refuse a statement that begins with these words."""
    first = words[0][:40]
    if not first.strip():
        raise SqlStateError("42601", "The statement begins with an empty text.", QUERIES_ONLY)
    if (hint := _metadata_hint(words)) is not None:
        named = "A backslash" if first == "\\" else " ".join(words[:2] if first == "SHOW" else words[:1])
        raise SqlStateError("0A000", f"{named} is not a statement of this server.", hint)
    if first == "COPY" and "FROM" not in words:
        raise SqlStateError("42501", "COPY is not permitted: this is a read-only server.", AS_CSV)
    if first == "SET" and len(words) <= len(("SET", "name")):
        raise SqlStateError("42601", "The setting has no value.", "Write `SET name TO value`.")
    if list(words) == ["EXPLAIN"]:
        raise SqlStateError("42601", "EXPLAIN has no statement.", "Write a query behind it.")
    if first in _WRITES or first == "SELECT":
        raise SqlStateError("42501", f"{first} is not permitted: this is a read-only server.", READ_ONLY)
    if first in _REACH_OUT:
        raise SqlStateError("42501", f"{first} is not permitted: only queries are run.", QUERIES_ONLY)
    hint = did_you_mean(first.lower(), _FIRST_WORDS, QUERIES_ONLY)
    raise SqlStateError("0A000", f"{first} is not a statement of this server.", hint)


def _parsed(tokens: list[Token], sql: str) -> exp.Query:
    """The syntax tree of a query that only reads."""
    depth = 0
    for token in tokens:
        depth += (token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)) - (
            token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET)
        )
        if depth > MOST_DEPTH:
            raise SqlStateError("54001", f"Brackets are nested deeper than {MOST_DEPTH}.", "Use a simpler statement.")
    parser = POSTGRES.parser(error_level=ErrorLevel.RAISE)
    try:
        found = parser.parse(_constants_first(tokens), sql)
    except SqlglotError as error:
        raise unreadable(error) from error
    except (AttributeError, TypeError) as error:  # of the parser, which goes on after an error without what is missing
        if not parser.errors:
            raise
        raise unreadable(parser.errors[0]) from error
    except IndexError as error:  # of the parser, for `a[][1]`
        raise SqlStateError("42601", "Brackets of an array are empty.", "Write such as `a[1]`.") from error
    except RecursionError as error:
        raise too_deep() from error
    query = found[0] if len(found) == 1 else None
    if isinstance(query, exp.Values):
        query = _select_of(query)
    if not isinstance(query, exp.Query):
        raise SqlStateError("42601", "The statement is not a query.", QUERIES_ONLY)
    _refuse_effects(query)
    return query


_TYPES = frozenset({TokenType.DATE, TokenType.TIME, TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ, TokenType.INTERVAL})
_UNITS = frozenset({"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "WEEK", "QUARTER"})


def _constants_first(tokens: list[Token]) -> list[Token]:
    """The words with brackets around constants such as `timestamp '...'`, which bind stronger than a cast.

    An `interval '...'` becomes a cast of the whole text, of which the parser would read the first number alone.
    """
    found, place = list[Token](), 0
    while place < len(tokens):
        token, *following = tokens[place : place + 3]
        is_constant = token.token_type in _TYPES and following and following[0].token_type is TokenType.STRING
        has_unit = len(following) > 1 and following[1].text.upper() in _UNITS
        if not is_constant or (token.token_type is TokenType.INTERVAL and has_unit):
            found.append(token)
            place += 1
            continue
        constant = [token, following[0]]
        if token.token_type is TokenType.INTERVAL:
            constant = [following[0], _word(TokenType.DCOLON, "::", token), token]
        found += [_word(TokenType.L_PAREN, "(", token), *constant, _word(TokenType.R_PAREN, ")", following[0])]
        place += 2
    return found


def _word(kind: TokenType, text: str, beside: Token) -> Token:
    return Token(kind, text, line=beside.line, col=beside.col, start=beside.start, end=beside.end)


def _select_of(values: exp.Values) -> exp.Query:
    """The query that a list of values is, with the columns that PostgreSQL gives it."""
    rows = values.expressions
    width = len(rows[0].expressions) if rows and isinstance(rows[0], exp.Tuple) else 1
    columns = [exp.to_identifier(f"column{number}") for number in range(1, width + 1)]
    named = values.copy()
    order = {name: named.args.pop(name) for name in ("order", "limit", "offset") if named.args.get(name)}
    named.set("alias", exp.TableAlias(this=exp.to_identifier("values", quoted=True), columns=columns))
    query = exp.select("*").from_(named)
    for name, value in order.items():
        query.set(name, value)
    return query


_EFFECTS = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock, exp.Set, exp.Pragma, exp.Attach, exp.Copy, exp.Kill)


def _refuse_effects(query: exp.Query) -> None:
    """Refuse parts of a query that change something or lock it."""
    depths = dict[int, int]()
    for node in query.walk():
        depths[id(node)] = depths.get(id(node.parent), 0) + (not isinstance(node, exp.Connector | exp.SetOperation))
        if depths[id(node)] > MOST_NESTED:
            raise too_deep()
        if isinstance(node, exp.Lock):
            raise SqlStateError("42501", "Rows cannot be locked: this is a read-only server.", "Leave FOR UPDATE out.")
        if isinstance(node, _EFFECTS) and not isinstance(node, exp.Query):
            raise SqlStateError("42501", f"{node.key.upper()} is not permitted within a query.", READ_ONLY)
        if isinstance(node, exp.Select) and len(node.expressions) > MOST_COLUMNS:
            raise SqlStateError("54011", f"A query has more than {MOST_COLUMNS:,} columns.", "Choose fewer.")
        if isinstance(node, exp.TableSample):
            raise SqlStateError("0A000", "TABLESAMPLE is not supported.", "Filter rows instead.")
        if isinstance(node, exp.SimilarTo):
            do = "Use LIKE, or a regular expression with `~`."
            raise SqlStateError("0A000", "SIMILAR TO is not supported.", do)
