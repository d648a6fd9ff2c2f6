"""Snapshots of the state, and the identities of the last day.

They speed up a start, and can be deleted while no processor runs.
"""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import msgspec

from master_dataset.delta.fsync import fsync_path
from master_dataset.failpoints import Failpoint, failpoint
from speed_layer.alerts.identities import Checksum, IdentityTable, SnapshotDamagedError, database_errors
from speed_layer.alerts.source import TopicIdentity
from speed_layer.alerts.state import State

_FORM = b"galatea alerts 3"
"""Incremented when the form of the state changes. Snapshots of another version are ignored."""
_FORMER_FORM = b"galatea alerts 2"
"""Of the files before there was a database: they contain the identities, too."""
_DIGEST_BYTES = 32
_STEPS_PER_BEAT = 100_000
"""Instructions of SQLite's virtual machine: some milliseconds."""
_SIDE_FILES = ("", "-wal", "-shm", "-journal")


class Snapshot(NamedTuple):
    """`positions`: topic to the offset before which everything is in `states`, or in the saved identities."""

    positions: Mapping[str, int]
    states: Mapping[str, State]


class _Body(msgspec.Struct, frozen=True):
    """`topic_ids`: the id of each topic. `identities`: topic and hour to the checksum of what the database holds.

    Without states it says only which topics there were.
    """

    positions: dict[str, int]
    states: dict[str, bytes]
    topic_ids: dict[str, TopicIdentity] = msgspec.field(name="logs")  # the name on disk
    identities: dict[str, dict[int, Checksum]] = msgspec.field(default_factory=dict)


class Snapshots:
    """The snapshot of one partition: a database in a folder of its own.

    Each process works on a copy that it makes when it first needs it, under a name that no other process takes. So a
    predecessor that was believed dead writes into a file that nobody reads. All methods and properties raise OSError if
    the disk cannot be used.
    """

    def __init__(self, folder: Path, beat: Callable[[], None] = lambda: None) -> None:
        """`folder` is created if it does not exist. `beat` is called while work takes long."""
        self._folder, self._beat = folder, beat
        self._opened: sqlite3.Connection | None = None
        self._tables: dict[str, IdentityTable] = {}

    def identities(self, topic: str) -> IdentityTable:
        """The identities that `save` or `spill` has moved out of the states of this topic."""
        if topic not in self._tables:
            self._tables[topic] = IdentityTable(self._database, topic)
        return self._tables[topic]

    def save(
        self, positions: Mapping[str, int], states: Mapping[str, State], topic_ids: Mapping[str, TopicIdentity]
    ) -> None:
        """Replace the snapshot atomically, and move the identities out of the states.

        Raises:
            SnapshotDamagedError: Call `reset`.
        """
        with self._writing() as database:
            self._move(states)
            encoded = {topic: state.to_bytes() for topic, state in states.items()}
            checksums = {topic: dict(table.checksums) for topic, table in self._tables.items()}
            _write(database, _Body(dict(positions), encoded, dict(topic_ids), checksums))
        failpoint(Failpoint.ALERTS_KEPT)
        for former in self._former_files():
            former.unlink(missing_ok=True)

    def spill(self, states: Mapping[str, State]) -> None:
        """Move the identities out of states that are no snapshot yet. The snapshot before is void then.

        Raises:
            SnapshotDamagedError: Call `reset`.
        """
        with self._writing() as database:
            self._move(states)
            _write(database, self._topics_only())

    def load(self, committed: Mapping[str, int], topic_ids: Mapping[str, TopicIdentity]) -> Snapshot | None:
        """The snapshot, if it is not ahead of the committed positions, and is of the same topics as they are now.

        None if it is not, or is damaged. In that case there are no saved identities any more.
        """
        with suppress(SnapshotDamagedError), _readable():
            body = self._body or self._former_body
            for table in self._tables.values():
                table.clear()
            if body is not None and _is_usable(body, committed, topic_ids) and self._restored(body.identities):
                with suppress(msgspec.MsgspecError):
                    states = {topic: State.from_bytes(kept) for topic, kept in body.states.items()}
                    return Snapshot(body.positions, states)
        if self.exist:
            self.reset()
        return None

    def reset(self) -> None:
        """Start with an empty database, which only says that there was another, and of which topics."""
        topics_only = self._topics_only()
        self.close()
        self._opened = self._open(topics_only)

    def close(self) -> None:
        """Close the database; it is opened again if it is needed."""
        if self._opened is not None:
            self._opened.close()
        self._opened, self._tables = None, {}

    @property
    def exist(self) -> bool:
        """Whether there are any, damaged or not."""
        with suppress(SnapshotDamagedError), _readable():
            written = self._database.execute("select count(*) from snapshot").fetchone()[0] > 0
            return written or any(True for _ in self._former_files())
        return True

    @property
    def topics(self) -> Collection[str]:
        """The topics of the snapshot, if it can be read."""
        return self._topics_only().positions.keys()

    def _topics_only(self) -> _Body:
        with suppress(SnapshotDamagedError), _readable():
            if (body := self._body or self._former_body) is not None:
                return _Body(body.positions, {}, body.topic_ids)
        return _Body({}, {}, {})

    @property
    def _body(self) -> _Body | None:
        row = self._database.execute("select body from snapshot").fetchone()
        return _decoded(row[0], _FORM) if row and isinstance(row[0], bytes) else None

    @property
    def _former_body(self) -> _Body | None:
        """Of the newest file that a release before the database has written and that can be read."""
        for file in sorted(self._former_files(), key=lambda file: int(file.stem), reverse=True):
            with suppress(OSError):
                body = _decoded(file.read_bytes(), _FORMER_FORM)
                if body is not None:
                    return body
        return None

    def _restored(self, checksums: Mapping[str, Mapping[int, Checksum]]) -> bool:
        return all(self.identities(topic).restore(hours) for topic, hours in checksums.items())

    def _move(self, states: Mapping[str, State]) -> None:
        for topic, state in states.items():
            self.identities(topic).add(state.identities)
            state.identities = {}

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with database_errors():
            database = self._database
            database.execute("begin immediate")
            try:
                yield database
                database.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):
                    database.execute("rollback")
                raise

    @property
    def _database(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self, instead: _Body | None = None) -> sqlite3.Connection:
        """A copy of the newest database, or an empty one with this body `instead`; all others are deleted."""
        self._folder.mkdir(parents=True, exist_ok=True)
        numbers = sorted(self._numbers())
        new = self._folder / f"new-{os.getpid()}-{uuid4().hex}"
        if instead is not None or not numbers or not self._is_copied(self._folder / f"{numbers[-1]}.db", new):
            _delete(new)
            _create(new, instead or (_Body({}, {}, {}) if numbers else None))
        own = self._named(new, max(numbers, default=0) + 1)
        for number in numbers:
            _delete(self._folder / f"{number}.db")
        for left in self._folder.glob("new-*"):  # by a process that was killed while it copied
            left.unlink(missing_ok=True)
        with database_errors():
            database = sqlite3.connect(own, isolation_level=None, check_same_thread=False)
            database.execute("pragma journal_mode = wal")
            database.execute("pragma synchronous = full")
            database.text_factory = bytes  # there is no text of ours: damage need not be readable as text
            database.set_progress_handler(self._beat, _STEPS_PER_BEAT)
        return database

    def _is_copied(self, source: Path, target: Path) -> bool:
        """Copy what the database holds, not its pages. False if it cannot be read."""
        with suppress(SnapshotDamagedError), _readable(), closing(sqlite3.connect(source)) as old:
            old.set_progress_handler(self._beat, _STEPS_PER_BEAT)
            old.execute("select count(*) from snapshot")
            old.execute("vacuum into ?", (str(target),))
            with closing(sqlite3.connect(target)) as new:
                new.set_progress_handler(self._beat, _STEPS_PER_BEAT)
                new.execute("reindex")  # indexes are copied as they are
            return True
        return False

    def _named(self, new: Path, number: int) -> Path:
        """Give a complete database the first number that no other process has taken."""
        fsync_path(new)
        while True:
            own = self._folder / f"{number}.db"
            try:
                own.hardlink_to(new)
            except FileExistsError:
                number += 1
            else:
                new.unlink()
                fsync_path(self._folder)
                return own

    def _numbers(self) -> Iterator[int]:
        yield from (int(file.stem) for file in self._folder.glob("*.db") if file.stem.isdecimal())

    def _former_files(self) -> Iterator[Path]:
        yield from (file for file in self._folder.glob("*.state") if file.stem.isdecimal())


@contextmanager
def _readable() -> Iterator[None]:
    """SnapshotDamagedError also for what the disk cannot read: it is as good as damaged."""
    try:
        with database_errors():
            yield
    except OSError as error:
        raise SnapshotDamagedError(str(error)) from error


def _create(file: Path, body: _Body | None) -> None:
    with database_errors(), closing(sqlite3.connect(file)) as database:
        database.execute("create table snapshot (body blob not null)")
        if body is not None:
            _write(database, body)
        database.commit()


def _delete(database: Path) -> None:
    for suffix in _SIDE_FILES:
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def _is_usable(body: _Body, committed: Mapping[str, int], topic_ids: Mapping[str, TopicIdentity]) -> bool:
    is_same = body.positions.keys() == committed.keys() and body.topic_ids == topic_ids
    return is_same and bool(body.states) and all(at <= committed[topic] for topic, at in body.positions.items())


def _write(database: sqlite3.Connection, body: _Body) -> None:
    encoded = msgspec.msgpack.encode(body)
    database.execute("delete from snapshot")
    database.execute("insert into snapshot values (?)", (_digest(encoded, _FORM) + encoded,))


def _decoded(written: bytes, form: bytes) -> _Body | None:
    """None unless it is exactly what was written."""
    digest, body = written[:_DIGEST_BYTES], written[_DIGEST_BYTES:]
    with suppress(msgspec.MsgspecError):
        return msgspec.msgpack.decode(body, type=_Body) if _digest(body, form) == digest else None
    return None


def _digest(body: bytes, form: bytes) -> bytes:
    return hashlib.sha256(form + body).digest()
