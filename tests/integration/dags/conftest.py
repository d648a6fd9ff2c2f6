"""One Airflow without scheduler for all tests of the DAGs: its own home and database, and a command that records."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

COMMAND = """#!{python}
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from recorded import main
main(Path({folder!r}))
"""
GALATEA = {"conn_type": "generic", "extra": {"home": "/data/galatea", "kafka_port": 19092}}
SPARK = {"conn_type": "spark", "host": "spark://spark-1", "port": 7077, "extra": {"spark.executor.instances": 4}}


@dataclass(frozen=True)
class Airflow:
    """`folder`: where the command records."""

    process: "subprocess.Popen[str]"
    folder: Path

    def play(self, **verbs: Any) -> None:
        """How the command ends from now on; nothing has called it yet."""
        (self.folder / "play.json").write_text(json.dumps(verbs))
        (self.folder / "calls.jsonl").write_text("")

    def calls(self) -> list[dict[str, Any]]:
        """Every call, in order: words, and the environment variables it got."""
        return [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]

    def words(self) -> list[list[str]]:
        """Their words."""
        return [call["words"] for call in self.calls()]

    def ask(self, **question: Any) -> Any:
        """See `tests/integration/dags/runner.py`."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, (self.folder / "log").read_text()[-5000:]
        return json.loads(answer)


@pytest.fixture(scope="session")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    folder = tmp_path_factory.mktemp("airflow")
    command = folder / "galatea"
    command.write_text(COMMAND.format(python=sys.executable, here=str(Path(__file__).parent), folder=str(folder)))
    command.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GALATEA_", "AIRFLOW"))}
    environment |= {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "AIRFLOW_HOME": str(folder / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(Path("dags").resolve()),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_GALATEA": json.dumps(GALATEA),
        "AIRFLOW_CONN_GALATEA_SPARK": json.dumps(SPARK),
    }
    with (folder / "log").open("w") as log:
        subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"], env=environment, stdout=log, stderr=log, check=True
        )
        words = [sys.executable, "-m", "tests.integration.dags.runner"]
        with subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process:
            yield Airflow(process, folder)
            process.kill()


@pytest.fixture
def airflow(_running: Airflow) -> Airflow:
    """An Airflow in which every command follows a script."""
    _running.play()
    return _running
