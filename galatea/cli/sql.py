"""`galatea sql`: one statement, answered by the SQL component like any PostgreSQL client's."""

import csv
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deploy.console import print_json, print_message, print_table, text_output
from deploy.local.nodes import reachable
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.client.dataframes import without_formula
from master_dataset.errors import DependencyUnavailableError, OperatorError, RequestError

if TYPE_CHECKING:
    import ssl

    from pg8000.core import CoreConnection

GRACE_SECONDS = 10
"""Longer than a statement may take, the command waits for its end."""
NULL = "null"
_UNAVAILABLE = frozenset({"53300", "57P01", "57P03"})
"""SQLSTATEs that pass by themselves."""


def sql(
    statement: Annotated[str, typer.Argument(help="One SELECT or SHOW; `-` reads it from stdin.")],
    tenant: Annotated[str, typer.Option("--tenant", help="Tenant whose data the statement sees.")] = "default",
    as_csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values on stdout.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run one SQL statement as the operator of the local stack.

    To list the tables: `select table_name from information_schema.tables`.
    """
    if as_csv and as_json:
        raise RequestError("The output is either CSV or JSON.", do="Leave out --csv or --json.")
    columns, rows = _answer(sys.stdin.read() if statement == "-" else statement, tenant)
    if as_json:
        names = _distinct(columns)
        values = [dict(zip(names, map(_json_value, row), strict=True)) for row in rows]
        print_json({"columns": names, "rows": values})
    elif as_csv:
        writer = csv.writer(text_output(), lineterminator="\n")
        writer.writerow(without_formula(name) for name in columns)
        writer.writerows([_csv_text(value) for value in row] for row in rows)
    else:
        print_table(columns, [[_text(value, NULL) for value in row] for row in rows])
        print_message(f"  {len(rows):,} row{'' if len(rows) == 1 else 's'}")


def _answer(statement: str, tenant: str) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """Columns and rows of a statement.

    Raises:
        RequestError: the server refuses the statement.
        DependencyUnavailableError: it does not answer.
        OperatorError: there is no operator key.
    """
    from pg8000.exceptions import DatabaseError, InterfaceError

    try:
        connection = _connected(Settings(), tenant)
        try:
            result = connection.execute_simple(statement)
        finally:
            connection.close()  # also after Ctrl-C, so that the server cancels the statement
    except DatabaseError as error:
        raise _as_error(error.args[0]) from error
    except (InterfaceError, OSError) as error:
        raise DependencyUnavailableError("The SQL component does not answer.", do="galatea status") from error
    return [column["name"] for column in result.columns or ()], result.rows or ()


def _connected(settings: Settings, tenant: str) -> "CoreConnection":
    from pg8000.core import CoreConnection

    key = settings.home / "operator.key"
    if not key.exists():
        raise OperatorError(f"There is no operator key in `{settings.home}`.", do="galatea up")
    return CoreConnection(
        tenant,
        host=reachable(settings.sql.host),
        port=settings.sql.port,
        database="galatea",
        password=key.read_text().strip(),
        timeout=settings.sql.statement_seconds + GRACE_SECONDS,
        application_name="galatea sql",
        ssl_context=_trust(settings),
    )


def _trust(settings: Settings) -> "ssl.SSLContext | Literal[False]":
    """For TLS. The certificate has to name the address that the component listens on."""
    from master_dataset.tls import Tls

    return Tls(settings.api.ca_file).context() if settings.tls.is_on else False


def _as_error(fields: dict[str, str]) -> Exception:
    code, message = fields.get("C", ""), fields.get("M", "The statement failed.")
    kind = DependencyUnavailableError if code in _UNAVAILABLE else RequestError
    return kind(f"{message.rstrip('.')} (SQLSTATE {code}).", do=fields.get("H", "Correct the statement."))


def _distinct(columns: Sequence[str]) -> list[str]:
    """Names for JSON: a column that has the name of an earlier one gets its number."""
    return [name if name not in columns[:at] else f"{name}_{at + 1}" for at, name in enumerate(columns)]


def _json_value(value: Any) -> Any:  # noqa: ANN401 - of any type
    import orjson

    if isinstance(value, Decimal) and value.is_finite():
        return orjson.Fragment(format(value, "f"))  # keeps all digits
    if isinstance(value, list):
        return [_json_value(each) for each in value]
    return _text(value, NULL) if isinstance(value, Decimal | bytes) else value


def _csv_text(value: Any) -> str:  # noqa: ANN401 - of any type
    return without_formula(str(value)) if isinstance(value, str | list) else _text(value, "")


def _text(value: Any, null: str) -> str:  # noqa: ANN401 - of any type
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)
