"""What speed writes, micro-batch by micro-batch and some of them again: right with batch, wherever the cut lies."""

from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from master_dataset.cassandra_tables import LATE_EVENTS
from master_dataset.visits.visit import RULES
from speed_layer.micro_batch import MicroBatch, SpeedTimings
from tests.fast.laws.delivery.tables import Tables, in_memory
from tests.support.arrivals import Given, Stated, arrival, arrived
from views.control.generation import Generation
from views.control.speed_layout import BY_VIEW, SpeedLayout
from views.core.cells import WAITING, number_of, read_block
from views.core.cut import UNIX_EPOCH, is_fresh

EPOCH = timedelta(seconds=10)
BEGIN = UNIX_EPOCH + timedelta(days=20_000)
TIMINGS = SpeedTimings(
    epoch=EPOCH,
    oldest=timedelta(hours=23),
    remembered=timedelta(hours=24),
    ttl=timedelta(days=7),
    visits=RULES,
    skew=timedelta(seconds=1),
)
ONE: list[Given] = [(WAITING.name, 900, ["t"], [1])]
EPOCHS, EVENTS, REPEATED = 6, 30, 0.4
LAYOUTS = BY_VIEW, SpeedLayout.for_stores(100)


class Sent(NamedTuple):
    """One delivery."""

    identity: str
    offset: int
    received_at: datetime
    age: timedelta


def sent(chance: Random) -> list[Sent]:
    """Events of all ages that speed counts, many of them more than once, in the order of their receipt."""
    found: list[Sent] = []
    at = BEGIN
    while len(found) < EVENTS:
        at += timedelta(milliseconds=chance.randint(0, 4000))
        if found and chance.random() < REPEATED:
            first = chance.choice(found)
            age = at - (first.received_at - first.age)
            found.append(Sent(first.identity, len(found), at, age))
        else:
            age = timedelta(seconds=chance.choice([0, 1, 5, 40, 3600, 80_000]))
            found.append(Sent(f"e{len(found)}", len(found), at, age))
    return found


def written(deliveries: list[Sent], chance: Random, layout: SpeedLayout) -> Tables:
    """By micro-batches of any size, each once, or again after it was written."""
    tables = Tables()
    generation = Generation(1, BEGIN, {}, {}, layout=layout)
    at = number = 0
    while at < len(deliveries):
        some = deliveries[at : at + chance.randint(1, 9)]
        rows = [arrival(each.identity, each.offset, each.received_at, ONE, age=each.age) for each in some]
        counter = MicroBatch(lambda: tables, Stated((), TIMINGS.oldest, RULES), TIMINGS, generation, number)
        for _ in range(chance.choice([1, 1, 2, 3])):
            list(counter(iter([arrived([row]) for row in chance.sample(rows, len(rows))])))
        at, number = at + len(some), number + 1
    return tables


def merged_is_exact_at_every_cut(seeds: int = 12) -> None:
    """I02 and I11: what was received before the cut, and the rows of the epochs from it on, are each event once."""
    for seed in range(seeds):
        chance = Random(seed)
        deliveries, layout = sent(chance), LAYOUTS[seed % 2]
        with in_memory():
            tables = written(deliveries, chance, layout)
        firsts: dict[str, datetime] = {}
        for each in deliveries:
            firsts.setdefault(each.identity, each.received_at)
        for number in range(EPOCHS + 1):
            cut = BEGIN + number * EPOCH
            batch = sum(received_at < cut for received_at in firsts.values())
            speed = sum(
                number_of(states)
                for row in tables.of(layout.cells)
                if is_fresh(row["epoch"], cut)
                for _, states in read_block(WAITING, row["block"])
            )
            assert batch + speed == len(firsts), f"seed {seed}, cut {cut}: {batch} + {speed} of {len(firsts)}"
        noticed = {row["noticed_at"] for row in tables.of("alarms") if row["name"] == LATE_EVENTS}
        assert noticed == {row["epoch"] for row in tables.of(layout.cells)}, f"seed {seed}: not every waiting epoch"
