"""The lock: which jars each part of the stack runs on, and what they must hash to."""

import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Jar(NamedTuple):
    """One file of the Maven repository. `sha256` of its bytes, in hex."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        """As the repository names it."""
        tail = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{tail}.jar"

    @property
    def path(self) -> str:
        """Where it lies below the repository's root."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


@cache
def locked_jars(part: str) -> tuple[Jar, ...]:
    """The jars of one part: `kafka`, `cassandra` or `spark`."""
    lock = tomllib.loads((Path(__file__).parent / "jars.lock.toml").read_text())
    jars = []
    for coordinates, sha256 in lock[part].items():
        group, artifact, *classifier, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, "".join(classifier), sha256))
    return tuple(jars)
