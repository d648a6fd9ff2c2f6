"""Errors of the parser and of DuckDB in the words of PostgreSQL, whose users send the statements."""

import re
from collections.abc import Callable, Mapping, Sequence
from re import Match

import duckdb
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from serving_layer.sql.catalog_functions import NEGATIVE_LENGTH, NEGATIVE_ROOT, NO_LOGARITHM
from serving_layer.sql.results import SqlStateError

DIALECT = "The dialect is that of PostgreSQL."
LESS_MEMORY = "Filter by store and day, or aggregate before you join."
FEWER_DIGITS = "Cast to fewer digits before you calculate, such as `value::numeric(20,4)`."
_ADD_CASTS = "Check the types, and add casts where they differ, such as `store::integer`."
MOST_CHARACTERS = 10_000_000
"""Characters of a text that one function makes from a number: DuckDB neither counts nor interrupts this work."""
TOO_LONG = f"A function would make a text of more than {MOST_CHARACTERS:,} characters."
_ECHOED = 200
"""Characters of a statement that are repeated."""


class UndefinedColumnError(SqlStateError):
    """A column that is not there. `column`: its name; `table`: what the statement calls its table; empty if nothing."""

    def __init__(self, column: str, table: str = "", hint: str | None = None) -> None:
        """Name the column, and the table if the statement names it."""
        named = f"{table}.{column}" if table else f'"{column}"'
        super().__init__("42703", f"The column {named} does not exist.", hint)
        self.column, self.table = column, table


# The parser


def unreadable(error: SqlglotError) -> SqlStateError:
    """The error for a text that cannot be parsed."""
    if not isinstance(error, ParseError) or not error.errors:
        return _unterminated(str(error.__cause__ or ""))
    first = error.errors[0]
    said, word = str(first.get("description")), str(first.get("highlight") or "")
    before, after = str(first.get("start_context") or ""), str(first.get("end_context") or "")
    if (missing := _MISSING.search(said)) and _is_function(missing[1]) and (called := _called(before)):
        return SqlStateError("42883", f"The function {called} has too few arguments.", DIALECT)
    if not word or (not after.strip() and not said.startswith("Invalid expression")):
        return SqlStateError("42601", "Syntax error at end of input.", _EXPECTED.get(said[:9], DIALECT))
    hint = "Names are quoted with double quotes, and texts with single ones." if word == "`" else DIALECT
    return SqlStateError("42601", f'Syntax error at or near "{word[:_ECHOED]}".', hint)


_MISSING = re.compile(r"missing for <class 'sqlglot\.[\w.]+\.(\w+)'>")
_EXPECTED = {"Expecting": "A closing bracket may be missing.", "Expected ": DIALECT}


def _is_function(name: str) -> bool:
    kind = getattr(exp, name, None)
    return (
        isinstance(kind, type) and issubclass(kind, exp.Func) and not issubclass(kind, exp.Binary | exp.Cast | exp.Case)
    )


def _called(before: str) -> str:
    """The function whose brackets are open where a text ends; empty if they are those of no function."""
    depth = 0
    for place in range(len(before) - 1, -1, -1):
        depth += (before[place] == ")") - (before[place] == "(")
        if depth < 0:
            found = re.search(r"(\w+)\s*$", before[:place])
            return found[1].lower() if found else ""
    return ""


_OPENED = {"'": "A quoted text", '"': "A quoted name", "*/": "A comment"}


def _unterminated(cause: str) -> SqlStateError:
    found = re.match(r"Missing (\S+) from", cause)
    what = _OPENED.get(found[1] if found else "*/", "A quoted text")
    return SqlStateError("42601", f"{what} is not closed before the end of the statement.", DIALECT)


# DuckDB

_TYPES: Mapping[str, str] = {
    "VARCHAR": "text",
    "STRING_LITERAL": "text",
    "INTEGER_LITERAL": "integer",
    "INTEGER": "integer",
    "INT8": "smallint",
    "INT16": "smallint",
    "INT32": "integer",
    "INT64": "bigint",
    "INT128": "numeric",
    "HUGEINT": "numeric",
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "BIGINT": "bigint",
    "DOUBLE": "double precision",
    "FLOAT": "real",
    "DECIMAL": "numeric",
    "BOOLEAN": "boolean",
    "BOOL": "boolean",
    "BLOB": "bytea",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMP": "timestamp",
    "DATE": "date",
    "TIME": "time",
    "INTERVAL": "interval",
    "UUID": "uuid",
    "JSON": "json",
    '"NULL"': "unknown",
}
_TYPE = re.compile(rf"(?<![\w'\"])(?:{'|'.join(map(re.escape, sorted(_TYPES, key=len, reverse=True)))})(?![\w'\"])")
_WIDEST = re.compile(r"DECIMAL\(38,\d+\)")
_FUNCTIONS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}


def _types(text: str) -> str:
    """A text of DuckDB with the types of PostgreSQL."""
    return _TYPE.sub(lambda found: _TYPES[found[0]], _WIDEST.sub("DECIMAL", text))


def _no_function(found: Match[str]) -> SqlStateError:
    name, types = found[1], _types(found[2])
    one, _, other = types.partition(", ")
    if not re.fullmatch(r"\w+", name):
        operator = _FUNCTIONS.get(name, name)
        said = f"{one} {operator} {other}" if other else f"{operator} {one}"
        return SqlStateError("42883", f"The operator does not exist: {said}.", _ADD_CASTS)
    if name in ("quantile_cont", "quantile_disc") and not other:
        of = name.replace("quantile", "percentile")
        hint = f"Write such as `{of}(0.5) WITHIN GROUP (ORDER BY x)`."
        return SqlStateError("42809", f"The function {of} needs WITHIN GROUP.", hint)
    return SqlStateError("42883", f"The function {name}({types}) does not exist.", _ADD_CASTS)


def _grouped(found: Match[str]) -> SqlStateError:
    message = f'The column "{found[1]}" must appear in the GROUP BY clause or be used in an aggregate function.'
    return SqlStateError("42803", message, f'Add it to GROUP BY, or take one of its values, as in max("{found[1]}").')


def _no_aggregate(found: Match[str]) -> SqlStateError:
    hint = "Filter with HAVING." if found[1] == "WHERE" else None
    return SqlStateError("42803", f"Aggregate functions are not allowed in {found[1]}.", hint)


def _ambiguous(found: Match[str]) -> SqlStateError:
    hint = f"Write {found[2].replace(chr(39), '')}." if found[2] else "Write it with its table."
    return SqlStateError("42702", f'The column reference "{found[1]}" is ambiguous.', hint)


def _no_table(found: Match[str]) -> SqlStateError:
    in_from = re.findall(r'"([^"]+)"', found[2] or "")
    hint = f"FROM has {', '.join(in_from)}." if in_from else "Name its alias, or add it to FROM."
    return SqlStateError("42P01", f'There is no entry for the table "{found[1]}" in FROM.', hint)


def _invalid(kind: str, value: str) -> SqlStateError:
    examples = {"date": "2026-11-21", "timestamp": "2026-11-21 09:00", "timestamptz": "2026-11-21 09:00+00"}
    hint = f"Write such as '{examples[kind]}'." if kind in examples else None
    return SqlStateError("22P02", f'Invalid input syntax for type {kind}: "{value}".', hint)


def _beyond(found: Match[str]) -> SqlStateError:
    hint = "Cast to a type with more digits, such as bigint or numeric(20,2)."
    return SqlStateError("22003", f"{found[1]} is out of range for type {_types(found[2])}.", hint)


def _overflow(found: Match[str]) -> SqlStateError:
    return SqlStateError("22003", f"A result is out of range for type {_types(found[1])}.", FEWER_DIGITS)


def _position(found: Match[str]) -> SqlStateError:
    clause = found[1] if "BY" in found[1] else f"{found[1]} BY"
    columns = f"{found[2]} column{'' if found[2] == '1' else 's'}"
    return SqlStateError("42P10", f"A position in {clause} is not in the select list, which has {columns}.", None)


_Say = Callable[[Match[str]], SqlStateError]


def _always(code: str, message: str, hint: str | None = None) -> _Say:
    """The same error for all; `{0}`, `{1}`, ... are what was found."""
    return lambda found: SqlStateError(code, message.format(*found.groups()), hint)


_OF_EXPRESSIONS = (
    r"((?:missing [\])]|no argument for repetition operator|bad repetition operator|invalid escape sequence|"
    r"invalid character class|trailing \\|unexpected \)|invalid perl operator).*)"
)
_SENTENCES: Sequence[tuple[str, _Say]] = (
    (
        r'Referenced column "(.+?)" (?:not found in FROM clause|was not found because the FROM clause is missing)',
        lambda found: UndefinedColumnError(found[1]),
    ),
    (
        r'Values list "(.+?)" does not have a column named "(.+?)"',
        lambda found: UndefinedColumnError(found[2], found[1]),
    ),
    (r'Table "(.+?)" does not have a column named "(.+?)"', lambda found: UndefinedColumnError(found[2], found[1])),
    (
        r'Column "(.+?)" does not exist on (left|right) side of join',
        _always("42703", 'The column "{0}" of USING does not exist in the {1} table.', "Join with ON instead."),
    ),
    (r'Referenced table "(.+?)" not found!(?:\nCandidate tables: (.*))?', _no_table),
    (r'column "(.+?)" must appear in the GROUP BY clause', _grouped),
    (r"(WHERE|GROUP BY|JOIN|LIMIT) (?:clause|conditions?) cannot contain aggregates", _no_aggregate),
    (
        r"aggregate function calls cannot be nested",
        _always("42803", "Aggregate functions cannot be nested.", "Aggregate in a subquery first."),
    ),
    (
        r"Window functions are not supported here",
        _always("42P20", "A window function stands where none is allowed, or lacks OVER.", "Write OVER (...)."),
    ),
    (
        r"Set operations can only apply to expressions with the same number of result columns",
        _always("42601", "All queries of UNION, INTERSECT or EXCEPT must have the same number of columns."),
    ),
    (r"LIMIT/OFFSET cannot be negative", _always("2201W", "LIMIT and OFFSET must not be negative.")),
    (r"(GROUP BY|ORDER|ORDER BY) term out of range - should be between 1 and (\d+)", _position),
    (r"Ambiguous reference to column name \"(.+?)\"(?: \(use: (.+?)\))?", _ambiguous),
    (
        r'Ambiguous reference to table "(.+?)"',
        _always("42712", 'The table name "{0}" is in FROM more than once.', "Give each table an alias of its own."),
    ),
    (r'Duplicate CTE name "(.+?)"', _always("42712", 'WITH defines "{0}" more than once.')),
    (
        r"Subquery returns (\d+) columns - expected (\d+)",
        _always("42601", "A subquery has {0} columns instead of {1}."),
    ),
    (
        r"More than one row returned by a subquery",
        _always("21000", "More than one row is returned by a subquery used as an expression.", "Aggregate it."),
    ),
    (r"SELECT clause without selection list", _always("42601", "SELECT names no columns.", DIALECT)),
    (r"VALUES lists must all be the same length", _always("42601", "VALUES lists must all have the same length.")),
    (r"DISTINCT requires at least one argument", _always("42601", "DISTINCT needs an argument.", DIALECT)),
    (
        r"(?:name and argument types|candidate function for the function call) ['\"](\S+?)\((.*?)\)['\"]\.(?: |$)",
        _no_function,
    ),
    (
        r"Cannot compare values of (?:type )?(\S+)(?: and type | and )(\S+)",
        lambda found: SqlStateError(
            "42883", f"Values of type {_types(found[1])} and {_types(found[2])} cannot be compared.", _ADD_CASTS
        ),
    ),
    (r'invalid (date|timestamp|time) field format: "(.*?)"', lambda found: _invalid(found[1], found[2])),
    (
        r'(date|timestamp|time) field value out of range: "(.*?)"',
        _always("22008", 'The {0} "{1}" is out of range.', "Check its month, day and time."),
    ),
    (
        r"Could not convert string ['\"](.*)['\"] to ([A-Z0-9_]+(?:\([\d,]+\))?)",
        lambda found: _invalid(_types(found[2]), found[1]),
    ),
    (r"Type \w+ with value (.+?) can't be cast .* destination type (\S+)", _beyond),
    (r"Could not cast value (\S+) to (DECIMAL\(\d+,\d+\))", _beyond),
    (r"Overflow in \w+ of ([A-Z0-9_]+)", _overflow),
    (r"[Vv]alue (\S+) is out of range for type '?([A-Z0-9_]+)", _beyond),
    (
        r'extract specifier "(.*?)" not recognized',
        lambda found: SqlStateError(
            "22023", f'The unit "{found[1].lower()}" is not recognized.', "Write such as day or month."
        ),
    ),
    (
        r"Type with name (.+?) does not exist",
        lambda found: SqlStateError("42704", f'The type "{found[1].lower()}" does not exist.', None),
    ),
    (_OF_EXPRESSIONS, _always("2201B", "Invalid regular expression: {0}.")),
    (
        r"PERCENTILEs can only take parameters in the range \[0, 1\]",
        _always("22003", "The fraction of a percentile is between 0 and 1.", "Write 0.95 for the 95th percentile."),
    ),
    (
        r"Invalid escape string\. Escape string must be",
        _always("22025", "The escape string of LIKE has more than one character.", "Such as `LIKE '50!%' ESCAPE '!'`."),
    ),
    (
        r"UNNEST requires a single list",
        _always("42883", "The function unnest needs an array.", "Such as `unnest(ARRAY[1, 2])`."),
    ),
    (
        r"Malformed JSON at byte \d+ of input: (.*?)\.? +Input: ",
        _always("22P02", "Invalid input syntax for type json: {0}."),
    ),
)
"""What DuckDB says, and what is said instead. The first that is found counts."""
_KNOWN = [(re.compile(pattern, re.DOTALL if "Candidate" in pattern else 0), say) for pattern, say in _SENTENCES]
_STATES: Sequence[tuple[type[duckdb.Error], str, str | None]] = (
    (duckdb.OutOfMemoryException, "53200", LESS_MEMORY),
    (duckdb.ParserException, "42601", None),
    (duckdb.SyntaxException, "42601", None),
    (duckdb.BinderException, "42703", None),
    (duckdb.CatalogException, "42883", None),
    (duckdb.ConversionException, "22P02", None),
    (duckdb.OutOfRangeException, "22003", FEWER_DIGITS),
    (duckdb.PermissionException, "42501", "Tables of Galatea can be read, and nothing else."),
    (duckdb.NotImplementedException, "0A000", None),
    (duckdb.ConstraintException, "22023", None),
    (duckdb.InvalidInputException, "22023", None),
)
"""The codes of all other errors."""
_NAMED: Mapping[str, type[duckdb.Error]] = {
    "INTERRUPT Error": duckdb.InterruptException,
    "Out of Memory Error": duckdb.OutOfMemoryException,
    "Conversion Error": duckdb.ConversionException,
    "Out of Range Error": duckdb.OutOfRangeException,
    "Not implemented Error": duckdb.NotImplementedException,
    "Constraint Error": duckdb.ConstraintException,
    "Invalid Input Error": duckdb.InvalidInputException,
}
"""What the message of an error begins with that occurs while rows are computed."""
_MOST_READ = 4_000
"""Characters of a message of DuckDB that are read: it may hold a text of the statement."""
_RAISED = {NEGATIVE_ROOT: "2201F", NO_LOGARITHM: "2201E", NEGATIVE_LENGTH: "22011"}
"""Errors of functions of ours, with their codes."""


def execution_error(error: duckdb.Error) -> SqlStateError:  # noqa: PLR0911 - one line a kind
    """The error for a statement that DuckDB does not run."""
    text = _message(error)
    if text in _RAISED:
        return SqlStateError(_RAISED[text], f"{text[0].upper()}{text[1:]}.", None)
    if text.startswith("Division by zero"):
        return SqlStateError("22012", "Division by zero.", "Write `nullif(divisor, 0)`: the result is NULL then.")
    if isinstance(error, duckdb.InterruptException):
        return SqlStateError("57014", "The statement was canceled.", None)
    if text == TOO_LONG:
        return SqlStateError("54000", text, "Make a shorter one.")
    if isinstance(error, duckdb.OutOfMemoryException):
        return SqlStateError("53200", _sentence(text), LESS_MEMORY)
    if (known := known_error(text)) is not None:
        return known
    for kind, code, hint in _STATES:
        if isinstance(error, kind):
            is_column = kind is not duckdb.BinderException or "column" in text
            return SqlStateError(code if is_column else "42804", _sentence(text), hint)
    return SqlStateError("XX000", _sentence(text), None)


def ended_error(*, was_killed: bool, has_begun: bool) -> SqlStateError:
    """The error for a statement whose process has ended.

    Args:
        was_killed: because the statement went on after it was interrupted.
        has_begun: the process was ready for statements before.
    """
    if was_killed:
        return SqlStateError("57014", "The statement was canceled.", None)
    if not has_begun:
        again = "Try again; the log of `sql` says why."
        return SqlStateError("58000", "The process for the statement cannot be started.", again)
    return SqlStateError("53200", "The statement needs more memory than its process has.", LESS_MEMORY)


def too_deep() -> SqlStateError:
    """The error for a statement with too many levels."""
    return SqlStateError("54001", "The statement is nested too deep.", "Use a simpler statement.")


def refuse_large_result(size: int, most: int) -> None:
    """SqlStateError 54000 if a result of `size` bytes has more than `most`."""
    if size > most:
        hint = "Choose fewer columns or rows, or use `galatea export`."
        raise SqlStateError("54000", f"The result has more than {most:,} bytes.", hint)


def stream_error(error: OSError) -> SqlStateError:
    """The error for a statement that fails after its first rows: Arrow, which reads them, passes on the text alone."""
    kind = _NAMED.get(str(error).partition(": ")[0], duckdb.Error)
    return execution_error(kind(str(error)))


def known_error(text: str) -> SqlStateError | None:
    """The error for a message of DuckDB; None if it is not one of those that are known."""
    for pattern, say in _KNOWN:
        if found := pattern.search(text, 0, _MOST_READ):
            return say(found)
    return None


def _message(error: duckdb.Error) -> str:
    """The first paragraph, without the kind of error that it begins with and the quoted statement that follows."""
    first = str(error).split("\n\nLINE ")[0].split("\n\tCandidate")[0].strip()
    return first.split(": ", 1)[-1] if first.split(": ", 1)[0].endswith("Error") else first


def _sentence(text: str) -> str:
    """A message of DuckDB that is not known, as a sentence: its first line, without what cannot be done here."""
    first = without_advice(text).splitlines()[0].rstrip("!. ")
    return f"{first[:1].upper()}{_types(first[1:])}."


def without_advice(text: str) -> str:
    """A message of DuckDB without what it recommends, where that cannot be done here."""
    return _ADVICE.sub("", text[:_MOST_READ]).strip()


_ADVICE = re.compile(
    r"[ \n](?:You (?:can|might)|Use|To|In order to|Try)\b[^.]*(?:\bSET\b|TRY|try_cast|TRY_CAST).*", re.DOTALL
)
"""What DuckDB recommends that cannot be done here."""
