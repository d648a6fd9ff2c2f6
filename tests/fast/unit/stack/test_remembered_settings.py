"""A home remembers the settings that decide what numbers mean, and its ports."""

from pathlib import Path

import pytest

from deploy.checks.environment import home_findings
from deploy.local.checkup import checkup
from deploy.local.home import SUPERVISED, changed_settings, record_settings
from deploy.local.stack import supervisor
from deploy.settings import Settings
from galatea.cli.main import audit
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


@pytest.mark.usefixtures("home")
def test_another_port_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_KAFKA_PORT", "9191")

    assert Settings().kafka.port == 9191
    record_settings(Settings())
    monkeypatch.delenv("GALATEA_KAFKA_PORT")
    assert (Settings().kafka.port, Settings().layers.epoch_seconds) == (9191, 2)


def test_what_is_changed_on_purpose_is_remembered(home: Path) -> None:
    changed = Settings.ignoring_record(epoch_seconds=10)

    assert changed_settings(changed) == ["GALATEA_EPOCH_SECONDS=10 instead of 2"]
    record_settings(changed)
    assert Settings().layers.epoch_seconds == 10
    assert Settings(home=home).replace(epoch_seconds=4).layers.epoch_seconds == 4  # code of our own, for a test


def test_doctor_names_a_variable_that_differs_and_checks_the_rest(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_EPOCH_SECONDS", "5")

    [finding] = home_findings(Settings.ignoring_record())

    assert finding.blocks  # every other command refuses it
    assert "GALATEA_EPOCH_SECONDS=5 instead of 2" in finding.found
    assert str(home) in finding.found
    assert finding in checkup(Settings.ignoring_record())
    monkeypatch.setenv("GALATEA_EPOCH_SECONDS", "2")
    assert not list(home_findings(Settings.ignoring_record()))


def test_the_command_that_changes_a_home_is_recorded_before_it_reads_its_settings(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GALATEA_EPOCH_SECONDS", "5")

    audit(["migrate", "--dry-run"])

    assert "migrate --dry-run" in (home / "logs" / "audit.jsonl").read_text()


@pytest.mark.usefixtures("home")
def test_a_process_of_a_stack_keeps_what_the_stack_was_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GALATEA_KAFKA_PARTITIONS", "2")
    record_settings(Settings.ignoring_record(kafka_partitions=8))

    with pytest.raises(OperatorError):
        Settings()
    monkeypatch.setenv(SUPERVISED, "1")
    assert Settings().kafka.partitions == 2


@pytest.mark.usefixtures("home")
def test_a_stack_that_cannot_start_because_another_runs_leaves_the_ports_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with supervisor(Settings()):
        monkeypatch.setenv("GALATEA_KAFKA_PORT", "9191")
        with pytest.raises(OperatorError, match="already running"), supervisor(Settings()):
            pass
    monkeypatch.delenv("GALATEA_KAFKA_PORT")

    assert Settings().kafka.port == 9999


def test_a_home_in_which_nothing_has_started_decides_nothing(home: Path) -> None:
    (home / "kafka").rmdir()

    assert Settings().layers.epoch_seconds == 300
