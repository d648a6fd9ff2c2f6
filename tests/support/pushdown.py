"""A server of SQL that reads all rows of each table: what push-down must never change the result of."""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import replace

from serving_layer.sql.table import EVERYTHING, Needed
from tests.support.world_sql import AskingSql


class ReadingEverything(AskingSql):
    """Answers the same, without bounds."""

    def __enter__(self) -> "ReadingEverything":
        async def needed(
            _sql: str, _of: Hashable, find: Callable[[], Awaitable[Sequence[Needed]]]
        ) -> Sequence[Needed]:
            return [replace(each, span=EVERYTHING, values={}) for each in await find()]

        self.sessions.needed = needed  # type: ignore[method-assign]  # of this server alone
        super().__enter__()
        return self
