"""Commands of the documentation, read from its pages and run as a reader would type them."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Self
from uuid import uuid4

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 2700.0
API = "localhost:8000", "127.0.0.1:8000"
"""Where the pages say that the API is. Tests use another port."""


class Block(NamedTuple):
    """A block of code. `language`: of a fence, such as `python`; empty for an indented block, which is shell."""

    section: str
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in order."""
    found: list[Block] = []
    section, fence, lines = "", None, list[str]()
    for line in [*page.read_text(encoding="utf-8").splitlines(), "end"]:
        if fence is not None:
            if line.strip() == "```":
                found.append(Block(section, fence, "\n".join(lines)))
                fence, lines = None, []
            else:
                lines.append(line)
            continue
        if line.startswith("    ") or (not line and lines):
            lines.append(line[4:])
            continue
        if lines:
            found.append(Block(section, "", "\n".join(lines).rstrip()))
            lines = []
        if line.startswith("#"):
            section = line.lstrip("# ")
        if line.startswith("```"):
            fence = line[3:].strip()
    return found


class Shell:
    """One bash session, so that what a block sets is there in the next one. Use as a context manager."""

    def __init__(self, folder: Path, environment: Mapping[str, str], api_port: int) -> None:
        """`galatea` and the Python of these tests are found first. The port in commands becomes `api_port`."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.environ['PATH'])}"
        self._folder, self._environment, self._port = folder, {**environment, "PATH": path}, api_port

    def __enter__(self) -> Self:
        """Start bash."""
        self._bash = subprocess.Popen(
            ["/bin/bash"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        """End bash, but not what it has left running in the background."""
        self._bash.kill()
        self._bash.wait()
        for pipe in (self._bash.stdin, self._bash.stdout):
            if pipe:
                pipe.close()

    def run(self, text: str, *, fails: bool = False) -> str:
        """Run a block line by line as typed, and return what it printed. AssertionError if any command fails."""
        assert self._bash.stdin
        assert self._bash.stdout
        for address in API:
            text = text.replace(address, f"127.0.0.1:{self._port}")
        end = f"end-{uuid4().hex}"
        self._bash.stdin.write(f"failed=0; trap 'failed=1' ERR\n{text}\ntrap - ERR; echo; echo {end} $failed\n")
        self._bash.stdin.flush()
        printed = list[str]()
        for line in self._bash.stdout:
            if line.startswith(end):
                output = "\n".join(printed).strip()
                assert fails or line.split()[1] == "0", f"{text}\n{output}"
                return output
            printed.append(line.rstrip("\n"))
        raise AssertionError(f"the shell ended in\n{text}\n" + "\n".join(printed))

    def until(self, text: str, condition: Callable[[str], bool]) -> str:
        """Repeat a block until its output is as the page says."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition(output := self.run(text, fails=True)):
            assert time.monotonic() < deadline, f"{text}\n{output}"
            time.sleep(0.5)
        return output
