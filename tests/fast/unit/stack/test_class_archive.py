"""The archive of Spark's classes: used if it is there, made for these jars, and never in the way."""

import subprocess
from pathlib import Path

import pytest

from deploy import class_archive
from deploy.class_archive import archive_option, make_class_archive
from deploy.java import find_java
from deploy.settings import Settings


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
    find_java()  # asks Java for its version once, by a process that `run` does not stand for

    def run(_words: list[str], *, env: dict[str, str], **_: object) -> "subprocess.CompletedProcess[str]":
        if not codes[0]:
            Path(env["JDK_JAVA_OPTIONS"].removeprefix("-XX:ArchiveClassesAtExit=")).touch()
        if codes[0] > 0:
            raise subprocess.CalledProcessError(codes[0], "java", "no memory")
        return subprocess.CompletedProcess([], 0)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(class_archive, "_jars", lambda _settings: ["a.jar"])
    return codes


def test_without_an_archive_java_gets_no_option() -> None:
    assert archive_option(["a.jar"]) == ""


def test_an_archive_is_for_these_jars_only(session: list[int], folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (folder / "spark-former.jsa").touch()

    assert make_class_archive(Settings(home=tmp_path)) == ""

    [archive] = folder.iterdir()
    assert archive_option(["a.jar"]) == f"-XX:SharedArchiveFile={archive}"
    assert archive_option(["a.jar", "b.jar"]) == ""
    assert session == [0]


def test_a_java_that_can_make_none_is_no_error(session: list[int], tmp_path: Path) -> None:
    session[0] = -1

    assert make_class_archive(Settings(home=tmp_path)) == "this Java can make none"
    assert archive_option(["a.jar"]) == ""


def test_a_spark_that_does_not_start_leaves_nothing(session: list[int], folder: Path, tmp_path: Path) -> None:
    session[0] = 1

    assert make_class_archive(Settings(home=tmp_path)) == "Spark did not start: no memory"
    assert list(folder.iterdir()) == []


def test_an_installation_that_cannot_be_written_is_named(folder: Path, tmp_path: Path) -> None:
    folder.touch()

    assert "cannot be written" in make_class_archive(Settings(home=tmp_path))
