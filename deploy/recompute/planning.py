"""Reaches a cut and says what would be recomputed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from batch_layer.fence import Fence
from batch_layer.recompute.plan import Plan, Planner
from batch_layer.recompute.touched import Master
from deploy.cassandra import session_of
from deploy.definitions import definitions
from deploy.recompute.covering import generation_to_publish, refuse_gap, refuse_partial
from master_dataset.archive.positions import ArchivePositions
from master_dataset.delta.tables import MasterTables
from master_dataset.errors import BrokerUnavailable, NothingArchived
from speed_layer.generation import Generations
from views import registered_views, view_named
from views.control.pointer_row import PointerRow
from views.control.publication import Pointer
from views.control.recompute_request import RecomputeRequest
from views.core.cut import ceil_to, floor_to

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings


class Steps(Protocol):
    """What a terminal, or a demo, draws."""

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total`, working on `what`."""


def fence_of(settings: "Settings") -> Fence:
    """The fence of this deployment."""
    topics = sorted({view.source.topic for view in registered_views()})
    return Fence(settings.kafka_bootstrap, topics, settings.epoch, settings.skew)


@dataclass(frozen=True)
class Planning:
    """One deployment's plans. `settings` says where everything is."""

    settings: "Settings"

    @property
    def _session(self) -> "Session":
        return session_of(self.settings.cassandra_address)

    def plan(self, asked: RecomputeRequest, progress: Steps) -> Plan:
        """Reach a cut and say what would be recomputed. Changes nothing but for the markers.

        Without Kafka only what the published cut covers can be recomputed: BrokerUnavailable if that is nothing.
        """
        for name in asked.views:
            view_named(name)
        pointer = PointerRow(self._session)
        base = pointer.read()
        published = pointer.publication(base.publication)
        current = definitions(self.settings)
        if asked.is_partial:
            refuse_partial(base, current)
        generation = generation_to_publish(Generations(self._session), base, current)
        versions: Mapping[str, int] = published.master_versions if published else {}
        if asked.is_partial:
            plan = self._planned(asked, base, versions, generation, base.cut)
            if not plan.days:
                raise NothingArchived("no events are archived of what is asked for", do="galatea rebuild, without days")
            return plan
        try:
            cut = self._reach(base, progress, wait=asked.wait)
        except BrokerUnavailable:
            if not base.publication or asked.wait or base.cut != floor_to(base.cut, self.settings.epoch):
                raise
            plan = self._planned(asked, base, versions, generation, base.cut)
            if not plan.days:
                raise
            progress.step(0, 0, f"Kafka does not answer: at the published cut, {base.cut:%H:%M:%S} UTC")
            return plan
        return self._planned(asked, base, versions, generation, cut)

    def _planned(
        self, asked: RecomputeRequest, base: Pointer, versions: Mapping[str, int], generation: int, cut: datetime
    ) -> Plan:
        refuse_gap(Generations(self._session), generation, cut)
        read_at = datetime.now(UTC)
        tables = MasterTables(self.settings.master_uri)
        topics = {view.source.topic for view in registered_views()}
        masters = {topic: Master.newest(tables.path(topic)) for topic in sorted(topics)}
        gap = timedelta(seconds=self.settings.visit_gap_seconds)
        planner = Planner(registered_views(), masters, base, versions, self.settings.epoch, gap)
        current = definitions(self.settings)
        return replace(planner.plan(asked, cut, generation, current), read_at=read_at)

    def _reach(self, base: Pointer, progress: Steps, *, wait: bool) -> datetime:
        fence = fence_of(self.settings)
        published = ceil_to(base.cut, self.settings.epoch)  # epochs may have been shorter
        cut = max(fence.next_cut() if wait else fence.newest_cut(), published)  # clocks may step back
        progress.step(0, 0, f"cut at {cut:%H:%M:%S} UTC")
        marked = fence.mark(cut)
        fence.wait(marked, ArchivePositions(self._session).read, "archive", self.settings.cut_timeout)
        return cut


def is_published(plan: Plan) -> bool:
    """Whether the published row already says all that the plan would."""
    return bool(plan.base.publication) and not plan.days and plan.cut == plan.base.cut
