"""Event identities that are no longer kept in memory: a table of SQLite for each topic."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar

import msgspec

_BEAT_EACH = 10_000
_MODULUS = 1 << 128
_NONE = 2**63 - 1
"""An hour before which all are."""
_DELETED_AT_ONCE = 500_000
"""More than are added at once, so that what is left does not grow."""
Found = TypeVar("Found")
_UNUSABLE = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EIO,
    sqlite3.SQLITE_IOERR: errno.EIO,
}


class SnapshotDamagedError(Exception):
    """The database is damaged: what was read from it may be wrong."""


@contextmanager
def database_errors() -> Iterator[None]:
    """OSError for a disk that cannot be used, SnapshotDamagedError for anything else that SQLite raises."""
    try:
        yield
    except sqlite3.Error as error:
        number = _UNUSABLE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if number is not None:
            raise OSError(number, f"{os.strerror(number)}: {error}") from error
        raise SnapshotDamagedError(str(error)) from error


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

    def __init__(self, database: sqlite3.Connection, topic: str, beat: Callable[[], None]) -> None:
        """`beat` is called while work takes long."""
        self._database, self._beat = database, beat
        self._hours: dict[int, Checksum] = {}
        self._first_hour = _NONE
        self._has = f'select 1 from "{topic}" where identity = ? and hour >= ?'  # noqa: S608 - a topic of ours
        self._all = f"""select hour, identity from "{topic}" where hour >= ? and typeof(identity) = 'blob'"""  # noqa: S608
        self._insert = f'insert or replace into "{topic}" values (?, ?)'  # noqa: S608
        self._old = f'select identity from "{topic}" where hour < ? limit {_DELETED_AT_ONCE}'  # noqa: S608
        self._delete = f'delete from "{topic}" where identity in ({self._old})'  # noqa: S608
        self._empty = f'delete from "{topic}"'  # noqa: S608
        self._create = (
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
            return self._database.execute(self._has, (identity, self._first_hour)).fetchone() is not None

    def forget(self, first_hour: int) -> None:
        """Hours before this one do not count any more."""
        self._count({hour: checksum for hour, checksum in self._hours.items() if hour >= first_hour})

    def clear(self) -> None:
        """No hour counts any more."""
        self._count({})

    def restore(self, checksums: Mapping[int, Checksum]) -> bool:
        """Count the hours that were saved with a state. False, and none counts, if the rows are not as they were."""
        self._count(checksums)
        if checksums and self._counted() != checksums:
            self._count({})
        return self._hours.keys() == checksums.keys()

    def add(self, identities: Mapping[int, set[bytes]]) -> None:
        """Write identities by hour, and delete some that do not count, in the transaction that the caller has begun."""
        for statement in self._create:
            self._database.execute(statement)
        if not self._hours:
            self._database.execute(self._empty)
        self._database.execute(self._delete, (self._first_hour,))
        for hour, seen in identities.items():
            self._database.executemany(self._insert, ((each, hour) for each in self._beating(sorted(seen))))
        counted = {hour: self._hours.get(hour, Checksum()).of_more(seen) for hour, seen in identities.items()}
        self._count({**self._hours, **counted})

    def _count(self, hours: Mapping[int, Checksum]) -> None:
        self._hours, self._first_hour = dict(hours), min(hours, default=_NONE)

    def _counted(self) -> Mapping[int, Checksum]:
        found = dict[int, list[int]]()
        for hour, identity in self._beating(self._database.execute(self._all, (self._first_hour,))):
            sums = found.setdefault(hour, [0, 0])
            sums[0] += 1
            sums[1] += int.from_bytes(identity)
        return {hour: Checksum(count, f"{total % _MODULUS:x}") for hour, (count, total) in found.items()}

    def _beating(self, found: Iterable[Found]) -> Iterator[Found]:
        for number, each in enumerate(found):
            if number % _BEAT_EACH == 0:
                self._beat()
            yield each
