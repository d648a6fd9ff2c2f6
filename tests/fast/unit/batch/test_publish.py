"""A switch whose outcome is unknown is settled by the history: it is ours, somebody else's, or it was never made."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cassandra import OperationTimedOut
from cassandra.cluster import NoHostAvailable

from batch_layer.publish import publish as switch
from master_dataset.errors import PublicationMovedError
from views.control.publication import Pointer, PointerRow, Publication

NOON = datetime(2026, 3, 7, 12, 0, tzinfo=UTC)
BASE = Pointer(3, NOON, "", 1, {})
NEW = Publication(4, NOON, "ours", 1, NOON, "us", "why")


class Store:
    """Answers the switch with `outcome`; its history says that publication 4 is of the run `history`, if of any."""

    def __init__(self, outcome: object, history: str | None, generation: int = 1) -> None:
        self._outcome, self._history, self._generation = outcome, history, generation
        self.pointed: list[Any] = []
        self.switches = 0

    def prepare(self, query: str) -> Any:
        return SimpleNamespace(text=query)

    def execute(self, query: Any, values: Sequence[Any] | None = None) -> Any:
        if query.text.startswith("SELECT current,"):
            now = SimpleNamespace(
                current=3,
                current_cut=NOON,
                current_manifest="",
                current_generation=self._generation,
                served_generation=None,
                current_definitions={},
            )
            return SimpleNamespace(one=lambda: now)
        if query.text.startswith("SELECT definitions"):
            return SimpleNamespace(one=lambda: SimpleNamespace(definitions={}))
        if query.text.startswith("SELECT"):
            row = self._history and SimpleNamespace(
                publication=4,
                cut=NOON,
                manifest=self._history,
                generation=1,
                published_at=NOON,
                published_by="",
                why="",
                definitions={},
                master_versions={},
                stats="{}",
                collected_at=None,
            )
            return SimpleNamespace(one=lambda: row)
        self.switches += 1
        if isinstance(self._outcome, Exception):
            raise self._outcome
        self.pointed = list(values or ())
        return SimpleNamespace(one=lambda: SimpleNamespace(applied=self._outcome))


def publish(store: Store) -> None:
    switch(PointerRow(cast("Any", store)), BASE, NEW)


@pytest.mark.parametrize("outcome", [True, False, OperationTimedOut(), NoHostAvailable("none is left", {})])
def test_a_switch_that_the_history_knows_as_ours_was_made(outcome: object) -> None:
    store = Store(outcome, history="ours")

    publish(store)

    assert store.switches == 1


@pytest.mark.parametrize("outcome", [False, OperationTimedOut(), NoHostAvailable("none is left", {})])
def test_a_switch_of_somebody_else_is_not_ours(outcome: object) -> None:
    store = Store(outcome, history="theirs")

    with pytest.raises(PublicationMovedError):
        publish(store)

    assert store.switches == 1


def test_a_switch_that_was_never_made_is_no_move_of_somebody_else() -> None:
    with pytest.raises(NoHostAvailable):
        publish(Store(NoHostAvailable("none is left", {}), history=None))


def test_a_generation_that_took_over_while_the_run_computed_is_kept_by_the_publication() -> None:
    store = Store(outcome=True, history=None, generation=2)

    publish(store)

    generation, seen = store.pointed[3:5], store.pointed[6:9]
    assert (generation, seen) == ([2, None], [3, 2, None])
