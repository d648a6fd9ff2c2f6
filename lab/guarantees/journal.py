"""What a process has worked off, a line each: on the disk before anything else happens."""

import os
from pathlib import Path
from typing import IO


def write(journal: IO[str], number: int) -> None:
    """Append one number; a kill behind this changes nothing of it."""
    journal.write(f"{number}\n")
    journal.flush()
    os.fsync(journal.fileno())


def worked(journal: Path) -> list[int]:
    """The numbers in the order in which they were worked off."""
    return [int(line) for line in journal.read_text().split()] if journal.exists() else []
