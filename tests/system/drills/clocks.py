"""A clock of its own for a component of a stack: it can be put forward and back while it runs. Needs libfaketime."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.local.records import Records
from tests.system.drills.faults import wait_until
from tests.system.drills.ground import Ground

LIBRARY = next((str(path) for path in sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), "")


class Clock:
    """What a component takes for the time of day; what it measures with stays as it is."""

    def __init__(self, file: Path) -> None:
        """Kept in that file, and right."""
        self._file = file
        self.put(0)

    def put(self, seconds: int) -> None:
        """So far forward, or back."""
        part = self._file.with_suffix(".part")
        part.write_text(f"{seconds:+d}\n")
        part.replace(self._file)

    def environment(self) -> dict[str, str]:
        """Of whoever is to have it."""
        return {
            "LD_PRELOAD": LIBRARY,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


@contextmanager
def clock_of(on: Ground, name: str) -> Iterator[Clock]:
    """The component is ended, and has its own clock from its next start on; the machine's again after another one."""
    clock = Clock(on.settings.home / f"{name}.clock")
    own = clock.environment()
    os.environ.update(own)  # it is started by this process
    try:
        on.faults.kill(name)
        wait_until(lambda: Records(on.settings.home).pid(name) is not None, f"{name} to be started")
    finally:
        for variable in own:
            os.environ.pop(variable)
    try:
        yield clock
    finally:
        clock.put(0)
        on.faults.kill(name)
