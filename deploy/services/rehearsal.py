"""Lets a process that stands by read records once, so that it takes over without loading anything first."""

from collections.abc import Callable

import structlog

from deploy.settings import Settings

RECORDS = 100
"""Of each partition."""
log = structlog.get_logger()


def rehearse(settings: Settings, process: str, read: Callable[[], None]) -> None:
    """Read the last records, unless this process has tried to and did not survive it.

    A record may need more memory than the process has. A micro-batch of such a record is read in another way when it is
    repeated; a rehearsal, which takes over nothing, is left out the next time.

    Args:
        settings: Of the deployment.
        process: Name of the process.
        read: Reads the records and forgets them.
    """
    begun = settings.home / "spark" / f"{process}-rehearses"
    if begun.exists():
        log.warning("rehearsal.left_out", do="nothing: the last one was not finished; the next start tries again")
        begun.unlink()
        return
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.touch()
    read()
    begun.unlink()
