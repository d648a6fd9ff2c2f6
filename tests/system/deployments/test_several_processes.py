"""Several processes of archive and speed layer: killed ones are taken over, and nothing is lost or miscounted.

Receipts arrive all the time, some of them twice. In turns, a process that works is killed or suspended for longer than
its lease, so that it goes on beside the one that has taken over. A suspended archive may be inside of a micro-batch.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import psutil
import pytest

from deploy.cassandra import session_of
from deploy.local.records import Records
from deploy.services.shared_work import LEASE_SECONDS
from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.delta.dataset import arrow_dataset
from master_dataset.delta.tables import MasterTables
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.storage import open_table
from tests.integration.conftest import Stack, around_now, repeated, settings_of, started, until
from tests.integration.test_ledger import Sent, send

STORES = ("several-1", "several-2", "several-3")
NAMES = ("archive", "speed", "archive-2", "speed-2")
FAULTS, PER_SECOND, BETWEEN_SECONDS = 8, 20, 6
TOPIC = POS_TRANSACTIONS.topic


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    more = {"GALATEA_ARCHIVE_PROCESSES": "2", "GALATEA_SPEED_PROCESSES": "2"}
    with started(*settings_of(tmp_path_factory.mktemp("several") / "home", **more)) as found:
        yield found


@dataclass
class Sales:
    """What was sent: each receipt once, although some of them were sent twice."""

    receipts: list[Sent] = field(default_factory=list)
    sent: int = 0


@contextmanager
def selling(stack: Stack, sales: Sales) -> Iterator[None]:
    """Send receipts until the end of the block."""
    chance = Random(3)

    def sell() -> None:
        now = datetime.now(UTC)
        new = [
            Sent(chance.choice(STORES), len(sales.receipts) + number, now, float(chance.randint(1, 99)))
            for number in range(PER_SECOND)
        ]
        sales.receipts += new
        batch = [*new, *chance.sample(sales.receipts, 3)]
        send(stack, batch)()
        sales.sent += len(batch)

    with repeated(sell, 1):
        yield


def archived(stack: Stack) -> int:
    """How many records of the topic were archived, by the positions of the archive."""
    return sum(ArchivePositions(session_of(stack.settings.cassandra.address)).read().get(TOPIC, {}).values())


def shown(stack: Stack, metric: str) -> dict[str, float]:
    """What REST says of each store."""
    body = stack.get(f"/v1/metrics/{metric}", store=list(STORES), grain="total", **around_now())
    return {series["store"]: series["points"][0]["value"] or 0 for series in body["series"]}


def killed(family: Sequence[psutil.Process]) -> None:
    family[0].kill()  # what it started ends with it


def suspended(family: Sequence[psutil.Process]) -> None:
    """For longer than its leases last: another process takes over, and this one goes on beside it."""
    for process in family:
        process.suspend()
    time.sleep(LEASE_SECONDS + 2)
    for process in family:
        process.resume()


def running(home: Path, name: str) -> Sequence[psutil.Process]:
    """The process of this name, and those that it started, once all have been started again after the last fault."""
    until(lambda: all(is_ready(home, each) for each in NAMES), "not all are started again")
    process = psutil.Process(Records(home).pid(name))
    return [process, *process.children(recursive=True)]


def is_ready(home: Path, name: str) -> bool:
    """Whether the process that runs is ready."""
    ready = home / "run" / f"{name}.ready"
    return ready.exists() and ready.read_text() == str(Records(home).pid(name))


def taken_over(stack: Stack, sold: int) -> tuple[float, float]:
    """Seconds until more is archived than now, and until more is counted than was sold."""
    before, began = archived(stack), time.monotonic()
    until(lambda: archived(stack) > before, "nothing is archived")
    archiving = time.monotonic() - began
    until(lambda: sum(shown(stack, "total_transactions_count").values()) > sold, "nothing is counted")
    return archiving, time.monotonic() - began


@pytest.mark.nightly
def test_killed_and_suspended_processes_are_taken_over_and_nothing_is_lost_or_miscounted(stack: Stack) -> None:
    chance, sales = Random(5), Sales()
    with selling(stack, sales):
        for number in range(FAULTS):
            name = NAMES[number % len(NAMES)]
            fault = chance.choice((killed, suspended))
            fault(running(stack.settings.home, name))
            waited = taken_over(stack, len(sales.receipts))
            print(f"{name} {fault.__name__}: archived after {waited[0]:.1f} s, counted after {waited[1]:.1f} s")  # noqa: T201
            time.sleep(BETWEEN_SECONDS)
    due = Counter(each.store for each in sales.receipts)
    until(lambda: shown(stack, "total_transactions_count") == due, "not every receipt is counted")
    until(lambda: archived(stack) == sales.sent, "not every record is archived")

    table = arrow_dataset(open_table(MasterTables(stack.settings.paths.master_uri).path(TOPIC)))
    rows = table.to_table(columns=["partition", "offset"]).to_pylist()
    stack.rebuild()
    verdict = stack.verify()

    for name in NAMES:  # started again alone, the first ones would have done everything
        sign = "event=speed.batch" if name.startswith("speed") else f"source={TOPIC} "
        assert sign in (stack.settings.home / "logs" / f"{name}.log").read_text(errors="replace")
    print(f"{len(sales.receipts)} receipts, {sales.sent} records, {len(rows)} rows")  # noqa: T201
    assert {(row["partition"], row["offset"]) for row in rows} == {(0, offset) for offset in range(sales.sent)}
    assert shown(stack, "net_sales") == {
        store: sum(each.total for each in sales.receipts if each.store == store) for store in STORES
    }
    assert (verdict.differing, verdict.totals_differing, verdict.examples) == (0, 0, [])
