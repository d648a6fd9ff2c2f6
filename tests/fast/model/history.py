"""One seed, one history: its steps, and how it ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import NamedTuple

from master_dataset.errors import GalateaError
from tests.fast.model.adding import added_by_arrow
from tests.fast.model.rebuilding import rebuilt
from tests.fast.model.rules import Rule
from tests.fast.model.sending import announce, confirm
from tests.fast.model.speed import Crash
from tests.fast.model.steps import SCENES, STEPS, Scene
from tests.fast.model.world import DifferentError, World
from views.control.recompute import RecomputeRequest

MOST_STEPS = 70


class Chosen(NamedTuple):
    """A step, and the seed of what it chooses."""

    name: str
    seed: int


@dataclass
class Ended:
    """`difference`: None if there was none. `lines`: the story, one line for each step that happened."""

    steps: int = 0
    comparisons: int = 0
    difference: str | None = None
    lines: list[str] = field(default_factory=list)


def steps_of(seed: int, aimed: Scene = ()) -> list[Chosen]:
    """Which steps are likely differs from history to history, so that some are made of few kinds.

    `aimed`: a scene that is played somewhere in it.
    """
    chance = Random(seed)
    names = list(STEPS)
    weights = [STEPS[name][1] * chance.choice((0, 1, 1, 2, 4)) for name in names]
    weights[names.index("send")] += 10
    weights[names.index("speed")] += 4
    chosen = chance.choices(names, weights=weights, k=chance.randint(10, MOST_STEPS))
    for scene in chance.sample(SCENES, k=chance.choice((0, 1, 1, 2))):
        places = sorted(chance.choices(range(len(chosen) + 1), k=len(scene)))
        if chance.random() < 0.7:
            places = [places[0]] * len(scene)
        for place, name in reversed(list(zip(places, scene, strict=True))):
            chosen.insert(place, name)
    if aimed:
        place = chance.randint(0, len(chosen))
        chosen[place:place] = aimed
    return [Chosen(name, chance.getrandbits(32)) for name in chosen]


def lived(steps: Sequence[Chosen], without: Rule | None = None, *, by_arrow: bool = False) -> Ended:
    """Let them happen one after the other, comparing after each, and come to rest at the end.

    `by_arrow`: micro-batches are added up by the product's own code, which takes Arrow some milliseconds each.
    """
    world = World(without)
    if by_arrow:
        world.additions = added_by_arrow
    ended = Ended()
    try:
        for name, seed in steps:
            line = STEPS[name][0](world, Random(seed))
            if line is None:
                continue
            ended.steps += 1
            ended.lines.append(line)
            world.compare()
        ended.lines.append("everything comes to rest")
        _rest(world)
    except DifferentError as difference:
        ended.difference = str(difference)
    ended.comparisons = world.comparisons
    return ended


def _rest(world: World) -> None:
    """No transaction is open, everything is read, and a publication covers it: nothing may be missing."""
    while world.partitions.unfinished is not None:
        announce(world, Random(0))
        confirm(world, Random(0))
    for part in world.topic.parts:
        world.topic.end_transaction(world.now, part.number, commit=True)
        part.ahead = max(part.ahead, timedelta(0))
    world.before = None
    world.pass_time(timedelta(hours=3))
    for _ in range(2):
        for part in world.topic.parts:
            world.topic.send(world.now, None, part.number)  # life goes on, and every partition has something to read
        _caught_up(world)
        rebuilt(world, RecomputeRequest(full=world.has_lost), wait=True)
    world.compare()
    _caught_up(world)
    world.compare()
    pointer = world.pointer.read()
    newest = max((part.newest for part in world.topic.parts if part.newest), default=pointer.cut)
    try:
        shown, waiting = world.serving.answer(world.code, pointer)
    except GalateaError as refusal:
        raise DifferentError(f"at rest serving refuses: {type(refusal).__name__}") from refusal
    if waiting or shown != world.oracle.everything(world.code.number):
        late = "" if newest < pointer.cut + timedelta(hours=1) else f", cut {pointer.cut}, newest {newest}"
        world.differs(f"at rest {waiting} events wait, or cells differ{late}")


def _caught_up(world: World) -> None:
    world.speed.restart()
    driver = world.speed.driver
    assert driver is not None
    while world.speed.run(driver, dict.fromkeys(range(len(world.topic.parts)), 1000), Crash.NEVER):
        pass
