"""With little room left on the broker's disk no event is taken, and events are taken again as soon as there is some."""

from pathlib import Path
from typing import NamedTuple

import pytest

from serving_layer.errors import DiskLowError
from serving_layer.ingest.disk_space import DiskSpace
from tests.support import World
from tests.support.corpus.case import receipt
from tests.support.world_api import Asking

MB = 10**6
TOPIC = "pos_transactions"


class Usage(NamedTuple):
    total: int
    free: int


class Disks:
    """Of some folders, and of no others. Every look at a clock is a second later."""

    def __init__(self, percent: float = 10, least: int = 1000 * MB, **disks: Usage) -> None:
        self.disks, self.seconds = disks, 0.0
        folders = [Path(name) for name in (*disks, "elsewhere")]
        self.room = DiskSpace(folders, percent, least, self._usage, self._clock)

    def _usage(self, folder: Path) -> Usage:
        if str(folder) not in self.disks:
            raise FileNotFoundError(folder)
        return self.disks[str(folder)]

    def _clock(self) -> float:
        self.seconds += 1
        return self.seconds

    @property
    def is_low(self) -> bool:
        try:
            self.room.refuse_low()
        except DiskLowError:
            return True
        return False


@pytest.mark.parametrize(
    ("total", "free", "is_low"),
    [
        (5_000 * MB, 1_000 * MB, False),
        (5_000 * MB, 1_000 * MB - 1, True),
        (50_000 * MB, 5_000 * MB, False),
        (50_000 * MB, 5_000 * MB - 1, True),
    ],
)
def test_a_tenth_and_a_gigabyte_have_to_be_free(total: int, free: int, is_low: bool) -> None:  # noqa: FBT001
    assert Disks(home=Usage(total, free)).is_low == is_low


def test_the_fullest_disk_decides() -> None:
    disks = Disks(home=Usage(10_000 * MB, 9_000 * MB), kafka=Usage(10_000 * MB, 10 * MB))

    assert disks.is_low
    assert disks.room.free() == 10 * MB


def test_a_bound_of_nothing_is_none() -> None:
    assert not Disks(percent=0, least=0, home=Usage(10_000 * MB, 0)).is_low


def test_where_no_folder_is_there_nothing_is_known_and_nothing_refused() -> None:
    disks = Disks()

    assert not disks.is_low
    assert disks.room.free() is None


def test_a_disk_is_not_looked_at_for_every_request() -> None:
    looks: list[Path] = []

    def usage(folder: Path) -> Usage:
        looks.append(folder)
        return Usage(10_000 * MB, 9_000 * MB)

    room = DiskSpace([Path("home")], 10, MB, usage, lambda: 7.0)
    for _ in range(100):
        room.refuse_low()

    assert looks == [Path("home")]


def test_events_are_refused_while_the_disk_is_low_and_taken_again_when_it_is_not() -> None:
    disks = Disks(home=Usage(10_000 * MB, 1))
    asking = Asking(World(), refuse_low=disks.room.refuse_low)

    refused = asking.sent(receipt())
    disks.disks["home"] = Usage(10_000 * MB, 5_000 * MB)
    taken = asking.sent(receipt())

    assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (503, "disk_low", "2")
    assert taken.status_code == 202
    assert len(asking.broker.values(TOPIC)) == 1
    assert asking.response("/healthz").status_code == 200
