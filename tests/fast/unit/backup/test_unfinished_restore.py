"""While a backup is being restored, nothing reads or writes numbers: half of them would be taken for all."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from deploy.batch import create_recompute, job_of, ledgers_of, rollback_of, verification_of
from deploy.local.rights import RIGHTS
from deploy.services import sql
from deploy.settings import Settings
from galatea.cli.compact import compact
from galatea.cli.dead_letters import replay
from galatea.cli.export import export
from galatea.cli.gc import gc
from master_dataset.errors import OperatorError
from views.control.recompute import RecomputeRequest

ATTEMPTS: dict[str, Callable[[], object]] = {
    "compact": compact,
    "dead-letters replay": lambda: replay(["pos_transactions/0/7"]),
    "export": export,
    "gc": gc,
    "ledgers": lambda: ledgers_of(Settings()),
    "rebuild": lambda: create_recompute(Settings(), RecomputeRequest(), why="", by=""),
    "recompute": lambda: job_of(Settings(), "mine", Mock()),
    "rollback": lambda: rollback_of(Settings()),
    "sql": lambda: sql.run(Mock(), Settings()),
    "verify": lambda: verification_of(Settings()),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_else_works_with_the_tables(attempt: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refuse = Mock(side_effect=OperatorError("a restore of the backup `b1` is running", do="let it finish"))
    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    monkeypatch.setattr("deploy.cassandra.refuse_wrong_clock", Mock())
    for module in ("deploy.backup.mark", "deploy.batch", "deploy.services.sql"):
        monkeypatch.setattr(f"{module}.refuse_unfinished_restore", refuse)
    for module in ("deploy.cassandra", "deploy.batch", "deploy.services.sql"):
        monkeypatch.setattr(f"{module}.session_of", Mock())

    with pytest.raises(OperatorError, match="a restore of the backup `b1` is running"):
        ATTEMPTS[attempt]()


@pytest.mark.parametrize("process", ["archive", "speed", "alerts", "dispatcher", "api", "sql", "batch"])
def test_every_process_may_read_whether_a_backup_is_being_restored(process: str) -> None:
    rights = RIGHTS[process]

    assert "leases" in {*rights.reads, *rights.writes}
