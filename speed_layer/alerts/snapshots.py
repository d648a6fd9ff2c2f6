"""Snapshots of the state. They speed up a start, and can be deleted at any time."""

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from master_dataset.failpoints import Failpoint, failpoint
from speed_layer.alerts.source import TopicIdentity
from speed_layer.alerts.state import State

KEPT_SNAPSHOTS = 3
_FORM = b"galatea alerts 2"
"""Incremented when the form of the state changes. Snapshots of another version are ignored."""
_DIGEST_BYTES = 32


class Snapshot(NamedTuple):
    """`positions`: topic to the offset before which everything is in `states`."""

    positions: Mapping[str, int]
    states: Mapping[str, State]


class _Body(msgspec.Struct, frozen=True):
    """`topic_ids`: the id of each topic."""

    positions: dict[str, int]
    states: dict[str, bytes]
    topic_ids: dict[str, TopicIdentity] = msgspec.field(name="logs")  # the name on disk


class Snapshots:
    """The snapshots of one partition, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        """`folder` is created if it does not exist."""
        self._folder = folder

    def save(
        self, positions: Mapping[str, int], states: Mapping[str, State], topic_ids: Mapping[str, TopicIdentity]
    ) -> None:
        """Write a snapshot atomically, and delete all but the newest ones."""
        self._folder.mkdir(parents=True, exist_ok=True)
        number = max(self._numbers(), default=0) + 1
        encoded = {topic: state.to_bytes() for topic, state in states.items()}
        body = msgspec.msgpack.encode(_Body(dict(positions), encoded, dict(topic_ids)))
        half = self._folder / "half"
        with half.open("wb") as file:
            file.write(_digest(body) + body)
            file.flush()
            os.fsync(file.fileno())
        half.rename(self._folder / f"{number}.state")
        failpoint(Failpoint.ALERTS_KEPT)
        for old in sorted(self._numbers())[:-KEPT_SNAPSHOTS]:
            (self._folder / f"{old}.state").unlink(missing_ok=True)

    def newest(self, committed: Mapping[str, int], topic_ids: Mapping[str, TopicIdentity]) -> Snapshot | None:
        """The newest snapshot that is not ahead of the committed positions, and is of the same topics as they are now.

        Damaged ones are skipped, as are those of topics that were recreated or had another number of partitions.
        """
        for number in sorted(self._numbers(), reverse=True):
            try:
                found = _body((self._folder / f"{number}.state").read_bytes())
                if found is None or found.positions.keys() != committed.keys() or found.topic_ids != topic_ids:
                    continue
                if all(at <= committed[topic] for topic, at in found.positions.items()):
                    states = {topic: State.from_bytes(kept) for topic, kept in found.states.items()}
                    return Snapshot(found.positions, states)
            except (OSError, msgspec.MsgspecError, ValueError):
                continue
        return None

    @property
    def exist(self) -> bool:
        """Whether there are any, damaged or not."""
        return any(True for _ in self._numbers())

    @property
    def topics(self) -> Collection[str]:
        """The topics that readable snapshots contain."""
        found = set[str]()
        for number in self._numbers():
            with suppress(OSError, msgspec.MsgspecError):
                body = _body((self._folder / f"{number}.state").read_bytes())
                found.update(body.positions if body else ())
        return found

    def _numbers(self) -> Iterator[int]:
        yield from (int(file.stem) for file in self._folder.glob("*.state") if file.stem.isdecimal())


def _body(written: bytes) -> _Body | None:
    """None unless it is exactly what was written."""
    digest, body = written[:_DIGEST_BYTES], written[_DIGEST_BYTES:]
    return msgspec.msgpack.decode(body, type=_Body) if _digest(body) == digest else None


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(_FORM + body).digest()
