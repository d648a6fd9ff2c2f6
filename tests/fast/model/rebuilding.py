"""What rebuilds do, one step or all at once."""

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from batch_layer.recompute.rollback import covers
from tests.fast.model.batch import REFUSALS, Run
from tests.fast.model.facts import TIMINGS
from tests.fast.model.rules import Rule
from tests.fast.model.tables import Outcome
from views.control.publication import Publication
from views.control.recompute import RecomputeRequest

if TYPE_CHECKING:
    from tests.fast.model.world import World


def begin(world: "World", chance: Random) -> str | None:
    """A rebuild starts."""
    slot = chance.randrange(2)
    request = RecomputeRequest(full=chance.random() < 0.1)
    if chance.random() < 0.25 and world.facts:
        day = chance.choice(world.facts).happened_at.date()
        views = (chance.choice(world.code.views).name,) if chance.random() < 0.5 else ()
        request = RecomputeRequest(views=views, first=day, last=day)
    try:
        world.batch.begin(slot, request, wait=chance.random() < 0.3)
    except REFUSALS as refusal:
        return f"a rebuild is refused: {type(refusal).__name__}"
    run = world.batch.runs[slot]
    return f"{run.name} begins on publication {run.base.publication}, cut {run.cut:%d %H:%M}, {request}"


def mark(world: "World", chance: Random) -> str | None:
    """A rebuild writes its markers."""
    run = _run(world, chance)
    if run is None or run.marked:
        return None
    try:
        world.batch.mark(run)
    except REFUSALS:
        return None
    return f"{run.name} writes its markers"


def compute(world: "World", chance: Random) -> str | None:
    """A rebuild computes what it has to."""
    run = _run(world, chance)
    if run is None or run.publication:
        return None
    try:
        world.batch.compute(run)
    except REFUSALS:
        return None
    assert run.plan
    return f"{run.name} computes {', '.join(f'{day:%d}' for day in sorted(run.plan.days))}"


def publish(world: "World", chance: Random) -> str | None:
    """A rebuild switches readers to its cells."""
    run = _run(world, chance)
    if run is None or run.publication is None:
        return None
    outcome = Outcome.REPORTED if chance.random() < 0.5 else chance.choice(list(Outcome))
    return _publish(world, run, outcome)


def _publish(world: "World", run: Run, outcome: Outcome) -> str:
    world.batch.runs = {slot: each for slot, each in world.batch.runs.items() if each is not run}
    before = world.pointer.read()
    said = world.batch.publish(run, outcome)
    if not world.keeps(Rule.ONE_SWITCH):
        world.before = before
    return f"{run.name} switches to its cells ({outcome.value}): {said}"


def switch_rest(world: "World", _: Random) -> str | None:
    """Only where views are not switched at once."""
    if world.before is None:
        return None
    world.before = None
    return "the second view is switched, too"


def _run(world: "World", chance: Random) -> Run | None:
    runs = list(world.batch.runs.values())
    return chance.choice(runs) if runs else None


def end_run(world: "World", chance: Random) -> str | None:
    """A rebuild is killed."""
    run = _run(world, chance)
    if run is None:
        return None
    world.batch.runs = {slot: each for slot, each in world.batch.runs.items() if each is not run}
    return f"{run.name} is killed"


def rebuild_part(world: "World", chance: Random) -> str | None:
    """A part is recomputed, and published at the published cut."""
    if not world.facts:
        return None
    day = chance.choice(world.facts).happened_at.date()
    views = (chance.choice(world.code.views).name,) if chance.random() < 0.5 else ()
    return rebuilt(world, RecomputeRequest(views=views, first=day, last=day), wait=chance.random() < 0.5)


def rebuild(world: "World", chance: Random) -> str | None:
    """A whole rebuild with nothing in between."""
    return rebuilt(world, RecomputeRequest(), wait=chance.random() < 0.5)


def rebuilt(world: "World", request: RecomputeRequest, *, wait: bool) -> str:
    """Begin, let the archive read, compute, publish."""
    try:
        world.batch.begin(2, request, wait=wait)
        run = world.batch.runs[2]
        if world.now < run.cut + world.batch.skew:
            world.pass_time(run.cut + world.batch.skew - world.now)
        if run.marked is None:
            world.batch.mark(run)
        for part in range(len(world.topic.parts)):
            world.archive.read(part, 1000)
        world.batch.compute(run)
    except REFUSALS as refusal:
        world.batch.runs.pop(2, None)
        return f"a rebuild is refused: {type(refusal).__name__}"
    assert run.plan
    return f"cut {run.cut:%d %H:%M}, days {sorted(f'{day:%d}' for day in run.plan.days)}; " + _publish(
        world, run, Outcome.REPORTED
    )


def roll_back(world: "World", chance: Random) -> str | None:
    """Publish again what an older publication said, if a generation covers it."""
    now = world.pointer.read()
    older = [each for number, each in world.tables.history.items() if 0 < number < now.publication]
    if not older or not now.generation:
        return None
    to = chance.choice(older[-3:])
    covered = covers(world.generations.find(now.generation), to)
    if world.now - to.cut > TIMINGS.ttl - timedelta(days=1) or not (covered or not world.keeps(Rule.ROLLBACK_COVERED)):
        return None
    new = Publication(
        now.publication + 1,
        to.cut,
        to.manifest,
        now.generation,
        world.now,
        "model",
        "rollback",
        to.definitions,
        to.master_versions,
    )
    assert world.pointer.publish(now, new)
    world.rolled_back()
    world.published(new)
    return f"publication {new.number} says again what {to.publication} said, cut {to.cut:%d %H:%M}"


def lose_block(world: "World", chance: Random) -> str | None:
    """Cassandra loses a block that is published."""
    named = set(world.batch.manifests[world.pointer.read().manifest].values())
    blocks = sorted(block for block in world.batch.blocks if block[2] in named)
    if not blocks:
        return None
    lost = chance.choice(blocks)
    del world.batch.blocks[lost]
    world.has_lost = True
    return f"the block {lost} is lost"
