"""A file system of its own for a folder of a home: it can be full, and lose its power. Needs root and loop devices."""

import filecmp
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

MB = 10**6
SIZE_MB = 3000
"""Of one; its file has holes, so only what is written takes room."""
FILLING = "filling"


class Disk:
    """Mounted at `folder`, kept in the file `image`."""

    def __init__(self, image: Path, folder: Path) -> None:
        """Made and mounted."""
        self._image = self._first = image
        self.folder, self._cuts = folder, 0
        with image.open("wb") as file:
            file.truncate(SIZE_MB * MB)
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

        The system may, while the platter is copied. Where two copies are equal both are what it was between them.
        """
        self._cuts += 1
        again = self._photo.with_suffix(".again")
        while True:
            _run("cp", "--sparse=always", str(self._image), str(self._photo))
            _run("cp", "--sparse=always", str(self._image), str(again))
            if filecmp.cmp(self._photo, again, shallow=False):
                break
        again.unlink()

    def lose_power(self) -> None:
        """Go on with the photograph. Who has files open goes on with what there was, so it has to end."""
        self.leave()
        self._image = self._photo
        self._mount()

    @property
    def _photo(self) -> Path:
        return self._first.with_suffix(f".{self._cuts}")

    def leave(self) -> None:
        """Whoever has files open may keep them."""
        _run("umount", "--lazy", str(self.folder))

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.folder))


@contextmanager
def disks(images: Path, folders: Iterable[Path]) -> Iterator[dict[str, Disk]]:
    """One for each folder, by its name; gone afterwards."""
    images.mkdir()
    with ExitStack() as leaving:
        found = {}
        for folder in folders:
            found[folder.name] = disk = Disk(images / folder.name, folder)
            leaving.callback(disk.leave)
        yield found


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
