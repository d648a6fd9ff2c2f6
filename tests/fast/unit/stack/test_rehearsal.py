"""A rehearsal that ends its process is left out once, so that the process can do its work."""

from pathlib import Path

import pytest

from deploy.services.rehearsal import rehearse
from deploy.settings import Settings


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def test_what_is_read_to_the_end_is_read_at_each_start(settings: Settings) -> None:
    reads = list[int]()
    for _ in range(3):
        rehearse(settings, "speed-2", lambda: reads.append(1))
    assert len(reads) == 3


def test_a_process_that_its_rehearsal_has_ended_starts_without_it(settings: Settings) -> None:
    def kill() -> None:
        raise KilledError

    outcomes = list[str]()
    for _ in range(4):
        try:
            rehearse(settings, "speed-2", kill)
            outcomes.append("left out")
        except KilledError:
            outcomes.append("killed")

    assert outcomes == ["killed", "left out"] * 2


def test_one_process_does_not_depend_on_another(settings: Settings) -> None:
    reads = list[str]()

    def kill() -> None:
        raise KilledError

    with pytest.raises(KilledError):
        rehearse(settings, "speed-2", kill)
    rehearse(settings, "archive-2", lambda: reads.append("archive-2"))
    rehearse(settings, "speed-2", lambda: reads.append("speed-2"))

    assert reads == ["archive-2"]
