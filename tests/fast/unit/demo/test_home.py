"""The demo starts from nothing, and throws nothing away that it has not made itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.ports import free_ports
from lab.demo.home import MARK, PORTS, remove, settings_of_the_demo
from master_dataset.errors import OperatorError


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.environ", {"GALATEA_HOME": str(tmp_path / "home")})
        patched.setenv("GALATEA_HOME", str(tmp_path / "home"))
        for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True):
            patched.setenv(name, str(port))
        yield tmp_path / "home"


def test_a_home_with_data_is_refused_and_another_one_named(home: Path) -> None:
    (home / "master").mkdir(parents=True)

    with pytest.raises(OperatorError) as refused:
        settings_of_the_demo(once=False)

    assert f"GALATEA_HOME={home}-2 galatea demo" in refused.value.do


def test_once_uses_a_folder_of_its_own_and_leaves_nothing(home: Path) -> None:
    settings = settings_of_the_demo(once=True)

    assert settings.home == home / "demo-once"
    assert settings.layers.epoch_seconds == 2
    remove(settings.home)
    assert not home.exists()


def test_once_throws_away_only_what_it_made(home: Path) -> None:
    folder = home / "demo-once"
    folder.mkdir(parents=True)
    (folder / "precious").touch()

    with pytest.raises(OperatorError):
        settings_of_the_demo(once=True)

    assert (folder / "precious").exists()
    assert not (folder / MARK).exists()


def test_a_master_dataset_outside_of_the_home_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_MASTER_URI", str(home.parent / "precious"))

    with pytest.raises(OperatorError) as refused:
        settings_of_the_demo(once=True)

    assert refused.value.do == "unset GALATEA_MASTER_URI"
    assert not home.exists()
