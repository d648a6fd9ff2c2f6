"""Event identities that are no longer kept in memory: a table of SQLite for each topic and hour of receipt."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import msgspec

_BEAT_EACH = 10_000
_MODULUS = 1 << 128
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


class IdentityTables:
    """The identities of one topic in a database.

    Which hours count is known here alone: what `forget` and `restore` leave out stays in the file until the next `add`.
    """

    def __init__(self, database: sqlite3.Connection, topic: str, beat: Callable[[], None]) -> None:
        """`beat` is called while work takes long."""
        self._database, self._topic, self._beat = database, topic, beat
        self._query = ""
        self._hours: dict[int, Checksum] = {}

    @property
    def checksums(self) -> Mapping[int, Checksum]:
        """By hour, of those that count."""
        return self._hours

    def has(self, identity: bytes) -> bool:
        """Whether it was received in an hour that counts. OSError, SnapshotDamagedError."""
        with database_errors():
            return bool(self._query) and self._database.execute(self._query, (identity,)).fetchone() is not None

    def forget(self, first_hour: int) -> None:
        """Hours before this one do not count any more."""
        self._count({hour: checksum for hour, checksum in self._hours.items() if hour >= first_hour})

    def clear(self) -> None:
        """No hour counts any more."""
        self._count({})

    def restore(self, checksums: Mapping[int, Checksum]) -> bool:
        """Count the hours that were saved with a state. False, and none counts, if the tables are not as they were."""
        intact = all(self._of(hour) == checksum for hour, checksum in checksums.items())
        self._count(checksums if intact else {})
        return intact

    def add(self, identities: Mapping[int, set[bytes]]) -> None:
        """Write identities by hour, and delete what does not count, in the transaction that the caller has begun."""
        for name in self._names() - {self._name(hour) for hour in self._hours}:
            self._database.execute(f'drop table "{name}"')
        for hour, seen in identities.items():
            table = self._name(hour)
            self._database.execute(f'create table if not exists "{table}" (identity blob primary key) without rowid')
            rows = ((each,) for each in self._beating(sorted(seen)))
            self._database.executemany(f'insert into "{table}" values (?)', rows)  # noqa: S608 - a topic of ours
        counted = {hour: self._hours.get(hour, Checksum()).of_more(seen) for hour, seen in identities.items()}
        self._count({**self._hours, **counted})

    def _count(self, hours: Mapping[int, Checksum]) -> None:
        self._hours = dict(hours)
        asked = (f'select 1 from "{self._name(hour)}" where identity = ?1' for hour in sorted(hours))  # noqa: S608
        self._query = " union all ".join(asked)

    def _of(self, hour: int) -> Checksum:
        if self._name(hour) not in self._names():
            return Checksum()
        blobs = f"""select identity from "{self._name(hour)}" where typeof(identity) = 'blob'"""  # noqa: S608 - as above
        rows = self._database.execute(blobs)
        return Checksum().of_more(self._beating(identity for (identity,) in rows))

    def _names(self) -> set[str]:
        rows = self._database.execute("select name from sqlite_master where type = 'table'")
        return {name for (name,) in rows if name.startswith(f"{self._topic}/")}

    def _name(self, hour: int) -> str:
        return f"{self._topic}/{hour}"

    def _beating(self, identities: Iterable[bytes]) -> Iterator[bytes]:
        for number, each in enumerate(identities):
            if number % _BEAT_EACH == 0:
                self._beat()
            yield each
