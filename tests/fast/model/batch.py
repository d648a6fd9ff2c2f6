"""Rebuilds in the model: several at once, each a few steps long, so that anything may happen in between."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from cassandra import OperationTimedOut

from batch_layer.fence import Fence, Marked
from batch_layer.plan import Plan, Planner
from batch_layer.publish import generation_to_publish, hand_over, publish, refuse_partial
from master_dataset.errors import GalateaError, PublicationMovedError
from master_dataset.kafka.connection import KafkaConnection
from tests.fast.model.archive import Archived, Row
from tests.fast.model.facts import SKEW, TIMINGS, TOPIC, Code, contributions
from tests.fast.model.rules import Rule
from tests.fast.model.tables import Outcome
from views.control.generation import Offsets
from views.control.publication import Pointer, Publication
from views.control.recompute import RecomputeRequest
from views.core.cells import CellKey, write_block

if TYPE_CHECKING:
    from tests.fast.model.world import World
    from views.core.cells import States

_NO_MARKERS = {Rule.MARKERS, Rule.MARKERS_NOT_FIRST_OFFSET}
Block = tuple[str, str, str, date]
"""View, store, run, day."""
Manifest = dict[tuple[str, date], str]


@dataclass
class Run:
    """One rebuild. `marked`: None as long as the clock has not passed the cut."""

    name: str
    request: RecomputeRequest
    code: Code
    base: Pointer
    versions: dict[str, int]
    generation: int
    cut: datetime
    marked: Marked | None = None
    plan: Plan | None = None
    publication: Publication | None = None


class NotYetError(Exception):
    """The run has to wait."""


@dataclass
class Batch:
    """What runs have written, under their names."""

    world: "World"
    runs: dict[int, Run] = field(default_factory=dict)
    blocks: dict[Block, str] = field(default_factory=dict)
    run_days: dict[tuple[str, str], dict[date, frozenset[str]]] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=lambda: {"": {}})
    begun: int = 0

    @property
    def skew(self) -> timedelta:
        """How far clocks may differ, as rebuilds believe."""
        return SKEW if self.world.keeps(Rule.SKEW) else timedelta(0)

    def begin(self, slot: int, request: RecomputeRequest, *, wait: bool) -> None:
        """Read the published row and choose a cut. GalateaError if the product refuses."""
        world = self.world
        base = world.pointer.read()
        published = world.pointer.publication(base.publication)
        current = world.code.definitions
        if request.is_partial and (world.keeps(Rule.PARTIAL_SAME_DEFINITIONS) or not base.publication):
            refuse_partial(base, current)
        generation = base.generation
        if world.keeps(Rule.CHANGED_GENERATION):
            generation = generation_to_publish(world.generations, base, current)
            hand_over(world.generations, base, generation)
        self.begun += 1
        by_run = world.keeps(Rule.CELLS_BY_RUN)
        name = f"run-{self.begun}" if by_run else f"publication-{base.publication + 1}"
        versions = dict(published.master_versions) if published else {}
        keeps_cut = request.is_partial and base.publication and world.keeps(Rule.PARTIAL_CUT)
        fence = Fence(
            KafkaConnection("memory"),
            lambda: world.partitions,
            (TOPIC,),
            TIMINGS.epoch,
            self.skew,
            now=lambda: world.now,
        )
        cut = base.cut if keeps_cut else max(fence.next_cut() if wait else fence.newest_cut(), base.cut)
        self.runs[slot] = Run(name, request, world.code, base, versions, generation, cut)
        if keeps_cut:
            self.runs[slot].marked = Marked(cut, {})

    def mark(self, run: Run) -> None:
        """Write the markers. NotYetError before the clock has passed the cut; the run ends if a stamp is too early."""
        world = self.world
        if world.now < run.cut + self.skew:
            raise NotYetError
        if self.world.without in _NO_MARKERS:
            if any(world.now + part.ahead < run.cut + self.skew for part in world.topic.parts):
                raise NotYetError  # found out in another way: that a clock is behind is not what this rule is about
            ends = {part: end - 1 for part, end in world.topic.ends().items() if end}
            run.marked = Marked(run.cut, {TOPIC: self._first_offsets(run.cut) if world.keeps(Rule.MARKERS) else ends})
            return
        markers = [world.topic.send(world.now, None, part.number) for part in world.topic.parts]
        if any(each.received_at < run.cut + self.skew for each in markers) and world.keeps(Rule.MARKER_STAMP):
            raise NotYetError
        run.marked = Marked(run.cut, {TOPIC: {each.partition: each.offset for each in markers}})

    def _archived(self) -> Offsets:
        """How far the archive has come; where there are no markers, by what it was given or not."""
        if self.world.without in _NO_MARKERS:
            return {TOPIC: self.world.archive.at}
        return self.world.archive.positions()

    def _first_offsets(self, cut: datetime) -> dict[int, int]:
        found: dict[int, int] = {}
        for part in self.world.topic.parts:
            later = [each.offset for each in part.records if each.received_at >= cut]
            if later or part.records:
                found[part.number] = later[0] if later else len(part.records) - 1
        return found

    def compute(self, run: Run) -> None:
        """Plan and write the cells. NotYetError before the archive has passed the markers."""
        world = self.world
        if run.marked is None:
            self.mark(run)
        assert run.marked is not None
        if not run.marked.passed_by(self._archived()):
            raise NotYetError
        masters = {TOPIC: Archived.of(world.archive, steps_back=world.keeps(Rule.STEPPED_BACK))}
        base = run.base
        if not world.keeps(Rule.CHANGED_RECOMPUTED):
            base = Pointer(base.publication, base.cut, base.manifest, base.generation, run.code.definitions)
        planner = Planner(run.code.views, masters, base, run.versions, TIMINGS.epoch)
        plan = planner.plan(run.request, run.cut, run.generation, run.code.definitions)
        run.plan = plan
        manifest = dict(self.manifests[run.base.manifest])
        for view, touched in plan.work:
            days = touched
            if not world.keeps(Rule.TOUCHED_LATE) and run.base.publication and not run.request.is_partial:
                days = {day for day in touched if day >= (run.base.cut - TIMINGS.epoch).date()}
            self._write(run, view.name, days, masters[TOPIC].rows)
            manifest |= {(view.name, day): run.name for day in days}
        self.manifests[run.name] = manifest
        versions = plan.master_versions if world.keeps(Rule.PARTIAL_VERSIONS) else {TOPIC: masters[TOPIC].version}
        run.publication = Publication(
            run.base.publication + 1,
            plan.cut,
            run.name,
            plan.generation,
            world.now,
            "model",
            "",
            plan.definitions,
            versions,
        )

    def _write(self, run: Run, name: str, days: set[date], rows: Sequence[Row]) -> None:
        [view] = [each for each in run.code.views if each.name == name]
        cells: dict[tuple[str, date], dict[CellKey, States]] = {}
        of_days = [row for row in rows if row.day in days]
        if not self.world.keeps(Rule.CUT_SELECTS_RESULTS):
            of_days = [row for row in of_days if self.world.is_before(row.record, run.cut)]
        for row in self.world.firsts(of_days):
            if not self.world.is_before(row.record, run.cut):
                continue
            for of, key, states in contributions(run.code, row.fact):
                if of is view:
                    own = cells.setdefault((row.fact.store, row.day), {})
                    own[key] = view.merge(own[key], states) if key in own else states
        for (store, day), found in cells.items():
            self.blocks[name, store, run.name, day] = write_block(view, sorted(found.items()))
        stores = {day: frozenset(store for store, of in cells if of == day) for day in days}
        self.run_days[run.name, name] = {**self.run_days.get((run.name, name), {}), **stores}

    def publish(self, run: Run, outcome: Outcome) -> str:
        """Switch, and check that what the run says of it is true. Gives back what it says."""
        world = self.world
        assert run.publication is not None
        world.tables.outcome = outcome
        try:
            said = self._switch(run, run.publication)
        except (PublicationMovedError, OperationTimedOut):  # the latter if nothing was published at all
            said = False
        found = world.tables.history.get(run.publication.number)
        applied = found is not None and found.manifest == run.name
        if world.keeps(Rule.CELLS_BY_RUN) and said != applied:
            world.differs(f"the run says {said} of its switch, and it is {applied}")
        if applied and not world.keeps(Rule.NO_CLEANING):
            used = set(self.manifests[run.name].values())
            for block in [block for block in self.blocks if block[2] not in used]:
                del self.blocks[block]
        if applied:
            world.published(run.publication)
        return "published" if said else "refused"

    def _switch(self, run: Run, new: Publication) -> bool:
        world = self.world
        unsettled = {Rule.OUTCOME_SETTLED: False, Rule.OUTCOME_NOT_YES: True}
        if world.without in unsettled:
            try:
                return world.pointer.publish(run.base, new)
            except OperationTimedOut:
                return unsettled[world.without]
        publish(world.pointer, run.base, new)
        return True


REFUSALS = (GalateaError, NotYetError)
