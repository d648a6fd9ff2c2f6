"""Failpoints: named places at which a process can be killed, to test that it recovers from a crash anywhere.

None is armed unless `GALATEA_CRASH_AT` names it. The process ends as with `kill -9`: nothing is flushed or logged.
"""

import os
import signal
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Failpoint(StrEnum):
    """Where a process can be killed. Each name says what has just been done.

    `rebuild.*`, `collect.*`, `backup.*` and `restore.*` are in commands (`rebuild.marked` in every one that makes a
    cut), the others in the process of that name. `speed.remembered`, `speed.rows` and `rebuild.blocks` are in Spark's
    workers.
    """

    ARCHIVE_BEGUN = "archive.begun"
    ARCHIVE_EVENTS = "archive.events"
    ARCHIVE_DEAD_LETTERS = "archive.letters"
    ARCHIVE_RECORDED = "archive.recorded"
    SPEED_CLAIMED = "speed.claimed"
    SPEED_REMEMBERED = "speed.remembered"
    SPEED_ROWS = "speed.rows"
    SPEED_COUNTED = "speed.counted"
    SPEED_RECORDED = "speed.recorded"
    SPEED_REPLACED = "speed.replaced"
    SPEED_TOOK_OVER = "speed.took_over"
    PARTITIONS_BEGUN = "partitions.begun"
    PARTITIONS_ADDED = "partitions.added"
    PARTITIONS_ANNOUNCED = "partitions.announced"
    REBUILD_MARKED = "rebuild.marked"
    REBUILD_BLOCKS = "rebuild.blocks"
    REBUILD_VIEW = "rebuild.view"
    REBUILD_MANIFEST = "rebuild.manifest"
    REBUILD_LEDGER = "rebuild.ledger"
    REBUILD_PUBLISHED = "rebuild.published"
    REBUILD_JUDGED = "rebuild.judged"
    REBUILD_ALERTS = "rebuild.alerts"
    ROLLBACK_REPLACED = "rollback.replaced"
    ROLLBACK_PUBLISHED = "rollback.published"
    ALERTS_FOLDED = "alerts.folded"
    ALERTS_BEGUN = "alerts.begun"
    ALERTS_PRODUCED = "alerts.produced"
    ALERTS_FLUSHED = "alerts.flushed"
    ALERTS_OFFSETS = "alerts.offsets"
    ALERTS_COMMITTED = "alerts.committed"
    ALERTS_KEPT = "alerts.kept"
    COLLECT_MARKED = "collect.marked"
    COLLECT_DELETED = "collect.deleted"
    BACKUP_TABLES = "backup.tables"
    BACKUP_COMPLETE = "backup.complete"
    RESTORE_BEGUN = "restore.begun"
    RESTORE_TABLE = "restore.table"
    RESTORE_PUBLISHED = "restore.published"


class PlannedCrash(NamedTuple):
    """The process is killed when it passes the failpoint for the `nth` time, once per data folder."""

    point: Failpoint
    nth: int


def parse_plan(text: str) -> list[PlannedCrash]:
    """Parse `name:n,name:n`. ValueError names the part that is wrong."""
    found = []
    for part in filter(None, text.split(",")):
        name, _, nth = part.strip().partition(":")
        if name not in set(Failpoint):
            raise ValueError(f"there is no failpoint `{name}`; known ones are: {', '.join(Failpoint)}")
        if nth and not (nth.isdecimal() and int(nth)):
            raise ValueError(f"`{part}` must be a name, or a name and a number of at least 1: `{name}:2`")
        found.append(PlannedCrash(Failpoint(name), int(nth or 1)))
    return found


class _Armed:
    """The planned crashes of this process, and how often it has passed each failpoint."""

    def __init__(self) -> None:
        self.plan: list[PlannedCrash] = []
        self.folder = Path()
        self.passed: Counter[Failpoint] = Counter()
        self.by = signal.SIGKILL


_armed = _Armed()


def arm(plan: str, folder: Path, by: signal.Signals = signal.SIGKILL) -> None:
    """Arm failpoints.

    Args:
        plan: Such as `archive.events:2`; see `parse_plan`.
        folder: Holds a file for each crash that has happened, so that it does not happen again after a restart.
        by: SIGKILL, or SIGSTOP to make the process hang.
    """
    _armed.plan, _armed.folder, _armed.by = parse_plan(plan), folder, by
    if _armed.plan:
        folder.mkdir(parents=True, exist_ok=True)


def failpoint(point: Failpoint) -> None:
    """Mark that something has just been done. Returns, unless a crash is planned here."""
    if not _armed.plan:
        return
    _armed.passed[point] += 1
    each = PlannedCrash(point, _armed.passed[point])
    if each not in _armed.plan:
        return
    try:
        (_armed.folder / f"{each.point}:{each.nth}").touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), _armed.by)
