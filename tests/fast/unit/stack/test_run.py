"""`galatea run` becomes the process of a component."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy import jars
from galatea.cli.main import app, main
from galatea.cli.run import Runnable


class BecameError(Exception):
    """The process has become another one."""


@pytest.mark.parametrize("name", [each for each in Runnable if each not in {"archive", "speed"}])
def test_it_becomes_the_process_with_all_settings_and_no_probe_believes_the_run_before(
    name: Runnable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    became: dict[str, object] = {}

    def execve(path: str, words: Sequence[str], environment: Mapping[str, str]) -> None:
        became.update(path=path, words=words, port=environment["GALATEA_API_PORT"], home=environment["GALATEA_HOME"])
        raise BecameError

    ready = tmp_path / "home" / "run" / f"{name}.ready"
    ready.parent.mkdir(parents=True)
    ready.write_text("4711")
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GALATEA_API_PORT", "8123")
    monkeypatch.setattr(os, "execve", execve)

    result = CliRunner().invoke(app, ["run", name])

    assert isinstance(result.exception, BecameError)
    assert became == {
        "path": sys.executable,
        "words": [sys.executable, "-P", "-m", f"deploy.services.{name}"],
        "port": "8123",
        "home": str(tmp_path / "home"),
    }
    assert not ready.exists()


def test_no_probe_believes_the_run_before_while_jars_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "home" / "run" / "archive.ready"
    ready.parent.mkdir(parents=True)
    ready.write_text("4711")
    was_ready: list[bool] = []

    def ensure_jars(_settings: object, parts: Sequence[str]) -> None:
        was_ready.append(ready.exists())
        assert parts == ("spark",)
        raise BecameError

    monkeypatch.setenv("GALATEA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(jars, "ensure_jars", ensure_jars)

    CliRunner().invoke(app, ["run", "archive"])

    assert was_ready == [False]


def test_another_process_of_the_api_has_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[Sequence[str]] = []

    def execve(_path: str, words: Sequence[str], _environment: Mapping[str, str]) -> None:
        became.append(words)
        raise BecameError

    monkeypatch.setenv("GALATEA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GALATEA_API_PROCESSES", "2")
    monkeypatch.setattr(os, "execve", execve)

    CliRunner().invoke(app, ["run", "api-2"])
    beyond = CliRunner().invoke(app, ["run", "api-3"])

    assert became == [[sys.executable, "-P", "-m", "deploy.services.api", "api-2"]]
    assert (beyond.exit_code, "api-3" in beyond.output) == (2, True)


@pytest.mark.parametrize("name", Runnable)
def test_every_component_has_a_process(name: Runnable) -> None:
    assert find_spec(f"deploy.services.{name}")


def test_another_component_is_refused_by_name() -> None:
    result = CliRunner().invoke(app, ["run", "kafka"])

    assert result.exit_code == 2
    assert "kafka" in result.output


@pytest.mark.parametrize("below", ["", "data/galatea"])
@pytest.mark.parametrize("words", [["run", "api"], ["up"], ["rebuild"], ["migrate"]], ids=lambda words: words[0])
def test_a_home_that_is_a_file_is_named_before_anything_is_done(
    words: Sequence[str],
    below: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("GALATEA_HOME", str(file / below))
    monkeypatch.setattr(sys, "argv", ["galatea", *words])

    with pytest.raises(SystemExit) as ended:
        main()

    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert f"bad_setting: `GALATEA_HOME`: `{file}` is a file, and all state is kept in a folder." in " ".join(
        f"{shown.out}{shown.err}".split()
    )
