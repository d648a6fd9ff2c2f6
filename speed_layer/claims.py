"""Which micro-batch a generation may write next, settled in Cassandra before its first row.

A driver claims a micro-batch by number and ends. Of two drivers that disagree, whoever was slower is refused; a driver
that was paused and wakes up can only write again what was claimed, the same rows. A generation that is replaced can
claim nothing more, so what it may ever have written ends where its last claim does.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from master_dataset.errors import CheckpointOutOfStep, GenerationReplaced
from master_dataset.failpoints import CrashPoint, passing
from views.control.pointer_row import SERIAL
from views.core.cut import utc

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from speed_layer.generation import Offsets

_CLAIM = (
    "UPDATE generations SET claimed = ?, claimed_ends = ? WHERE generation = ? "
    "IF claimed = ? AND replaced = null AND emit_from != null"  # of a generation that is not there all are null
)


class Claims:
    """The claims of every generation."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def claim(self, number: int, micro_batch: int, ends: "Offsets") -> None:
        """Return if this micro-batch, read up to `ends`, is the next of that generation or its last one again.

        GenerationReplaced if it may write nothing more. CheckpointOutOfStep if another micro-batch was claimed:
        checkpoint or Cassandra were put back, or a second process runs with another checkpoint.
        """
        told = orjson.dumps(ends, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS).decode()
        before = micro_batch - 1 if micro_batch else None
        claim = self._session.prepare(_CLAIM)
        if self._session.execute(claim, (micro_batch, told, number, before)).one().applied:
            return
        found = self._state(number)
        if found is not None and found.claimed == micro_batch and found.claimed_ends == told:
            return
        if found is not None and found.replaced:
            raise _replaced(number)
        last = f"{found.claimed} up to {found.claimed_ends}" if found is not None else "nothing"
        message = f"generation {number} of the speed layer is about to write micro-batch {micro_batch} after {last}"
        raise CheckpointOutOfStep(
            message,
            do="end the second speed process; without one: galatea speed restart, galatea down, galatea up --detach",
        )

    def replace(self, number: int, wanted_from: datetime | None = None) -> "Offsets":
        """Let that generation write nothing more; gives back up to where it may have written. It stays readable.

        `wanted_from`: the next one has to write rows from this cut on, if that is older than the published one.
        """
        if wanted_from is None:
            update = self._session.prepare("UPDATE generations SET replaced = true WHERE generation = ? IF EXISTS")
            self._session.execute(update, (number,))
        else:
            update = self._session.prepare(
                "UPDATE generations SET replaced = true, wanted_from = ? WHERE generation = ? IF EXISTS"
            )
            self._session.execute(update, (wanted_from, number))
        passing(CrashPoint.SPEED_REPLACED)
        return self.ends(number)

    def ends(self, number: int) -> "Offsets":
        """Up to where that generation may have written by now."""
        found = self._state(number)
        if found is None or found.claimed_ends is None:
            return {}
        return {topic: {int(n): at for n, at in own.items()} for topic, own in orjson.loads(found.claimed_ends).items()}

    def wanted_from(self, number: int) -> datetime | None:
        """From which cut on the generation after that one has to write rows, if anybody wants that."""
        query = self._session.prepare("SELECT wanted_from FROM generations WHERE generation = ?")
        found = self._session.execute(query, (number,)).one()
        return utc(found.wanted_from) if found is not None and found.wanted_from else None

    def is_replaced(self, number: int) -> bool:
        """Whether that generation may write nothing more, as far as is known: only `claim` is certain."""
        query = self._session.prepare("SELECT replaced FROM generations WHERE generation = ?")
        found = self._session.execute(query, (number,)).one()
        return found is not None and bool(found.replaced)

    def refuse_replaced(self, number: int) -> None:
        """GenerationReplaced if that generation may write nothing more, as far as is known."""
        if self.is_replaced(number):
            raise _replaced(number)

    def _state(self, number: int) -> Any:  # noqa: ANN401 - a driver's row
        """Read at SERIAL: a claim whose outcome was unknown is settled by it."""
        query = self._session.prepare("SELECT claimed, claimed_ends, replaced FROM generations WHERE generation = ?")
        query.consistency_level = SERIAL
        return self._session.execute(query, (number,)).one()


def _replaced(number: int) -> GenerationReplaced:
    message = f"generation {number} of the speed layer was replaced and writes nothing more"
    return GenerationReplaced(message, do="nothing: its supervisor starts the next generation")
