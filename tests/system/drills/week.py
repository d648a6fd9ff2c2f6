"""`python -m tests.system.drills.week`: a simulated week with all faults, published while `speed` is killed.

On a stack of its own whose speed layer counts events that are a week old. The week takes minutes. Prints one line and
appends it to the ledger, week.jsonl.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from deltalake import DeltaTable

from deploy.local.records import Records
from master_dataset.delta.tables import DEAD_LETTERS, MasterTables
from master_dataset.errors import CutNotReachedError
from master_dataset.sources import registered_sources
from tests.integration.conftest import Stack, settings_of
from tests.system.drills.faults import exit_on_sigterm
from tests.system.drills.ledger_line import append

OWN = {
    "GALATEA_OLDEST_HOURS": "230",
    "GALATEA_REMEMBERED_HOURS": "240",
    "GALATEA_KAFKA_RETENTION_DAYS": "20",
    "GALATEA_EPOCH_SECONDS": "10",
    "GALATEA_ARCHIVE_SECONDS": "5",
    "GALATEA_VISIT_GAP_SECONDS": "1800",
}
DAYS = 7


@dataclass
class Week:
    """What was sent, what it became, and what was found."""

    stores: int
    seed: int
    sent: int = 0
    announced: Any = None
    archived: int = 0
    dead_letters: int = 0
    kills: int = 0
    publications: int = 0
    refused: int = 0
    cells: int = 0
    differing: int = 0
    waiting: int = 0
    differing_in_the_end: int = 0
    seconds: float = 0.0

    @property
    def is_well(self) -> bool:
        kept = self.archived + self.dead_letters == self.sent
        found = kept and (self.differing, self.differing_in_the_end) == (0, 0)
        return found and self.kills > 0 and self.publications > self.refused


def played(stack: Stack, week: Week, minutes: float, every_seconds: float) -> Week:
    """Send the week; meanwhile publish again and again, and kill `speed` at random moments."""
    chance, began = Random(week.seed), time.monotonic()
    today = datetime.now(UTC).date()
    days = ["--from", f"{today - timedelta(days=DAYS)}", "--to", f"{today - timedelta(days=1)}"]
    words = ["simulate", "--stores", str(week.stores), *days, "--seed", str(week.seed), "--send", "--json"]
    words += ["--live", str(DAYS * 24 * 60 / minutes)]
    sending = subprocess.Popen(
        [sys.executable, "-m", "galatea.cli.main", *words], env=stack.environment, stdout=subprocess.PIPE, text=True
    )
    while sending.poll() is None:
        time.sleep(chance.uniform(0.2, 1.0) * every_seconds)
        week.kills += killed(stack)
        time.sleep(chance.uniform(0, 3))
        week.refused += not published(stack)
    said = json.loads(sending.stdout.read() if sending.stdout else "{}")
    assert sending.returncode == 0, said
    week.sent, week.announced = said["sent"], said["sources"]
    verdict = stack.galatea("verify")
    week.cells, week.differing, week.waiting = (verdict[name] for name in ("cells", "differing", "waiting_for_batch"))
    stack.galatea("rebuild", "--wait")
    week.differing_in_the_end = stack.galatea("verify")["differing"]
    week.publications = stack.galatea("publications")["publications"][0]["publication"]
    tables = MasterTables(stack.settings.paths.master_uri)
    week.archived = sum(
        DeltaTable(tables.path(topic)).to_pyarrow_dataset().count_rows() for topic in registered_sources()
    )
    week.dead_letters = DeltaTable(tables.path(DEAD_LETTERS)).to_pyarrow_dataset().count_rows()
    week.seconds = round(time.monotonic() - began, 1)
    return week


def published(stack: Stack) -> bool:
    """Rebuild; False if the archive was too far behind to reach a cut, which is said by name."""
    done = subprocess.run(
        [sys.executable, "-m", "galatea.cli.main", "rebuild"],
        check=False,
        env=stack.environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 or CutNotReachedError.code in done.stderr, done.stderr
    return done.returncode == 0


def killed(stack: Stack) -> bool:
    """End the speed layer as by `kill -9`; its supervisor starts it again."""
    pid = Records(stack.settings.home).pid("speed")
    if pid is None:
        return False
    os.kill(pid, signal.SIGKILL)
    return True


def main() -> int:
    """Exit 1 if a cell differs or a record is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.week", description=__doc__)
    parser.add_argument("--stores", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the week takes")
    parser.add_argument("--every", type=float, default=120.0, help="seconds between two publications, about")
    arguments = parser.parse_args()
    exit_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="galatea-week-") as folder:
        settings, environment = settings_of(Path(folder) / "home", **OWN)
        stack = Stack(settings, environment)
        try:
            stack.run("up", "--detach", "--without-airflow")
            week = played(stack, Week(arguments.stores, arguments.seed), arguments.minutes, arguments.every)
        finally:
            stack.run("down")
    line = json.dumps({"at": f"{datetime.now(UTC):%F}", **asdict(week)})
    sys.stdout.write(line + "\n")
    append("week", line)
    return int(not week.is_well)


if __name__ == "__main__":
    sys.exit(main())
