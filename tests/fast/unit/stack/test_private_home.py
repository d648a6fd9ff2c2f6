"""A home is its owner's alone. One that cannot be used, or whose disk is too small, is refused with a sentence."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.checks.environment import home_findings
from deploy.local.component import require_room
from deploy.local.home import home_error, make_folder, make_home
from deploy.process import protect_process
from deploy.sections import InvalidSettingsError
from deploy.settings import Settings
from master_dataset.errors import DiskFullError, OperatorError


@pytest.fixture(autouse=True)
def _loose_umask(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    before = os.umask(0o022)
    yield
    os.environ.pop("PYTHONSAFEPATH", None)
    os.umask(before)


def mode(place: Path) -> int:
    return place.stat().st_mode & 0o777


def test_a_new_home_and_what_is_written_to_it_is_its_owners_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"

    protect_process()
    folder = make_folder(home, home / "logs")
    (folder / "file").write_text("x")

    assert [mode(each) for each in (home, folder, folder / "file")] == [0o700, 0o700, 0o600]


def test_an_existing_home_with_wider_rights_is_narrowed_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)

    make_home(home)
    make_home(home)

    assert mode(home) == 0o700
    assert capsys.readouterr().err.count("mode 755") == 1


def test_a_folder_that_is_no_home_keeps_its_rights(tmp_path: Path) -> None:
    home = tmp_path / "etc"
    (home / "passwd").mkdir(parents=True)
    home.chmod(0o755)

    with pytest.raises(OperatorError, match="holds `passwd`, so it is no home of Galatea"):
        make_home(home)

    assert mode(home) == 0o755


@pytest.mark.parametrize(
    "names", [("stores.yaml", "settings.json"), ("kafka", "lost+found"), ("notes", "operator.key")]
)
def test_a_home_that_was_used_or_has_disks_of_its_own_is_narrowed(tmp_path: Path, names: tuple[str, ...]) -> None:
    home = tmp_path / "home"
    for name in names:
        (home / name).mkdir(parents=True)
    home.chmod(0o755)

    make_home(home)

    assert mode(home) == 0o700


def test_a_home_of_another_owner_stays_as_it_is_and_doctor_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    make_home(home)

    assert mode(home) == 0o755
    [finding] = home_findings(Settings(home=str(home)))
    assert (finding.check, "mode 755" in finding.found) == ("home", True)


def test_every_command_and_process_writes_private_files(tmp_path: Path) -> None:
    code = "import os, sys; sys.argv = ['galatea', '--version']; from galatea.cli.main import main\n"
    code += "try: main()\nexcept SystemExit: pass\nopen('written', 'w').close()"

    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=environment)

    assert mode(tmp_path / "written") == 0o600


def test_children_import_nothing_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "structlog.py").write_text("raise SystemExit('from the current folder')")
    monkeypatch.chdir(tmp_path)

    protect_process()

    command = [sys.executable, "-c", "import structlog"]  # as with -m, Python would look in the current folder first
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": ""})


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)

    with pytest.raises(OperatorError, match="Read-only file system") as found:
        make_home(home)
    assert str(home) in found.value.message
    assert "GALATEA_HOME" in found.value.do


@pytest.mark.parametrize(
    ("number", "place", "is_the_homes"),
    [
        (errno.EROFS, "logs/commands.log", True),
        (errno.EACCES, "run/api.ready", True),
        (errno.EACCES, "../elsewhere", False),
        (errno.ENOENT, "logs/commands.log", False),
    ],
)
def test_only_an_error_of_writing_the_home_is_one_of_the_home(
    tmp_path: Path, number: int, place: str, *, is_the_homes: bool
) -> None:
    error = OSError(number, os.strerror(number), os.path.normpath(tmp_path / "home" / place))

    assert (home_error(tmp_path / "home", error) is not None) is is_the_homes


def test_a_disk_that_is_too_small_is_refused_with_what_is_free_and_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_500_000_000))

    require_room(tmp_path / "home", 1500)
    with pytest.raises(DiskFullError) as found:
        require_room(tmp_path / "home", 2048)

    assert f"`{tmp_path / 'home'}`" in found.value.message
    assert "1,500 MB free" in found.value.message
    assert "2,048 MB" in found.value.message
    assert "GALATEA_LEAST_DISK_MB" in found.value.do


@pytest.mark.parametrize("name", ["josé", "a,b", "a\\b", "a#b", "a?b", "100%", "a\nb"])
def test_a_home_whose_path_kafka_or_cassandra_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSettingsError, match="has a character that Kafka or Cassandra would misread"):
        Settings(home=tmp_path / name)


def test_a_home_may_have_spaces(tmp_path: Path) -> None:
    assert Settings(home=tmp_path / "my shops").home == tmp_path / "my shops"


def test_a_home_below_a_folder_that_cannot_be_entered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_folder: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refused)  # root may enter every folder

    with pytest.raises(InvalidSettingsError, match="cannot be reached: Permission denied"):
        Settings(home=tmp_path / "home")
