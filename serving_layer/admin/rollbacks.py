"""Rollbacks as operators ask for them over REST: what an older publication said is published again."""

import asyncio
from datetime import datetime
from typing import NamedTuple, Protocol

from serving_layer.errors import TooBusy
from serving_layer.query.timestamps import stamp
from serving_layer.responses import publications as responses


class RolledBack(NamedTuple):
    """`publication`: the new one, or what it would be; `restores`: the old one, at whose `cut` readers are then.

    `generation`: whose speed rows they see. `partitions`: how many pairs of view and day have other cells by that.
    """

    publication: int
    restores: int
    cut: datetime
    generation: int
    partitions: int
    dry_run: bool

    def response(self) -> responses.RolledBack:
        """As the API shows it."""
        return responses.RolledBack(
            publication=self.publication,
            restores=self.restores,
            cut=stamp(self.cut),
            generation=self.generation,
            partitions=self.partitions,
            dry_run=self.dry_run,
        )


class RollingBack(Protocol):
    """Does one. Blocks until readers are switched."""

    def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RolledBack:
        """Publish again what publication `number` said. Raises OperatorErrors, and UnknownName."""


class Rollbacks:
    """One at a time, beside the event loop: a second one would only find the pointer moved."""

    def __init__(self, rolling_back: RollingBack) -> None:
        """`rolling_back` does the work, in a thread."""
        self._rolling_back = rolling_back
        self._is_busy = False

    async def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RolledBack:
        """As RollingBack. TooBusy while another one is under way."""
        if self._is_busy:
            raise TooBusy("A rollback is under way already.", do="Ask again; `GET /v1/publications` shows its end.")
        self._is_busy = True
        try:
            return await asyncio.to_thread(self._rolling_back.run, number, why, by, dry_run=dry_run)
        finally:
            self._is_busy = False
