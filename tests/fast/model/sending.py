"""What senders and brokers do, and how time passes. What cannot happen now does nothing."""

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

from master_dataset.kafka.growth import Growth, Partitions, next_opening
from tests.fast.model.facts import PARTITIONS, SKEW, STORES, TIMINGS, TOPIC, Fact
from tests.fast.model.rules import Rule
from views.core.cut import UNIX_EPOCH

if TYPE_CHECKING:
    from tests.fast.model.world import World

_MINUTE = timedelta(minutes=1)
_AGES = ((8, 0, 10), (4, 60, 300), (3, 1300, 1379), (3, 1381, 1440), (3, 1500, 3600), (3, -59, -30), (1, -90, -61))
"""Weight, and from how many to how many minutes ago it happened: up to A, and past it; ahead, up to F and past."""


def send(world: "World", chance: Random) -> str:
    """A till sends a receipt, soon or late, maybe by a clock that is fast."""
    _, low, high = chance.choices(_AGES, weights=[weight for weight, _, _ in _AGES])[0]
    happened = (world.now - chance.randint(low, high) * _MINUTE).replace(second=0, microsecond=0)
    fact = Fact(f"e{len(world.facts)}", chance.choice(STORES), happened, chance.randint(1, 12), chance.choice("ab"))
    world.facts.append(fact)
    return _sent(world, chance, fact, "sends")


def send_ahead(world: "World", chance: Random) -> str:
    """Its clock is as fast as is just allowed."""
    happened = (
        world.now + timedelta(minutes=chance.choice((chance.randint(45, 59), chance.randint(61, 170))))
    ).replace(second=0, microsecond=0)
    fact = Fact(f"e{len(world.facts)}", chance.choice(STORES), happened, chance.randint(1, 12), chance.choice("ab"))
    world.facts.append(fact)
    return _sent(world, chance, fact, "sends")


def repeat_last(world: "World", chance: Random) -> str | None:
    """It sends the last one again."""
    return _sent(world, chance, world.facts[-1], "repeats") if world.facts else None


def far(world: "World", chance: Random) -> str | None:
    """Something is sent again that is nearly too old for speed, or just so."""
    spans = [(world.now - fact.happened_at, fact) for fact in world.facts]
    old = [fact for span, fact in spans if timedelta(hours=22) < span < timedelta(hours=25)]
    return _sent(world, chance, chance.choice(old), "repeats") if old else None


def wait_until_old(world: "World", chance: Random) -> str | None:
    """Until a receipt is nearly too old for speed."""
    if not world.facts:
        return None
    until = world.facts[-1].happened_at + TIMINGS.oldest + timedelta(minutes=chance.randint(-30, 58))
    return _wait(world, until - world.now) if until > world.now else None


def wait_some(world: "World", chance: Random) -> str:
    """Some minutes, more than the skew."""
    return _wait(world, SKEW + timedelta(seconds=chance.randint(60, 600)))


def repeat(world: "World", chance: Random) -> str | None:
    """It sends one again."""
    if not world.facts:
        return None
    fact = chance.choice(world.facts[-4:] if chance.random() < 0.6 else world.facts)
    return _sent(world, chance, fact, "repeats")


def _sent(world: "World", chance: Random, fact: Fact, does: str) -> str:
    number = len(world.topic.parts)
    if world.topic.unopened and (world.is_settled or chance.random() < 0.5):  # it has noticed the new partitions
        number += len(world.topic.unopened)
    partition = fact.partition(number)
    if chance.random() < (0.02 if world.keeps(Rule.ONE_HOME) else 0.5):
        partition = chance.randrange(PARTITIONS)
    in_transaction = chance.random() < 0.25
    put = world.topic.send_in_transaction if in_transaction else world.topic.send
    record = put(world.now, fact, partition)
    how = " in a transaction" if in_transaction else ""
    return (
        f"store {fact.store} {does} {fact.identity} ({fact.amount} {fact.kind}) of {fact.happened_at:%d %H:%M}{how}: "
        f"{partition}/{record.offset} at {record.received_at:%d %H:%M:%S}"
    )


def end_transaction(world: "World", chance: Random) -> str | None:
    """Commit or abort."""
    opened = [part.number for part in (*world.topic.parts, *world.topic.unopened) if part.transaction]
    if not opened:
        return None
    partition, commit = chance.choice(opened), chance.random() < 0.6
    world.topic.end_transaction(world.now, partition, commit=commit)
    return f"the transaction in {partition} {'commits' if commit else 'aborts'}"


def wait(world: "World", chance: Random) -> str:
    """Time passes."""
    spans = (10, 120, 600, 1800, 3600, 3600, 6 * 3600, 23 * 3600, 24 * 3600 + 1800)
    return _wait(world, timedelta(seconds=chance.choice(spans) + chance.randrange(60)))


def wait_for_epoch(world: "World", chance: Random) -> str:
    """Until shortly before the next epoch begins by some broker's clock, or shortly after."""
    ahead = chance.choice(world.topic.parts).ahead
    left = TIMINGS.epoch - (world.now + ahead - UNIX_EPOCH) % TIMINGS.epoch
    return _wait(world, max(timedelta(0), left + timedelta(seconds=chance.randint(-60, 60))))


def wait_long(world: "World", chance: Random) -> str:
    """Days."""
    return _wait(world, timedelta(hours=chance.randint(30, 100)))


def _wait(world: "World", span: timedelta) -> str:
    world.pass_time(span)
    return f"{span} later it is {world.now:%d %H:%M:%S}"


def lead(world: "World", chance: Random) -> str:
    """Another broker leads a partition; its clock is up to the skew behind, or anything ahead."""
    part = chance.choice(world.topic.parts)
    back = chance.random() < 0.6
    by = -chance.random() * SKEW if back else chance.random() * SKEW * 2
    part.ahead = max(-3 * SKEW, min(3 * SKEW, part.ahead + by))
    seconds = part.ahead.total_seconds()
    return f"the clock of partition {part.number} is {'ahead' if seconds > 0 else 'behind'} by {abs(seconds):.0f} s"


def lead_back(world: "World", chance: Random) -> str:
    """Other brokers lead every partition; their clocks are behind, by the skew at most."""
    for part in world.topic.parts:
        part.ahead = max(-3 * SKEW, part.ahead - chance.random() * SKEW)
    return f"the clocks are ahead by {', '.join(f'{part.ahead.total_seconds():.0f} s' for part in world.topic.parts)}"


def step_back(world: "World", chance: Random) -> str:
    """A clock steps back by more than the skew: an alarm."""
    part = chance.choice(world.topic.parts)
    part.ahead = -timedelta(minutes=chance.randint(10, 240))
    return f"the clock of partition {part.number} steps back to {part.ahead.total_seconds():.0f} s"


def grow(world: "World", _: Random) -> str | None:
    """Partitions are added. Some senders notice now, others later."""
    if len(world.topic.parts) > PARTITIONS or world.topic.unopened:
        return None
    before = len(world.topic.parts)
    world.partitions = Partitions(before, (Growth(before, 2 * before, world.now),))
    world.topic.grow()
    return f"{before} partitions become {2 * before}"


def announce(world: "World", _: Random) -> str | None:
    """Every sender knows them: markers are written into the old ones. If it was announced too long ago, again."""
    growth = world.partitions.unfinished
    if growth is None:
        return None
    world.is_settled = True
    markers = [world.topic.send(world.now, None, part.number) for part in world.topic.parts]
    opens_at = next_opening(world.now, (each.received_at for each in markers), SKEW)
    fences = {TOPIC: {each.partition: each.offset for each in markers}}
    world.partitions = Partitions(growth.before, (growth._replace(opens_at=opens_at, fences=fences),))
    return f"the new partitions open at {opens_at:%d %H:%M:%S}"


def confirm(world: "World", _: Random) -> str | None:
    """They open, if that lies ahead."""
    growth = world.partitions.unfinished
    if growth is None or growth.opens_at is None or world.now >= growth.opens_at - SKEW:
        return None
    world.partitions = Partitions(growth.before, (growth._replace(is_open=True),))
    world.topic.open(growth.opens_at if world.keeps(Rule.OPENED_LATER) else None)
    return "the new partitions are open"
