"""What an operator sets going in a World: a recompute is written down, a rollback is done at once."""

from datetime import UTC
from typing import TYPE_CHECKING

from master_dataset.errors import RequestError, UnknownNameError
from serving_layer.admin.publications import RecomputeRecord, RollbackResult
from tests.support.world import World
from views.control.recompute import RecomputeRequest

if TYPE_CHECKING:
    from master_dataset.errors import GalateaError


class WorldRecomputing:
    """Recomputing. `refuses`: what is raised instead."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[RecomputeRequest] = []
        self.refuses: GalateaError | None = None

    def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        if self.refuses:
            raise self.refuses
        self.asked.append(request)
        id_ = f"recompute-{len(self.asked)}"
        now = self.world.now().astimezone(UTC)
        self.world.recomputes[id_] = RecomputeRecord(
            id_, "asked", request, by, reason, now, now, None, None, None, None, None
        )
        return id_


class WorldRollingBack:
    """RollingBack. `refuses`: what is raised instead."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.refuses: GalateaError | None = None

    def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RollbackResult:
        assert why
        assert by
        if self.refuses:
            raise self.refuses
        known = {each.publication: each for each in self.world.history if each.publication > 0}
        if number not in known:
            raise UnknownNameError("publication", str(number), map(str, known))
        old = known[number]
        now = self.world.pointer
        if number == now.publication:
            raise RequestError(f"publication {number} is what readers see", do="galatea publications")
        told = RollbackResult(now.publication + 1, number, old.cut, now.generation, len(self.world.manifests), dry_run)
        if not dry_run:
            self.world.restore(number)
        return told
