"""A home remembers the settings that decide what numbers mean, and its ports."""

from pathlib import Path

import pytest

from deploy.local.home import changed_settings, record_settings
from deploy.settings import Settings
from master_dataset.errors import OperatorError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that was started with an epoch of two seconds and a port of its own."""
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    record_settings(Settings(epoch_seconds=2, kafka_port=9999, skew_seconds=1))
    (tmp_path / "kafka").mkdir()
    return tmp_path


def test_later_commands_read_them(home: Path) -> None:
    settings = Settings()

    assert (settings.home, settings.layers.epoch_seconds, settings.layers.skew_seconds) == (home, 2, 1.0)
    assert settings.kafka.port == 9999
    assert (home / "settings.json").stat().st_mode & 0o077 == 0


def test_a_variable_that_differs_is_refused_with_both_values(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_EPOCH_SECONDS", "5")
    monkeypatch.setenv("GALATEA_SKEW_SECONDS", "1")

    with pytest.raises(OperatorError, match="GALATEA_EPOCH_SECONDS=5 instead of 2") as refused:
        Settings()
    assert str(home) in refused.value.message
    assert "SKEW" not in refused.value.message
    assert "galatea migrate" in refused.value.do


def test_another_port_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_KAFKA_PORT", "9191")

    assert Settings().kafka.port == 9191
    record_settings(Settings())
    monkeypatch.delenv("GALATEA_KAFKA_PORT")
    assert (Settings().kafka.port, Settings().layers.epoch_seconds) == (9191, 2)
    assert home == Settings().home


def test_what_is_changed_on_purpose_is_remembered(home: Path) -> None:
    changed = Settings.changing_home(epoch_seconds=10)

    assert changed_settings(changed) == ["GALATEA_EPOCH_SECONDS=10 instead of 2"]
    record_settings(changed)
    assert Settings().layers.epoch_seconds == 10
    assert Settings(home=home).replace(epoch_seconds=4).layers.epoch_seconds == 4  # code of our own, for a test


def test_a_home_in_which_nothing_has_started_decides_nothing(home: Path) -> None:
    (home / "kafka").rmdir()

    assert Settings().layers.epoch_seconds == 300
