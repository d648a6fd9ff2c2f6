"""Faults of the host, as root: lost packets, failing fsync, little memory or CPU, disks that fill up or lose data."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

IPTABLES = shutil.which("iptables") or ""
TO, FROM = "--dport", "--sport"
DROP = ("-j", "DROP")
BY_CHANCE = ("-m", "statistic", "--mode", "random", "--probability", "0.2", *DROP)
RESET = ("-j", "REJECT", "--reject-with", "tcp-reset")
PACKET_FAULTS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "what is sent to it is lost": ((TO,), DROP),
    "what it answers is lost": ((FROM,), DROP),
    "both ways are lost": ((TO, FROM), DROP),
    "a fifth is lost": ((TO, FROM), BY_CHANCE),
    "connections are reset": ((TO,), RESET),
}
"""By name: of which packets, and what is done with them."""


@contextmanager
def harmed(port: int, way: str) -> Iterator[None]:
    """Every packet of that port on loopback suffers it."""
    ends, verdict = PACKET_FAULTS[way]
    rules = [("INPUT", "-i", "lo", "-p", "tcp", end, str(port), *verdict) for end in ends]
    with ExitStack() as leaving:
        for rule in rules:
            _iptables("-A", *rule)
            leaving.callback(_iptables, "-D", *rule)
        yield


def _iptables(*words: str) -> None:
    subprocess.run([IPTABLES, "-w", *words], check=True, capture_output=True)


STRACE = shutil.which("strace") or ""
SYNCS = "fsync,fdatasync,msync"
ERROR, LATE = "an error", "half a second late"
SYNC_FAULTS = {ERROR: "error=EIO", LATE: "delay_enter=500000"}  # in microseconds


@contextmanager
def syncing(pids: Iterable[int], way: str) -> Iterator[None]:
    """Every thread of these processes is answered that way from now on. RuntimeError if that cannot be had."""
    pids = list(pids)
    of = [word for pid in pids for word in ("-p", str(pid))]
    words = [
        STRACE,
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        f"trace={SYNCS}",
        "-e",
        f"inject={SYNCS}:{SYNC_FAULTS[way]}",
        *of,
    ]
    tracing = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not all(map(_is_traced, pids)):
            if tracing.poll() is not None:
                raise RuntimeError(f"strace has ended with {tracing.returncode}")
            time.sleep(0.01)
        yield
    finally:
        tracing.kill()  # asked to end, it waits for whom it follows
        tracing.wait()


def _is_traced(pid: int) -> bool:
    """Whether every thread is, or the process has ended."""
    try:
        states = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    except (FileNotFoundError, ProcessLookupError):
        return not Path(f"/proc/{pid}").exists()
    return all("TracerPid:\t0\n" not in state for state in states)


ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@contextmanager
def little_processor(pids: Iterable[int], percent: int) -> Iterator[None]:
    """So many percent of one processor for all of them together."""
    limits = {"cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": PERIOD_US * percent // 100}
    with _group("cpu", limits, pids):
        yield


@contextmanager
def little_memory(pids: Iterable[int], mb: int) -> Iterator[Path]:
    """What they and their children take from now on. The folder of the group."""
    with _group("memory", {"memory.limit_in_bytes": mb * 1024 * 1024}, pids) as group:
        yield group


def killed_for_memory(group: Path) -> bool:
    """Whether the kernel has ended a process there."""
    found = dict(line.split() for line in (group / "memory.oom_control").read_text().splitlines())
    return int(found["oom_kill"]) > 0


@contextmanager
def _group(controller: str, limits: dict[str, int], pids: Iterable[int]) -> Iterator[Path]:
    group = ROOT / controller / f"galatea-drill-{os.getpid()}-{threading.get_ident()}"
    group.mkdir()
    try:
        for name, value in limits.items():
            (group / name).write_text(str(value))
        for pid in pids:
            _enter(group, pid)
        yield group
    finally:
        while inside := (group / "cgroup.procs").read_text().split():
            for left in inside:
                _enter(ROOT / controller, int(left))
            time.sleep(0.05)
        group.rmdir()


def _enter(group: Path, pid: int) -> None:
    try:
        (group / "cgroup.procs").write_text(str(pid))
    except ProcessLookupError:
        return


MB = 10**6
SIZE_MB = 3000
"""Of one; its file has holes, so only what is written takes room."""
FILLING = "filling"


class Disk:
    """Mounted at `folder`, kept in the file `image`."""

    def __init__(self, image: Path, folder: Path, size_mb: int = SIZE_MB) -> None:
        """Made and mounted."""
        self._image = self._first = image
        self.folder, self._cuts = folder, 0
        with image.open("wb") as file:
            file.truncate(size_mb * MB)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))  # nothing is kept back for root
        folder.mkdir(parents=True, exist_ok=True)
        self._mount()
        (folder / "lost+found").rmdir()  # a broker takes every folder for a partition

    def fill(self) -> None:
        """Not a byte is left."""
        with (self.folder / FILLING).open("wb") as file, suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(self.folder).free)
        with (self.folder / FILLING).open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))

    def empty(self) -> None:
        """There is room again."""
        (self.folder / FILLING).unlink()

    def photograph(self) -> None:
        """Keep what has reached the platter by now; nothing is synced for it. Nobody may be writing.

        The system may, while the platter is copied: then it is copied again.
        """
        self._cuts += 1
        while True:
            before = self._writes()
            _run("cp", "--sparse=always", str(self._image), str(self._photo))
            if before == self._writes() and before[-1] == 0:
                break

    def _writes(self) -> tuple[int, ...]:
        """How many writes were done, how many discards, and how many requests are under way."""
        device = self.folder.stat().st_dev
        counts = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat").read_text().split()
        return tuple(int(counts[place]) for place in (4, 6, 11, 13, 8))

    def lose_power(self) -> None:
        """Go on with the photograph. Who has files open goes on with what there was, so it has to end.

        The file before it has no name any more, and takes no room once nobody has files open there.
        """
        self.leave()
        self._image.unlink()
        self._image = self._photo
        self._mount()

    @property
    def _photo(self) -> Path:
        return self._first.with_suffix(f".{self._cuts}")

    def leave(self) -> None:
        """Processes may keep their open files."""
        _run("umount", "--lazy", str(self.folder))

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.folder))


@contextmanager
def disks(images: Path, folders: Iterable[Path], size_mb: int = SIZE_MB) -> Iterator[dict[str, Disk]]:
    """One for each folder, by its name; gone afterwards."""
    images.mkdir()
    with ExitStack() as leaving:
        found = {}
        for folder in folders:
            found[folder.name] = disk = Disk(images / folder.name, folder, size_mb)
            leaving.callback(disk.leave)
        yield found


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
