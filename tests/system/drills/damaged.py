"""`python -m tests.system.drills.damaged`: damages Cassandra's files on the disk, then loses Cassandra completely.

It flips a bit in each data file, one after another. An answer may then be refused, but never differ. Then it follows
the guide for a lost Cassandra, after which every answer must be the same, digit by digit. Prints one line and appends
it to the ledger, damaged.jsonl.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random

import httpx

from deploy.local.records import Records
from tests.integration.conftest import Stack, around_now, settings_of
from tests.system.drills.faults import exit_on_sigterm
from tests.system.drills.ledger_line import append

Answers = dict[tuple[str, str], str]
"""By metric and store."""
METRICS = ("net_sales", "total_transactions_count", "traffic_in", "p90_queue_wait", "unique_devices")
STORES = 3
QUERY_SECONDS = 30.0
WELL_SECONDS = 600.0


@dataclass
class Damaged:
    """`files` of Cassandra that were damaged; `answered` and `refused` meanwhile, `wrong` of the answers.

    `restored`: whether all answers were the same in the end.
    """

    seed: int
    files: int = 0
    answered: int = 0
    refused: int = 0
    wrong: int = 0
    restored: bool = False
    seconds: float = 0.0

    @property
    def is_well(self) -> bool:
        return self.files > 0 and self.answered > 0 and self.refused > 0 and self.wrong == 0 and self.restored


def played(stack: Stack, damaged: Damaged, folder: Path) -> Damaged:
    """Of a home without anything; `folder` for what is simulated, not there yet."""
    began, home = time.monotonic(), stack.settings.home
    day = datetime.now(UTC).date() - timedelta(days=1)
    simulated = ["--stores", str(STORES), "--from", f"{day}", "--to", f"{day}", "--seed", str(damaged.seed)]
    stack.run("simulate", *simulated, "--out", str(folder))
    _up(stack)
    stack.galatea("simulate", *simulated, "--send")
    stack.galatea("rebuild", "--wait")
    must = _answers(stack, [each["id"] for each in stack.galatea("stores", "list")["stores"]])
    stack.run("down")  # so that all of it lies in files
    _up(stack)
    chance = Random(damaged.seed)
    files = sorted((home / "cassandra").glob("**/galatea*/**/*-Data.db"))  # all that galatea has written
    for file in chance.sample(files, len(files)):
        try:
            _flip(file, chance)
        except FileNotFoundError:  # Cassandra has compacted it meanwhile
            continue
        damaged.files += 1
        _end(home, "api")  # it remembers what it has read
        _ask(stack, must, damaged)
    stack.run("down")
    for lost in ("cassandra", "checkpoints/speed"):
        shutil.rmtree(home / lost)
    stack.run("up", "--only", "cassandra", "--detach")
    stack.run("stores", "load", "--restore", str(folder / "stores.yaml"))
    stack.run("down")
    _up(stack)
    stack.galatea("rebuild", "--full", "--wait")
    damaged.restored = _is_restored(stack, must)
    damaged.seconds = round(time.monotonic() - began, 1)
    return damaged


def _up(stack: Stack) -> None:
    stack.run("up", "--detach", "--without-airflow")


def _flip(file: Path, chance: Random) -> None:
    """A bit of one byte."""
    with file.open("r+b") as opened:
        place = chance.randrange(file.stat().st_size)
        opened.seek(place)
        byte = opened.read(1)[0]
        opened.seek(place)
        opened.write(bytes([byte ^ 1]))


def _end(home: Path, name: str) -> None:
    pid = Records(home).pid(name)
    if pid is not None:  # otherwise it is between two attempts to start, and remembers nothing
        os.kill(pid, signal.SIGKILL)


def _ask(stack: Stack, must: Answers, damaged: Damaged) -> None:
    """Each question once. What does not listen for long counts as one that refuses, and is asked nothing else."""
    deadline = time.monotonic() + QUERY_SECONDS
    for question, answer in must.items():
        found = None
        while found is None and time.monotonic() < deadline:
            try:
                found = _answer(stack, *question)
            except httpx.TransportError:
                time.sleep(0.1)
            except AssertionError:  # any answer but a 200
                break
        damaged.refused += found is None
        damaged.answered += found is not None
        damaged.wrong += found not in (None, answer)


def _is_restored(stack: Stack, must: Answers) -> bool:
    """As soon as a generation of speed has begun again, too."""
    deadline = time.monotonic() + WELL_SECONDS
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError, AssertionError):
            if all(_answer(stack, *question) == answer for question, answer in must.items()):
                return True
        time.sleep(1)
    return False


def _answers(stack: Stack, stores: Sequence[str]) -> Answers:
    return {question: _answer(stack, *question) for question in product(METRICS, stores)}


def _answer(stack: Stack, metric: str, store: str) -> str:
    """The points, as they are written."""
    body = stack.get(f"/v1/metrics/{metric}", store=store, grain="day", timezone="UTC", **around_now())
    return json.dumps([each["points"] for each in body["series"]])


def main() -> int:
    """Exit 1 if an answer was wrong, or they are not what they were in the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.damaged", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    exit_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="galatea-damaged-") as folder:
        stack = Stack(*settings_of(Path(folder) / "home"))
        try:
            damaged = played(stack, Damaged(arguments.seed), Path(folder) / "simulated")
        finally:
            stack.run("down")
    line = json.dumps({"at": f"{datetime.now(UTC):%F}", **asdict(damaged)})
    sys.stdout.write(line + "\n")
    append("damaged", line)
    return int(not damaged.is_well)


if __name__ == "__main__":
    sys.exit(main())
