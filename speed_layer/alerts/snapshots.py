"""Snapshots of what following the log remembers: they make a start quick, and may be deleted at any time."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from master_dataset.crash_points import CrashPoint, passing
from speed_layer.alerts.inlet import Log
from speed_layer.alerts.state import State

KEPT = 3
_FORM = 2
"""Changes with the form of the state: what has another one is not there."""


class Snapshot(msgspec.Struct, frozen=True):
    """`positions`: topic to the offset before which everything is in `states`. `logs`: what each topic was."""

    form: int
    positions: dict[str, int]
    states: dict[str, bytes]
    logs: dict[str, Log]


class Snapshots:
    """Of one partition, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """`folder` is made if it is not there."""
        self._folder = folder

    def keep(self, positions: Mapping[str, int], states: Mapping[str, State], logs: Mapping[str, Log]) -> None:
        """Write it whole or not at all, and let go of all but the newest."""
        self._folder.mkdir(parents=True, exist_ok=True)
        number = max(self._numbers(), default=0) + 1
        kept = {topic: state.to_bytes() for topic, state in states.items()}
        said = Snapshot(_FORM, dict(positions), kept, dict(logs))
        half = self._folder / "half"
        with half.open("wb") as file:
            file.write(msgspec.msgpack.encode(said))
            file.flush()
            os.fsync(file.fileno())
        half.rename(self._folder / f"{number}.state")
        passing(CrashPoint.ALERTS_KEPT)
        for old in sorted(self._numbers())[:-KEPT]:
            (self._folder / f"{old}.state").unlink(missing_ok=True)

    def newest(self, committed: Mapping[str, int], logs: Mapping[str, Log]) -> Snapshot | None:
        """The newest that is not ahead of what is committed and is of the same topics, as they are now.

        A broken one is not there, nor one of topics that were made anew or had another number of partitions.
        """
        for number in sorted(self._numbers(), reverse=True):
            try:
                found = msgspec.msgpack.decode((self._folder / f"{number}.state").read_bytes(), type=Snapshot)
            except (OSError, msgspec.MsgspecError):
                continue
            is_usable = found.form == _FORM and found.positions.keys() == committed.keys() and found.logs == logs
            if is_usable and all(at <= committed[topic] for topic, at in found.positions.items()):
                return found
        return None

    def _numbers(self) -> Iterator[int]:
        yield from (int(file.stem) for file in self._folder.glob("*.state") if file.stem.isdecimal())
