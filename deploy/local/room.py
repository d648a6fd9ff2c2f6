"""Whether a disk has room for what starts on it. A broker that starts on a full disk loses what it has.

Kafka 4.3 reads its log again after it has died, and writes an index beside it. Where there is no room for that it takes
the log for corrupt and makes it empty, that of its topics' names first: then every topic is a stray, and made anew.
"""

import shutil
from pathlib import Path

from master_dataset.errors import DiskFull

MB = 10**6
LEAST_MB = 256
"""For the indexes of what is read again: 20 MB at most for each segment that was written to."""


def refuse_full(folder: Path) -> None:
    """DiskFull."""
    free = shutil.disk_usage(folder).free // MB if folder.exists() else LEAST_MB
    if free < LEAST_MB:
        message = f"it is not started, as {free} MB are left on the disk of `{folder}`"
        raise DiskFull(message, do=f"free {LEAST_MB} MB there: then it starts by itself")
