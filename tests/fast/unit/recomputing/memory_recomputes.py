"""Records of recomputes, in memory."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from master_dataset.errors import UnknownNameError
from views.control.recompute import PlanNumber, Recompute, RecomputeRequest, State

REQUEST = RecomputeRequest(views=("sales",))


class MemoryRecomputes:
    """Stands in for `Recomputes`."""

    def __init__(self) -> None:
        self.rows: dict[str, Recompute] = {}

    def create(self, recompute: Recompute) -> None:
        self.rows.setdefault(recompute.id, recompute)

    def find(self, id_: str) -> Recompute:
        if id_ not in self.rows:
            raise UnknownNameError("recompute", id_, ())
        return self.rows[id_]

    def update(self, id_: str, state: State, **values: Any) -> None:
        self.rows[id_] = replace(self.rows[id_], state=state, **values)

    def plan(self, seen: Recompute, plan: PlanNumber) -> bool:
        is_seen = self.rows[seen.id].plan == seen.plan
        if is_seen:
            self.rows[seen.id] = replace(self.rows[seen.id], plan=plan)
        return is_seen

    def forget_portions(self, id_: str) -> None:
        self.rows[id_] = replace(self.rows[id_], portions={})

    def ask(self, id_: str, state: State = "asked", request: RecomputeRequest = REQUEST) -> None:
        """Record a request for it."""
        self.create(Recompute(id_, request, "operator", "a test", datetime(2026, 11, 21, tzinfo=UTC), state))
