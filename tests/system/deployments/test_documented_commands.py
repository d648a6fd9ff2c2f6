"""Every command of README.md and of the tutorial, as a reader types it, on a stack that it starts itself."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from deploy.local.ports import free_ports
from tests.integration.test_tutorial import DEAD_LETTER, PAGE, value_of
from tests.support.documented import PATIENCE_SECONDS, ROOT, Shell, blocks

pytestmark = pytest.mark.nightly

INLINE = re.compile(r"`((?:[A-Z_]+=\S+ )?uv run galatea [a-z]+)`")
"""Commands in the text; without uv, as the README says, the installed `galatea` is used."""
PORTS = (
    "GALATEA_API_PORT",
    "GALATEA_SQL_PORT",
    "GALATEA_KAFKA_PORT",
    "GALATEA_CASSANDRA_PORT",
    "GALATEA_AIRFLOW_PORT",
)


@pytest.fixture
def environment() -> Mapping[str, str]:
    """Free ports, so that a stack of the reader's own is not in the way; nothing else is set."""
    ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
    return {name: value for name, value in os.environ.items() if not name.startswith("GALATEA_")} | ports


@pytest.fixture
def shell(environment: Mapping[str, str], tmp_path: Path) -> Iterator[Shell]:
    with Shell(tmp_path, environment, int(environment[PORTS[0]])) as running:
        yield running
        running.run("galatea down", fails=True)


def test_the_tutorial_from_its_first_to_its_last_command(shell: Shell) -> None:
    said, outputs = blocks(PAGE), list[str]()
    assert {block.language for block in said} == {""}

    for block in said:
        if "net_sales" in block.text:
            outputs.append(shell.until(block.text, lambda printed: value_of(printed) == 4.58))
        elif "dead-letters list" in block.text:
            outputs.append(shell.until(block.text, lambda printed: DEAD_LETTER in printed and "wrong_type" in printed))
        else:
            outputs.append(shell.run(block.text))

    assert "running" in outputs[0]
    assert [block.text for block in said if DEAD_LETTER in block.text]
    assert len(outputs) == len(said) >= 10


def demo_has_ended(log: Path, running: subprocess.Popen[bytes]) -> bool:
    """Whether it has printed its verdict and goes on."""
    assert running.poll() is None, log.read_text()
    return "Ctrl-C" in log.read_text()


def test_the_readmes_demo_answers_its_query_and_its_python_example(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    said = [block for block in blocks(ROOT / "README.md") if block.section == "Quick start"]
    [demo, query] = [block.text for block in said if not block.language]
    [example] = [block.text for block in said if block.language == "python"]
    commands = INLINE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    environment = {**environment, "GALATEA_HOME": str(tmp_path / "home")}
    log = tmp_path / "demo.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            demo.split(), cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
        ) as running,
    ):
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not demo_has_ended(log, running):
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(1)
            port = int(environment[PORTS[0]])
            with Shell(ROOT, environment, port) as shell:
                answer = shell.run(query)
                printed = shell.run(f"{sys.executable} - <<'PY'\n{example}\nPY")
                followed = [shell.run(command.replace("uv run ", "")) for command in commands]
            ended = running.wait(120)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGINT)
                running.wait(120)

    assert '"series"' in answer
    assert len(printed.split()) == 2
    assert [command.rpartition(" ")[2] for command in commands] == ["status", "verify", "down"]
    assert "speed" in followed[0]
    assert ended in {0, 2}, log.read_text()  # make's own code when its command was terminated
