"""A target: a border of the platform where input arrives, and what has to become of any input."""

import hashlib
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple, Self

import structlog

from tests.system.fuzz.mutations import MOST_BYTES, mutated

CORPUS = Path(__file__).parents[2] / "support" / "corpus"
ACCEPTED = ""
_VARYING = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'|\d+")


class Outcome(NamedTuple):
    """What became of an input. `code`: of the refusal; empty if it was accepted. `said`: the message about it."""

    code: str = ACCEPTED
    said: str = ""

    @property
    def shape(self) -> str:
        """Equal for inputs that led to the same place: the message without values and numbers."""
        return f"{self.code} {_VARYING.sub('_', self.said)[:200]}"


class PromiseBrokenError(AssertionError):
    """An input was neither accepted nor refused as the platform promises."""


class Target(ABC):
    """A context manager, because some keep a server or a database open between inputs."""

    name: ClassVar[str]
    words: ClassVar[Sequence[bytes]] = ()
    """Words of its language, which mutations insert."""
    head_end: ClassVar[bytes] = b""
    """Ends the part of an input that says what the rest is, such as the kind of a file; it is not mutated."""
    most_bytes: ClassVar[int] = MOST_BYTES
    """Of an input that is made."""

    def __enter__(self) -> Self:
        """Open what all inputs share."""
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - most have nothing to close
        """Close it."""

    @abstractmethod
    def examples(self) -> Sequence[bytes]:
        """Inputs of every kind, most of them valid, from which mutations begin."""

    @abstractmethod
    def check(self, value: bytes) -> Outcome:
        """Give the input to the platform.

        Returns:
            That it was accepted, or the code by which it was refused.

        Raises:
            Exception: the platform broke a promise: whatever is raised here is a defect.
        """

    def mutated(self, pool: Sequence[bytes], chance: Random) -> bytes:
        """A new input, made of one of the pool and parts of others."""
        value = chance.choice(pool)
        begin = value.find(self.head_end) + len(self.head_end) if self.head_end else 0
        return value[:begin] + mutated(value[begin:], pool, chance, self.words)[: self.most_bytes]

    def corpus(self) -> list[Path]:
        """The files of inputs that are checked in every run of the tests."""
        folder = CORPUS / self.name
        return sorted(each for each in folder.iterdir() if each.is_file()) if folder.is_dir() else []

    def keep(self, value: bytes) -> Path:
        """Write an input to the corpus, under the hash of its content."""
        path = self.path_of(value)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value)
        return path

    def path_of(self, value: bytes) -> Path:
        """Where the corpus has this input, if it has it."""
        return CORPUS / self.name / f"{hashlib.sha256(value).hexdigest()[:16]}.bin"


@contextmanager
def logged_failures() -> Iterator[list[str]]:
    """What is logged as an error in the block, with the exception that led to it; nothing is printed meanwhile."""
    found: list[str] = []

    def note(_: object, method: str, event: Any) -> Any:
        if method in {"error", "exception", "critical"}:
            error = sys.exc_info()[1]
            found.append(f"{event.get('event')} {place_of(error) if error else event.get('at', '')}")
        raise structlog.DropEvent

    processors = structlog.get_config()["processors"]
    usual = list(processors)
    processors[:] = [note]
    structlog.configure(processors=processors)
    try:
        yield found
    finally:
        processors[:] = usual
        structlog.configure(processors=processors)


def place_of(error: BaseException) -> str:
    """The type of an exception and where it was raised: the innermost lines, ours first."""
    frames = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frames.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    ours = [each for each in frames if "site-packages" not in each[0] and "/lib/python" not in each[0]]
    file, line, function = (ours or frames or [("?", 0, "?")])[-1]
    where = "/".join(Path(file).parts[-2:])
    return f"{type(error).__name__} at {where}:{line} in {function}: {' '.join(str(error).split())[:300]}"
