"""What archive, speed and readers do, and what befalls them."""

from random import Random
from typing import TYPE_CHECKING

from tests.fast.model.facts import CODES
from tests.fast.model.rebuilding import publish, rebuild, roll_back
from tests.fast.model.sending import send
from tests.fast.model.speed import Crash

if TYPE_CHECKING:
    from tests.fast.model.world import World


def archive(world: "World", chance: Random) -> str | None:
    """It reads some of one partition, or all there is."""
    if chance.random() < 0.5:
        read = [world.archive.read(part, 1000) for part in range(len(world.topic.parts))]
        return "the archive reads everything" if any(read) else None
    part, most = chance.randrange(len(world.topic.parts)), chance.randint(1, 4)
    again = 2 if chance.random() < 0.1 else 0
    if not world.archive.read(part, most, again=again):
        return None
    return f"the archive reads partition {part} to {world.archive.at[part]}{', some once more' if again else ''}"


def speed(world: "World", chance: Random) -> str | None:
    """A micro-batch, now and then with a crash."""
    crash = Crash.NEVER if chance.random() < 0.8 else Crash(chance.randrange(Crash.NEVER))
    most = {part: chance.choice((0, 1, 3, 1000, 1000)) for part in range(len(world.topic.parts))}
    if world.speed.old is not None and chance.random() < 0.5:
        world.speed.run(world.speed.old, most, Crash.NEVER)
        return "the old driver reads on"
    world.speed.restart()
    driver = world.speed.driver
    assert driver is not None
    if not world.speed.run(driver, most, crash):
        return None
    took = f"reads to {driver.at}" if crash is Crash.NEVER else f"crashes: {crash.name}"
    return f"speed, generation {driver.generation.number}, batch {driver.number} {took}"


def speed_crashes(world: "World", _: Random) -> str | None:
    """A micro-batch writes its rows, and ends before its positions."""
    world.speed.restart()
    driver, most = world.speed.driver, dict.fromkeys(range(len(world.topic.parts)), 1000)
    if driver is None or not world.speed.run(driver, most, Crash.BEFORE_POSITIONS):
        return None
    return f"speed, generation {driver.generation.number}, crashes behind its rows"


def speed_a_little(world: "World", chance: Random) -> str | None:
    """The newest generation reads one record."""
    world.speed.restart()
    driver, part = world.speed.driver, chance.randrange(len(world.topic.parts))
    most = {each: int(each == part) for each in range(len(world.topic.parts))}
    if driver is None or not world.speed.run(driver, most, Crash.NEVER):
        return None
    return f"speed, generation {driver.generation.number}, reads to {driver.at}"


def lose_checkpoint(world: "World", _: Random) -> str | None:
    """Speed has to begin another generation."""
    if world.speed.driver is None:
        return None
    world.speed.begin()
    assert world.speed.driver is not None
    return f"speed begins generation {world.speed.driver.generation.number}"


def replace(world: "World", _: Random) -> str | None:
    """The operator wants another generation."""
    newest = world.generations.greatest()
    if not newest:
        return None
    world.generations.claims.replace(newest)
    return f"generation {newest} is replaced by hand"


def deploy(world: "World", _: Random) -> str:
    """The other definitions are installed."""
    world.code = CODES[1 - world.code.number]
    return f"definitions {world.code.number} are installed"


def ask(world: "World", chance: Random) -> str:
    """A reader asks for everything, and something happens before the answer is complete."""
    between_reads = (speed, speed, rebuild, rebuild, archive, send, lose_checkpoint, roll_back, publish)
    between = [chance.choice(between_reads) for _ in range(chance.randint(0, 3))]
    lines: list[str] = []

    def meanwhile() -> None:
        if between and (line := between.pop()(world, chance)):
            lines.append(line)

    said = world.requests.ask(meanwhile, replica=chance.random() if chance.random() < 0.2 else None)
    return f"a reader asks: {said}" + "".join(f"; meanwhile {line}" for line in lines)
