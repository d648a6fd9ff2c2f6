"""From a query as clients of PostgreSQL write it to the text that DuckDB runs.

Most of the two dialects is the same, and sqlglot knows much of the rest. Here are values of parameters and of the
session, names of tables and types, and what the catalogs of PostgreSQL are asked with.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import cast
from zoneinfo import ZoneInfo

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from serving_layer.sql.catalog_functions import DESCRIPTIONS, NAMES, PREFIX, RENAMED, TABLE_MACROS
from serving_layer.sql.names import DATABASE, PG_CATALOG, PUBLIC, SCHEMAS, SERVER_VERSION
from serving_layer.sql.results import MOST_DIGITS, SqlStateError, SqlType, bounded, require_few
from serving_layer.sql.suggestions import missing_relation

NUMERIC_DECIMALS = 12
"""Digits behind the point of a `numeric` that does not say how many."""
NUMERIC = f"DECIMAL({MOST_DIGITS},{NUMERIC_DECIMALS})"
_TYPE_NAMES: Mapping[str, str] = {
    "name": "VARCHAR",
    "char": "VARCHAR",
    "text": "VARCHAR",
    "bpchar": "VARCHAR",
    "varchar": "VARCHAR",
    "cstring": "VARCHAR",
    "unknown": "VARCHAR",
    "regproc": "VARCHAR",
    "regprocedure": "VARCHAR",
    "regoper": "VARCHAR",
    "regrole": "VARCHAR",
    "aclitem": "VARCHAR",
    "information_schema.sql_identifier": "VARCHAR",
    "oid": "BIGINT",
    "xid": "BIGINT",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "numeric": NUMERIC,
    "decimal": NUMERIC,
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "interval": "INTERVAL",
    "int2vector": "BIGINT[]",
    "oidvector": "BIGINT[]",
}
"""Types that sqlglot leaves as they are."""
_SQL_TYPES: Mapping[SqlType, str] = {
    SqlType.BOOL: "BOOLEAN",
    SqlType.INT2: "SMALLINT",
    SqlType.INT4: "INTEGER",
    SqlType.INT8: "BIGINT",
    SqlType.OID: "BIGINT",
    SqlType.FLOAT4: "FLOAT",
    SqlType.FLOAT8: "DOUBLE",
    SqlType.NUMERIC: NUMERIC,
    SqlType.DATE: "DATE",
    SqlType.TIME: "TIME",
    SqlType.TIMESTAMP: "TIMESTAMP",
    SqlType.TIMESTAMPTZ: "TIMESTAMPTZ",
    SqlType.INTERVAL: "INTERVAL",
    SqlType.BYTEA: "BLOB",
    SqlType.TEXT_ARRAY: "VARCHAR[]",
    SqlType.INT8_ARRAY: "BIGINT[]",
    SqlType.BOOL_ARRAY: "BOOLEAN[]",
    SqlType.FLOAT8_ARRAY: "DOUBLE[]",
    SqlType.NUMERIC_ARRAY: f"{NUMERIC}[]",
    SqlType.DATE_ARRAY: "DATE[]",
    SqlType.TIMESTAMP_ARRAY: "TIMESTAMP[]",
    SqlType.TIMESTAMPTZ_ARRAY: "TIMESTAMPTZ[]",
    SqlType.UUID: "UUID",
}
MOST_UNSUPPORTED = 100
PRODUCT_DIGITS = 19
"""From so many on, the product of two decimals may have all digits. With more, there is less room for fractions."""
OF_TIME_ZONES = "EXTRACT from TIMESTAMPTZ"
"""A warning that sqlglot gives about what DuckDB does as PostgreSQL does: in the time zone of the session."""
_OPERATORS: Mapping[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    "~": lambda one, other: exp.RegexpLike(this=one, expression=other),
    "~*": lambda one, other: exp.RegexpILike(this=one, expression=other),
    "!~": lambda one, other: exp.Not(this=exp.RegexpLike(this=one, expression=other)),
    "!~*": lambda one, other: exp.Not(this=exp.RegexpILike(this=one, expression=other)),
    "~~": lambda one, other: exp.Like(this=one, expression=other),
    "!~~": lambda one, other: exp.Not(this=exp.Like(this=one, expression=other)),
    "=": lambda one, other: exp.EQ(this=one, expression=other),
    "<>": lambda one, other: exp.NEQ(this=one, expression=other),
    "<": lambda one, other: exp.LT(this=one, expression=other),
    "<=": lambda one, other: exp.LTE(this=one, expression=other),
    ">": lambda one, other: exp.GT(this=one, expression=other),
    ">=": lambda one, other: exp.GTE(this=one, expression=other),
    "+": lambda one, other: exp.Add(this=one, expression=other),
    "-": lambda one, other: exp.Sub(this=one, expression=other),
    "||": lambda one, other: exp.DPipe(this=one, expression=other),
}


@dataclass
class Clock:
    """The time of a transaction. `is_read`: whether a statement depends on it."""

    time: datetime
    is_read: bool = False

    def read(self) -> datetime:
        """The time."""
        self.is_read = True
        return self.time


@dataclass(frozen=True)
class SessionValues:
    """What statements can ask of their session.

    Attributes:
        user: the name that the caller connected with.
        zone: the time zone of the session.
        clock: the time of the transaction.
        settings: the settings of the session.
        relations: by name the oids of tables, for `::regclass`.
    """

    user: str
    zone: ZoneInfo
    clock: Clock
    settings: Mapping[str, str]
    relations: Mapping[str, int] = field(default_factory=dict)

    @property
    def local(self) -> datetime:
        """The time of the transaction on the clock of the session, without an offset."""
        return self.clock.read().astimezone(self.zone).replace(tzinfo=None)


def literal(value: object) -> exp.Expr:  # noqa: C901, PLR0911 - one line a type
    """A constant of a value. SqlStateError 0A000 for a value that is none."""
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, int):
        number = exp.Literal.number(str(abs(value)))
        return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
    if isinstance(value, float):
        return _cast(exp.Literal.string(repr(value)), "DOUBLE")
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime):
        kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
        return _cast(exp.Literal.string(value.isoformat(sep=" ")), kind)
    if isinstance(value, date | time):
        return _cast(exp.Literal.string(value.isoformat()), "DATE" if isinstance(value, date) else "TIME")
    if isinstance(value, bytes | bytearray):
        return exp.func("FROM_HEX", exp.Literal.string(bytes(value).hex()), dialect="duckdb")
    if isinstance(value, Sequence):
        return exp.Array(expressions=[literal(each) for each in value])
    raise SqlStateError("0A000", "A parameter has a type that is not read.", "Write its value into the statement.")


def _decimal(value: Decimal) -> exp.Expr:
    """A decimal of as many digits as it is written with, also if it is whole."""
    if not value.is_finite():
        return _cast(exp.Literal.string(str(value)), "DOUBLE")
    text = f"{value:f}"
    whole, _, fraction = text.removeprefix("-").lstrip("0").partition(".")
    if len(whole) + len(fraction) > MOST_DIGITS:
        raise SqlStateError("22003", f"A parameter has more than {MOST_DIGITS} digits.", "Round it.")
    digits = max(len(whole) + len(fraction), PRODUCT_DIGITS)
    return _cast(exp.Literal.string(text), f"DECIMAL({digits}, {len(fraction)})")


_ELEMENT = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"\s*+|([^",{}]*+))(,|$)')


def array_of(text: str) -> exp.Expr:
    """The array of a text such as `{1,"a b",NULL}`. SqlStateError 22P02 for any other text, and arrays of arrays."""
    inner, found, place = text.strip()[1:-1], list[exp.Expr](), 0
    if not (text.strip().startswith("{") and text.strip().endswith("}")):
        raise SqlStateError(
            "22P02", f'"{text[:60]}" is not a valid array.', "Write such as `{a,b}`, or ARRAY['a', 'b']."
        )
    while place < len(inner) or (inner and inner.endswith(",") and place == len(inner)):
        require_few(found)
        match = _ELEMENT.match(inner, place)
        if match is None:
            raise SqlStateError("22P02", f'"{text[:60]}" is not an array of one dimension.', "Write such as `{a,b}`.")
        quoted, plain = match[1], (match[2] or "").strip()
        if quoted is not None:
            found.append(exp.Literal.string(re.sub(r"\\(.)", r"\1", quoted)))
        else:
            found.append(exp.null() if plain.upper() == "NULL" else exp.Literal.string(plain))
        if not match[3]:
            break
        place = match.end()
    return exp.Array(expressions=found)


def _cast(expression: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=expression, to=exp.DataType.build(kind, dialect="duckdb"))


def with_parameters(query: exp.Query, values: Sequence[object] | None, types: Sequence[SqlType]) -> exp.Query:
    """The query with constants for its parameters.

    Args:
        query: stays as it is.
        values: of `$1`, `$2`, ...; None where only the types count.
        types: their types.

    Raises:
        SqlStateError: 42P02 if there are fewer values than parameters.
    """

    def bound(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Placeholder):
            raise SqlStateError("42601", "Parameters are written `$1`, `$2`, ...", None)
        if not isinstance(node, exp.Parameter):
            return node
        place = parameter_number(node) - 1
        if place >= len(types if values is None else values):
            raise SqlStateError("42P02", f"There is no parameter ${place + 1}.", "Give a value for each.")
        kind = _SQL_TYPES.get(types[place]) if place < len(types) else None
        if values is None and isinstance(node.parent, exp.Round) and node.arg_key == "decimals":
            return exp.Literal.number(0)  # DuckDB takes no NULL there
        return _typed_literal(None if values is None else values[place], kind)

    return rewritten(query, bound)


def _typed_literal(value: object, kind: str | None) -> exp.Expr:
    """A constant of a parameter. `kind`: its type for DuckDB; None for a text, and where none is known."""
    if value is None:
        return _cast(exp.null(), kind or "VARCHAR")
    if isinstance(value, str) and kind is not None and kind.endswith("[]"):
        return _cast(array_of(value), kind)
    found = literal(value)
    if kind is None or (isinstance(found, exp.Cast) and not isinstance(value, float)):
        return found
    return _cast(found, kind)


def rewritten(query: exp.Query, change: Callable[[exp.Expr], exp.Expr]) -> exp.Query:
    """A copy of the query with each of its nodes changed, the inner ones before those that they are in."""
    found: exp.Expr = query.copy()
    for node in reversed(list(found.walk())):
        new = change(node)
        if node is found:
            found = new
        elif new is not node:
            put(new, node)
    return cast("exp.Query", found)  # nothing makes something else of a query


def put(new: exp.Expr, old: exp.Expr) -> None:
    """Put an expression in the place of another; in a list, without a look at all the others of the list."""
    parent, key, index = old.parent, old.arg_key, old.index
    if parent is None or parent is new or key is None or index is None:
        old.replace(new)
        return
    parent.args[key][index] = new
    new.parent, new.arg_key, new.index = parent, key, index
    old.parent = old.arg_key = old.index = None


def parameter_number(node: exp.Parameter) -> int:
    """The number of a parameter. SqlStateError 42601 for a name."""
    if not (
        isinstance(node.this, exp.Literal)
        and not node.this.is_string
        and node.this.name.isdecimal()
        and (number := bounded(node.this.name))
    ):
        raise SqlStateError("42601", "Parameters are written `$1`, `$2`, ...", "Use numbers from 1 on.")
    return number


def translated(query: exp.Query, session: SessionValues) -> exp.Query:
    """The query with everything that DuckDB does not know written otherwise; tables are as they were."""
    return rewritten(query, lambda node: _translated(node, session))


def duckdb_sql(expression: exp.Expr) -> str:
    """The text that DuckDB runs. SqlStateError 0A000 if it has no such expression."""
    try:
        return expression.sql(dialect="duckdb", unsupported_level=ErrorLevel.RAISE, max_unsupported=MOST_UNSUPPORTED)
    except SqlglotError as error:
        reasons = [line for line in str(error).splitlines() if not line.startswith(OF_TIME_ZONES)]
        if reasons:
            raise SqlStateError("0A000", _unsupported(reasons[0]), "Write it otherwise.") from error
    return expression.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)


def _unsupported(reason: str) -> str:
    """A reason of sqlglot as a sentence."""
    named = re.fullmatch(r"Unsupported (\w+) function", reason)
    return f"The function {named[1].lower()} is not supported." if named else f"{reason.rstrip('.')}."


def _translated(node: exp.Expr, session: SessionValues) -> exp.Expr:  # noqa: C901, PLR0911 - one line a kind
    if isinstance(node, exp.ByteString | exp.RawString):
        return exp.Literal.string(node.name)
    if isinstance(node, exp.Dot) and isinstance(node.this, exp.Identifier) and node.this.name.lower() in SCHEMAS:
        return cast("exp.Expr", node.expression)  # a function with its schema
    if isinstance(node, exp.Column) and len(node.parts) > len(("table", "column")):
        return exp.column(node.args["this"], table=node.args["table"])
    if isinstance(node, exp.Column) and not node.table and not node.this.args.get("quoted"):
        return _value_named(node, session)
    if isinstance(node, exp.Table | exp.Unnest) and not isinstance(node.this, exp.Identifier):
        return _from_function(node)
    if isinstance(node, exp.Operator):
        return _operator(node)
    if isinstance(node, exp.Like | exp.ILike) and not isinstance(node.parent, exp.Escape):
        return _with_escape(node)
    if isinstance(node, exp.Collate):
        return cast("exp.Expr", node.this)
    if isinstance(node, exp.Cast):
        return _typed(node, session)
    if isinstance(node, exp.Parameter | exp.SessionParameter):
        raise SqlStateError("42601", "Parameters are written `$1`, `$2`, ...", "Use numbers from 1 on.")
    return _function(node, session)


def _from_function(node: exp.Table | exp.Unnest) -> exp.Expr:
    """A function in FROM, whose column has the name of its alias; one that makes no rows gives one."""
    name, columns = node.alias, node.alias_column_names
    made = node.this if isinstance(node, exp.Table) else node
    if not name or columns or isinstance(made, exp.Anonymous):
        return node
    if isinstance(made, exp.ExplodingGenerateSeries | exp.GenerateSeries | exp.Unnest):
        named = node.copy()
        named.args["alias"].set("columns", [exp.to_identifier(name)])
        return named
    return exp.select(exp.alias_(made.copy(), name)).subquery(name)


def _with_escape(node: exp.Like | exp.ILike) -> exp.Expr:
    """A comparison in which a backslash takes the meaning of the character behind it, as in PostgreSQL."""
    pattern = node.expression
    if isinstance(pattern, exp.Literal | exp.Any) and "\\" not in pattern.name:
        return node
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


_FORMATS = (("F%month", "%B"), ("Mon", "%b"), ("%uy", "%a"), ("HH", "%I"), ("AM", "%p"), ("PM", "%p"), ("MS", "%g"))
"""What sqlglot leaves of the formats of PostgreSQL, and what it means."""
_QUOTED = re.compile('"([^"]*)"')
_LEFT_OVER = re.compile("(?<!%)(?<!%-)[A-Za-z]|%[uU]")
"""A part of a format that is unknown, or means something else in DuckDB."""


def _formatted(node: exp.Expr) -> exp.Expr:
    """A conversion of a time from or to text, with its format. SqlStateError 0A000 for a format that is not known."""
    given = node.args.get("format")
    if not (isinstance(given, exp.Literal) and given.is_string):
        raise SqlStateError("0A000", "The format has to be a constant.", "Write it into the statement.")
    text = given.name
    for part, known in _FORMATS:
        text = text.replace(part, known)
    if _LEFT_OVER.search(_QUOTED.sub("", text)):
        hint = "YYYY, MM, DD, HH24, HH12, MI, SS, MS, US, Mon, Dy, FMMonth, TMDay, AM, IYYY, IW and DDD are known."
        raise SqlStateError("0A000", "The format has a part that is not known here; numbers have none.", hint)
    changed = node.copy()
    changed.set("format", exp.Literal.string(_QUOTED.sub(r"\1", text)))
    return changed


def _operator(node: exp.Operator) -> exp.Expr:
    name = str(node.args["operator"]).rpartition(".")[2]
    if name not in _OPERATORS:
        raise SqlStateError("0A000", f"OPERATOR({name[:20]}) is not supported.", "Write the operator itself.")
    return _OPERATORS[name](node.this, node.expression)


def _typed(node: exp.Cast, session: SessionValues) -> exp.Expr:
    kind = node.to
    is_text = isinstance(node.this, exp.Literal) and node.this.is_string
    if kind.this is exp.DType.ARRAY and is_text:
        return exp.Cast(this=array_of(node.this.name), to=kind)
    if kind.this is not exp.DType.USERDEFINED:
        named = kind.sql("postgres").lower()
    else:
        of = kind.args.get("kind")
        named = (of.sql("postgres") if isinstance(of, exp.Expr) else str(of)).lower()
    named = named.replace('"', "").removeprefix(f"{PG_CATALOG}.")
    if named == "regclass":
        return _regclass(node.this, session)
    if named in ("regtype", "regnamespace"):
        return exp.Anonymous(this=f"{PREFIX}{named}", expressions=[node.this])
    if named == "regproc" and is_text:  # catalogs name functions by texts here
        return exp.Literal.string(node.this.name.removeprefix(f"{PG_CATALOG}."))
    is_array = named.endswith("[]")
    known = _TYPE_NAMES.get(named.removesuffix("[]")) if kind.this is exp.DType.USERDEFINED or is_array else None
    if named in ("name", "name[]", "oid", "oid[]", "char", "int2vector", "oidvector"):
        known = _TYPE_NAMES[named.removesuffix("[]")]
    if known is None:
        return node
    return exp.Cast(this=node.this, to=exp.DataType.build(f"{known}[]" if is_array else known, dialect="duckdb"))


def _regclass(of: exp.Expr, session: SessionValues) -> exp.Expr:
    """The oid of a table that is named, or the name of one whose oid is given."""
    if not (isinstance(of, exp.Literal) and of.is_string):
        return _described("regclass", [of])
    name = of.name.replace('"', "")
    if name.isdigit():
        return exp.Literal.number(name)
    schema, _, table = name.rpartition(".")
    oid = session.relations.get(f"{schema or PUBLIC}.{table}") or session.relations.get(
        f"{schema or PG_CATALOG}.{table}"
    )
    if oid is None:
        raise missing_relation(table, schema, session.relations)
    return exp.Literal.number(str(oid))


def _value_named(node: exp.Column, session: SessionValues) -> exp.Expr:
    """What PostgreSQL calls without brackets."""
    name = node.name.lower()
    if name in ("user", "current_role"):
        return exp.Literal.string(session.user)
    return node


def _instant(session: SessionValues) -> exp.Expr:
    return _cast(exp.Literal.string(session.clock.read().astimezone(UTC).isoformat(sep=" ")), "TIMESTAMPTZ")


def _function(node: exp.Expr, session: SessionValues) -> exp.Expr:  # noqa: C901, PLR0911 - one line a kind
    if isinstance(node, exp.CurrentTimestamp):
        return _instant(session)
    if isinstance(node, exp.CurrentDate):
        return literal(session.local.date())
    if isinstance(node, exp.Initcap):
        return exp.Anonymous(this=f"{PREFIX}initcap", expressions=[node.this])
    if isinstance(node, exp.Localtimestamp):
        return literal(session.local)
    if isinstance(node, exp.CurrentTime | exp.Localtime):
        return literal(session.local.time())
    if isinstance(node, exp.CurrentUser | exp.SessionUser):
        return exp.Literal.string(session.user)
    if isinstance(node, exp.CurrentCatalog | exp.CurrentDatabase):
        return exp.Literal.string(DATABASE)
    if isinstance(node, exp.CurrentSchema):
        return exp.Literal.string(PUBLIC)
    if isinstance(node, exp.CurrentSchemas):
        implicit = isinstance(node.this, exp.Boolean) and node.this.this
        return literal([PG_CATALOG, PUBLIC] if implicit else [PUBLIC])
    if isinstance(node, exp.CurrentVersion):
        return exp.Literal.string(f"PostgreSQL {SERVER_VERSION} (Galatea)")
    if isinstance(node, exp.TimeToStr | exp.StrToDate):
        return _formatted(node)
    if isinstance(node, exp.StrToTime):  # `to_timestamp` with a format
        return _cast(_formatted(node), "TIMESTAMPTZ")
    return _called(node, session) if isinstance(node, exp.Anonymous) else node


def _called(node: exp.Anonymous, session: SessionValues) -> exp.Expr:  # noqa: C901, PLR0911 - one line a name
    name, arguments = node.name.lower(), node.expressions
    if name in ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "now"):
        return _instant(session)
    if name == "age" and len(arguments) == 1:  # from midnight of today, which DuckDB would take from its own clock
        midnight = datetime.combine(session.local.date(), time())
        return exp.Anonymous(this=name, expressions=[literal(midnight), *arguments])
    if name == "version":
        return exp.Literal.string(f"PostgreSQL {SERVER_VERSION} (Galatea)")
    if name in ("current_database", "current_catalog"):
        return exp.Literal.string(DATABASE)
    if name == "current_schemas":
        implicit = bool(arguments) and isinstance(arguments[0], exp.Boolean) and arguments[0].this
        return literal([PG_CATALOG, PUBLIC] if implicit else [PUBLIC])
    if name in ("current_user", "session_user", "current_role"):
        return exp.Literal.string(session.user)
    if name == "current_setting":
        return _setting(arguments, session)
    if name == "pg_backend_pid":
        return exp.Literal.number("1")
    if name in NAMES | TABLE_MACROS:
        return exp.Anonymous(this=f"{PREFIX}{name}", expressions=arguments)
    if name in RENAMED:
        return exp.Anonymous(this=RENAMED[name], expressions=arguments)
    if name in DESCRIPTIONS:
        return _described(name, arguments)
    if name == "set_config":
        message = "set_config is not permitted: a query changes nothing."
        raise SqlStateError("42501", message, "Use SET, with a setting that SHOW ALL lists.")
    return node


def _described(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """The query that a function about the catalogs is here."""

    def argument(node: exp.Expr) -> exp.Expr:
        place = int(node.name) - 1 if isinstance(node, exp.Parameter) else -1
        if place >= len(arguments):
            raise SqlStateError("42883", f"The function {name} has more arguments.", "Give it all of them.")
        return node if place < 0 else arguments[place]

    query = sqlglot.parse_one(DESCRIPTIONS[name], read="postgres")
    return query.transform(argument)


def _setting(arguments: Sequence[exp.Expr], session: SessionValues) -> exp.Expr:
    name = arguments[0].unnest() if arguments else exp.null()
    while isinstance(name, exp.Cast):
        name = name.this.unnest()
    if isinstance(name, exp.Null):  # a parameter whose value is not known yet
        return _cast(exp.null(), "VARCHAR")
    if not (isinstance(name, exp.Literal) and name.is_string):
        raise SqlStateError("0A000", "current_setting takes a constant name here.", "Write the name of a setting.")
    if name.name.lower() in session.settings:
        return exp.Literal.string(session.settings[name.name.lower()])
    if len(arguments) > 1 and isinstance(arguments[1], exp.Boolean) and arguments[1].this:
        return _cast(exp.null(), "VARCHAR")
    raise SqlStateError("42704", f'There is no setting "{name.name[:60]}".', "SHOW ALL lists them.")
