"""Sessions of the SQL component over a World, without a network."""

import asyncio
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from serving_layer.keys.key import Caller
from serving_layer.sql.relations import Sources
from serving_layer.sql.results import QueryResult, SqlStateError, SqlValue
from serving_layer.sql.sandbox import Limits, Sandboxes
from serving_layer.sql.session import Session, Sessions, SqlLimits
from serving_layer.store.readers import Readers
from tests.support.world import World
from tests.support.world_api import Asking

Found = TypeVar("Found")
_KEPT: dict[Limits, Sandboxes] = {}
"""Databases that nothing uses, which hold nothing: starting one for each test takes time."""


class AskingSql:
    """One process that answers SQL, and REST beside it. Use it as a context manager."""

    def __init__(self, world: World, limits: SqlLimits | None = None, readers: Readers | None = None) -> None:
        self.rest = Asking(world, readers=readers)
        state = self.rest.app.state
        sources = Sources(
            state.answers,
            state.alerting.alerts,
            state.freshness,
            state.operations.corrections,
            state.products.reader,
        )
        self.sessions = Sessions(sources, world.now, limits)
        self.sessions.sandboxes = _KEPT.setdefault(self.sessions.limits.sandbox, self.sessions.sandboxes)
        self._loop = asyncio.Runner()
        self._own: dict[str | None, Session] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sessions.sandboxes = Sandboxes(Limits(), ())  # the others are for other tests
        self.sessions.close()
        self._loop.close()

    def run(self, awaited: Coroutine[Any, Any, Found]) -> Found:
        """Run something in the loop of the process."""
        return self._loop.run(awaited)

    def open(self, tenant: str | None = "default") -> Session:
        """A new session."""
        return self.sessions.open(Caller("a test", tenant, frozenset({"read"})))

    def answer(
        self, sql: str, *parameters: SqlValue, tenant: str | None = "default", session: Session | None = None
    ) -> QueryResult:
        """The result of a statement, in the session of that tenant unless another is given."""
        if session is None:
            session = self._own.setdefault(tenant, self.open(tenant))
        return self.run(session.execute(sql, parameters))

    def rows(
        self, sql: str, *parameters: SqlValue, tenant: str | None = "default", session: Session | None = None
    ) -> Sequence[tuple[Any, ...]]:
        """The rows of a statement."""
        return self.answer(sql, *parameters, tenant=tenant, session=session).rows

    def refusal(
        self, sql: str, *parameters: SqlValue, tenant: str | None = "default", session: Session | None = None
    ) -> SqlStateError:
        """Why a statement is refused."""
        try:
            found = self.answer(sql, *parameters, tenant=tenant, session=session)
        except SqlStateError as error:
            return error
        raise AssertionError((sql, found))
