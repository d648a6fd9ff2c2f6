"""A rollback that is asked for over REST: switched at once, or refused."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from deploy.recompute.launch import answering
from deploy.recompute.rollback import Rollback
from serving_layer.admin.rollbacks import RolledBack

if TYPE_CHECKING:
    from deploy.settings import Settings

log = structlog.get_logger()


@dataclass(frozen=True)
class RestRollback:
    """RollingBack. Builds no generation of the speed layer: that takes minutes, and a caller would not wait so long."""

    settings: "Settings"

    def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RolledBack:
        """RollbackTooFar where the command would have to build a generation first."""
        with answering():
            done = Rollback(self.settings, builds=False).run(number, why, by, self, dry_run=dry_run)
        return RolledBack(done.publication, done.restores, done.cut, done.generation, done.partitions, done.dry_run)

    @staticmethod
    def step(done: int, total: int, what: str) -> None:
        """Goes to the log."""
        log.info("rollback.step", done=done, total=total, what=what)
