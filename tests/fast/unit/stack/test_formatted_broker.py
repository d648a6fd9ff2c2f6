"""The folder of a new broker is on the disk before anything is acknowledged there."""

import os
import subprocess
from pathlib import Path

import pytest

from deploy.local import kafka
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

    assert synced >= {str(each) for each in (*(data / name for name in FILES), data, data.parent, tmp_path)}


def test_a_tool_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OperatorError, match="could not be formatted"):
        format_(tmp_path, monkeypatch, 1)
