"""The folder of a new broker is on the disk before anything is acknowledged there."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from deploy.jars import FORMER_KAFKA, KAFKA
from deploy.local import kafka
from deploy.local.stack import jar_parts
from deploy.settings import Settings
from master_dataset.errors import OperatorError

FILES = ("meta.properties", "bootstrap.checkpoint")


def format_(home: Path, monkeypatch: pytest.MonkeyPatch, returncode: int) -> set[str]:
    """Format a log with a tool that writes its files and returns that code; which files and folders are synced."""
    folder, synced = home / "kafka", set[str]()
    (folder / "data").mkdir(parents=True)

    def run(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        for name in FILES:
            (folder / "data" / name).write_text(name)
        return subprocess.CompletedProcess([], returncode, "", "no")

    monkeypatch.setattr(kafka, "_java", lambda *_: ["java"])
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(os, "fsync", lambda opened: synced.add(str(Path(f"/proc/self/fd/{opened}").readlink())))
    kafka.format_log(folder, "cluster", Settings(home=home))
    return synced


def test_a_formatted_log_is_synced_with_the_folders_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "kafka" / "data"

    synced = format_(tmp_path, monkeypatch, 0)

    written = (*(data / name for name in FILES), data.parent / "formatted-by")
    assert synced >= {str(each) for each in (*written, data, data.parent, tmp_path)}


def formatted_home(home: Path, marked: Sequence[bool]) -> Path:
    """A home with a formatted broker for each flag: whether it says which version formatted it."""
    for number, is_marked in enumerate(marked):
        folder = home / f"kafka-{number}"
        (folder / "data").mkdir(parents=True)
        (folder / "data" / "meta.properties").touch()
        if is_marked:
            (folder / "formatted-by").write_text("4.2.2")
    return home


@pytest.mark.parametrize(
    ("marked", "part"),
    [
        ((), KAFKA),
        ((True,), KAFKA),
        ((True, True, True), KAFKA),
        ((False,), FORMER_KAFKA),
        ((False, True), FORMER_KAFKA),
    ],
)
def test_a_home_keeps_the_version_of_kafka_that_formatted_it(
    tmp_path: Path, marked: tuple[bool, ...], part: str
) -> None:
    assert kafka.kafka_part(formatted_home(tmp_path, marked)) == part
    assert part in jar_parts(Settings(home=tmp_path))


def test_a_new_broker_says_which_version_formatted_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    format_(tmp_path, monkeypatch, 0)

    assert (tmp_path / "kafka" / "formatted-by").read_text() == kafka.kafka_version()
    assert kafka.kafka_part(tmp_path) == KAFKA


def test_a_lost_broker_is_formatted_by_the_version_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    format_(formatted_home(tmp_path, [False]), monkeypatch, 0)

    assert not (tmp_path / "kafka" / "formatted-by").exists()


def test_a_tool_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OperatorError, match="could not be formatted"):
        format_(tmp_path, monkeypatch, 1)
