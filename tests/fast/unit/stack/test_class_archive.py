"""The archive of Spark's classes: used if it is there, made for these jars, and never in the way."""

import subprocess
from pathlib import Path

import pytest

from deploy import class_archive
from deploy.class_archive import archive_option, make_class_archive
from deploy.settings import Settings
from master_dataset.errors import OperatorError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of an installation."""
    found = tmp_path / "share"
    monkeypatch.setattr(class_archive, "FOLDER", found)
    return found


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Java sessions that write what they are told to; the first item is the exit code of the next one."""
    codes = [0]

    def run(_words: list[str], *, env: dict[str, str], **_: object) -> "subprocess.CompletedProcess[str]":
        if not codes[0]:
            Path(env["JDK_JAVA_OPTIONS"].removeprefix("-XX:ArchiveClassesAtExit=")).touch()
        return subprocess.CompletedProcess([], max(codes[0], 0), "no memory")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(class_archive, "_jars", lambda _settings: ["a.jar"])
    return codes


def test_without_an_archive_java_gets_no_option() -> None:
    assert archive_option(["a.jar"]) == ""


def test_an_archive_is_for_these_jars_only(session: list[int], folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (folder / "spark-former.jsa").touch()

    assert make_class_archive(Settings(home=tmp_path))

    [archive] = folder.iterdir()
    assert archive_option(["a.jar"]) == f"-XX:SharedArchiveFile={archive}"
    assert archive_option(["a.jar", "b.jar"]) == ""
    assert session == [0]


def test_a_java_that_can_make_none_is_no_error(session: list[int], tmp_path: Path) -> None:
    session[0] = -1

    assert not make_class_archive(Settings(home=tmp_path))
    assert archive_option(["a.jar"]) == ""


def test_a_spark_that_does_not_start_leaves_nothing(session: list[int], folder: Path, tmp_path: Path) -> None:
    session[0] = 1

    with pytest.raises(OperatorError, match="no memory"):
        make_class_archive(Settings(home=tmp_path))
    assert list(folder.iterdir()) == []


def test_an_installation_that_cannot_be_written_is_named(folder: Path, tmp_path: Path) -> None:
    folder.touch()

    with pytest.raises(OperatorError, match="cannot be written"):
        make_class_archive(Settings(home=tmp_path))
