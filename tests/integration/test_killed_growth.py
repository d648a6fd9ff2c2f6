"""`galatea migrate` is killed at every step of adding partitions, each time run again, while receipts arrive."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.local.home import recorded_settings
from deploy.partitions import all_topics, closed_from, partitions_of
from master_dataset.failpoints import Failpoint
from master_dataset.kafka.topics import Topics
from tests.integration.conftest import PATIENCE_SECONDS, Stack, settings_of, started, until
from tests.system.deployments.test_added_partitions import STORES, counted, selling, until_both_read_all

BEFORE, WANTED, SETTLE_SECONDS = 2, 4, 10
NOTICED_AFTER_MS = (1_000, 3_000)
STILL_LEASED = "another process holds the lease `partitions`"
STEPS = (
    (Failpoint.PARTITIONS_BEGUN, BEFORE, False),
    (Failpoint.PARTITIONS_ADDED, WANTED, False),
    (Failpoint.PARTITIONS_ANNOUNCED, WANTED, True),
)
"""Where the command is killed, how many partitions the topics have then, and whether their opening is announced."""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:  # partitions cannot be removed from the stack that tests share
    with started(*settings_of(tmp_path / "home", GALATEA_EPOCH_SECONDS="2")) as found:
        file = tmp_path / "stores.yaml"
        file.write_text(yaml.safe_dump({"stores": [{"id": store, "timezone": "UTC"} for store in STORES]}))
        found.run("stores", "load", str(file))
        yield found


def migrated(stack: Stack, crash_at: str = "") -> subprocess.CompletedProcess[str]:
    """The command, once the lease of the one that was killed has expired."""
    ended: list[subprocess.CompletedProcess[str]] = []

    def has_run() -> bool:
        ended.append(
            subprocess.run(
                [sys.executable, "-m", "galatea.cli.main", "migrate", "--settle", str(SETTLE_SECONDS)],
                env={**stack.environment, "GALATEA_KAFKA_PARTITIONS": str(WANTED), "GALATEA_CRASH_AT": crash_at},
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        )
        return STILL_LEASED not in ended[-1].stdout + ended[-1].stderr

    until(has_run, "the lease of a killed command expires")
    return ended[-1]


@pytest.mark.nightly
def test_partitions_are_added_once_wherever_the_command_is_killed(stack: Stack) -> None:
    topics = Topics(stack.settings.kafka.connection)
    with selling(stack, NOTICED_AFTER_MS) as sent:
        for point, present, is_announced in STEPS:
            killed = migrated(stack, point)
            found = partitions_of(stack.settings, topics)

            assert killed.returncode == -9, killed.stderr
            assert set(topics.counts(all_topics()).values()) == {present}
            assert (found.open, found.added) == (BEFORE, WANTED)
            assert found.unfinished is not None
            assert (found.unfinished.opens_at is not None) is is_announced
        last = migrated(stack)
        assert last.returncode == 0, last.stderr
        until_both_read_all(stack, WANTED)
    unpublished = stack.verify()
    stack.rebuild()
    published = stack.verify()
    again = migrated(stack)

    opened = partitions_of(stack.settings, topics)
    assert (opened.original, opened.open, len(opened.growths)) == (BEFORE, WANTED, 1)
    assert closed_from(stack.settings) == 0
    assert set(topics.counts(all_topics()).values()) == {WANTED}
    assert recorded_settings(stack.settings.home)["kafka_partitions"] == str(WANTED)
    assert again.returncode == 0
    assert "nothing to do" in again.stderr
    assert (unpublished.differing, unpublished.totals_differing, unpublished.examples) == (0, None, [])
    assert (published.differing, published.totals_differing, published.examples) == (0, 0, [])
    assert min(unpublished.cells, published.cells) > 0
    assert counted(stack) == len(sent.partitions)
