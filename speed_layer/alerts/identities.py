"""Event identities that are no longer kept in memory: a table of SQLite for each topic."""

import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import msgspec

_MODULUS = 1 << 128
_NO_HOUR = 2**63 - 1
"""Later than every hour."""
_DELETED_AT_ONCE = 500_000
"""Rows. More than are added at once, so that rows that do not count become fewer."""
_DISK_ERRORS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EIO,
    sqlite3.SQLITE_IOERR: errno.EIO,
}
_DAMAGE = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,  # a table or column is not there
    sqlite3.SQLITE_CONSTRAINT,  # a row is there twice, or a column is empty: what we write has neither
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_FORMAT,
)


class SnapshotDamagedError(Exception):
    """The database is damaged: what was read from it may be wrong."""


@contextmanager
def database_errors() -> Iterator[None]:
    """Translate errors of SQLite.

    Raises:
        OSError: The disk cannot be used.
        SnapshotDamagedError: The content of the file is not a database of ours.
    """
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
        if code in _DISK_ERRORS:
            raise OSError(_DISK_ERRORS[code], f"{os.strerror(_DISK_ERRORS[code])}: {error}") from error
        if code in _DAMAGE:
            raise SnapshotDamagedError(str(error)) from error
        raise


class Checksum(msgspec.Struct, frozen=True):
    """Of a set of identities, in whatever order: how many there are, and their sum as 128-bit numbers, in hex."""

    count: int = 0
    total: str = "0"

    def of_more(self, identities: Iterable[bytes]) -> "Checksum":
        """With these added."""
        count, total = self.count, int(self.total, 16)
        for each in identities:
            count, total = count + 1, total + int.from_bytes(each)
        return Checksum(count, f"{total % _MODULUS:x}")


class SavedIdentities(Protocol):
    """The identities of one topic that are not in the state."""

    def has(self, identity: bytes) -> bool:
        """Whether it was received in an hour that is still remembered."""

    def forget(self, first_hour: int) -> None:
        """Forget those that were received before this hour (since the epoch)."""

    def clear(self) -> None:
        """Forget all."""


class NoIdentities:
    """All identities are in the state."""

    def has(self, _: bytes) -> bool:
        """No."""
        return False

    def forget(self, _: int) -> None:
        """There is nothing to forget."""

    def clear(self) -> None:
        """There is nothing to forget."""


class IdentityTable:
    """The identities of one topic in a database, each with the hour of its receipt.

    Which rows count is known here alone: the others stay in the file until some `add` deletes them.
    """

    def __init__(self, database: sqlite3.Connection, topic: str) -> None:
        """The table need not exist yet."""
        self._database = database
        self._hours: dict[int, Checksum] = {}
        self._first_hour = _NO_HOUR
        self._sql_lookup = f'select 1 from "{topic}" where identity = ? and +hour >= ?'  # noqa: S608 - a topic of ours
        # In this order they are read as lookups read them, and not from the index on hours, which has a copy of them.
        are_ours = "typeof(identity) = 'blob' and typeof(hour) = 'integer'"
        self._sql_rows = f'select hour, identity from "{topic}" where +hour >= ? and {are_ours} order by identity'  # noqa: S608
        self._sql_insert = f'insert or replace into "{topic}" values (?, ?)'  # noqa: S608
        self._sql_empty = f'delete from "{topic}"'  # noqa: S608
        expired = f'select identity from "{topic}" where hour < ? limit {_DELETED_AT_ONCE}'  # noqa: S608
        self._sql_expire = f'delete from "{topic}" where identity in ({expired})'  # noqa: S608
        self._sql_create = (
            f'create table if not exists "{topic}" (identity blob primary key, hour integer not null) without rowid',
            f'create index if not exists "hours of {topic}" on "{topic}" (hour)',
        )

    @property
    def checksums(self) -> Mapping[int, Checksum]:
        """By hour, of those that count."""
        return self._hours

    def has(self, identity: bytes) -> bool:
        """Whether it was received in an hour that counts. OSError, SnapshotDamagedError."""
        if not self._hours:
            return False
        with database_errors():
            return self._database.execute(self._sql_lookup, (identity, self._first_hour)).fetchone() is not None

    def forget(self, first_hour: int) -> None:
        """Hours before this one do not count any more."""
        self._count({hour: checksum for hour, checksum in self._hours.items() if hour >= first_hour})

    def clear(self) -> None:
        """No hour counts any more."""
        self._count({})

    def restore(self, checksums: Mapping[int, Checksum]) -> bool:
        """Count the hours that were saved with a state, unless the rows are not as they were: then return False.

        Raises:
            OSError: The file cannot be read.
            SnapshotDamagedError: There is no such table, or it cannot be read.
        """
        self._count(checksums)
        with database_errors():
            is_intact = not checksums or self._rows() == checksums
        if not is_intact:
            self.clear()
        return is_intact

    def add(self, identities: Mapping[int, set[bytes]]) -> None:
        """Write identities by hour, and delete some that do not count, in the transaction that the caller has begun.

        sqlite3.Error, which the caller translates.
        """
        for statement in self._sql_create:
            self._database.execute(statement)
        if not self._hours:
            self._database.execute(self._sql_empty)
        self._database.execute(self._sql_expire, (self._first_hour,))
        for hour, seen in identities.items():
            self._database.executemany(self._sql_insert, ((each, hour) for each in sorted(seen)))
        counted = {hour: self._hours.get(hour, Checksum()).of_more(seen) for hour, seen in identities.items()}
        self._count({**self._hours, **counted})

    def _count(self, hours: Mapping[int, Checksum]) -> None:
        self._hours, self._first_hour = dict(hours), min(hours, default=_NO_HOUR)

    def _rows(self) -> Mapping[int, Checksum]:
        """The checksums of the rows."""
        counts, totals = dict[int, int](), dict[int, int]()
        for hour, identity in self._database.execute(self._sql_rows, (self._first_hour,)):
            counts[hour] = counts.get(hour, 0) + 1
            totals[hour] = totals.get(hour, 0) + int.from_bytes(identity)
        return {hour: Checksum(count, f"{totals[hour] % _MODULUS:x}") for hour, count in counts.items()}
