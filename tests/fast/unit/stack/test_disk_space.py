"""A database is not started where it would find no room to read again what it has."""

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from deploy.local.component import LEAST_MB, MB, require_free_disk
from master_dataset.errors import DiskFullError

Usage = namedtuple("Usage", "total used free")  # noqa: PYI024 - as shutil has it


def with_free(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, free))


def test_a_disk_with_just_enough_room_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, LEAST_MB * MB)

    require_free_disk(tmp_path)


def test_a_disk_with_less_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, LEAST_MB * MB - 1)

    with pytest.raises(DiskFullError, match="is not started, because only 255 MB are free on its disk") as refused:
        require_free_disk(tmp_path)

    assert refused.value.do == "free 256 MB there; if `galatea up` is still running, it then starts it"


def test_a_folder_that_is_yet_to_be_made_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 0)

    require_free_disk(tmp_path / "new")
