"""What the system answers to a process that asks for its files to be on the disk: an error, or late. Needs strace."""

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

COMMAND = shutil.which("strace") or ""
SYNCS = "fsync,fdatasync,msync"
ERROR, LATE = "an error", "half a second late"
WAYS = {ERROR: "error=EIO", LATE: "delay_enter=500000"}  # in microseconds


@contextmanager
def syncing(pids: Iterable[int], way: str) -> Iterator[None]:
    """Every thread of these processes is answered that way from now on."""
    of = [word for pid in pids for word in ("-p", str(pid))]
    words = [COMMAND, "-f", "-qq", "-o", "/dev/null", "-e", f"trace={SYNCS}", "-e", f"inject={SYNCS}:{WAYS[way]}", *of]
    tracing = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        tracing.kill()  # asked to end, it waits for whom it follows
        tracing.wait()
