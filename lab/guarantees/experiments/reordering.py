"""P09, retries reorder: with several requests on their way, the one that is repeated arrives behind the next ones.

The tap refuses a request (as a leader does that has too few copies in step for a moment) when the next is written
already. The producer repeats it a little later. Nothing is lost and nothing is there twice, but each fault puts one
record behind others that were sent after it.
"""

from collections.abc import Sequence

from lab.fault_proxy import Action, Api, Rule
from lab.guarantees.clients import numbers, producer, send
from lab.guarantees.experiment import Experiment, Ground, Need
from lab.guarantees.results import Bound, Line, exactly, tally


def run(ground: Ground) -> Sequence[Line]:
    """Five requests on their way, no idempotence."""
    reordered = exactly(ground.size.faults)
    return [refused(ground, "p09", ("no idempotence, in flight 5", Action.REFUSE), reordered, max_in_flight=5)]


def refused(
    ground: Ground, name: str, how: tuple[str, Action], reordered: Bound, *, waits: bool = False, **more: float | bool
) -> Line:
    """Send the numbers in blocks, one request of each block refused. A block ends when all of it is acknowledged.

    `how`: the mode, and how a request is refused. `waits`: for every report before the next record is sent.
    """
    mode, action = how
    size, topic = ground.size, ground.topic(name)
    sender = producer(ground.tapped, **{"acks": "all", "enable_idempotence": False, **more})
    seconds, hits = 0.0, 0
    for block in range(size.faults):
        rule = ground.the_tap.harm(Rule(Api.PRODUCE, action, first=max(size.every // 4, 2), topic=topic))
        part = range(block * size.every, (block + 1) * size.every)
        seconds += send(sender, topic, part, block=1 if waits else 0).seconds
        hits += rule.hits
    ground.the_tap.heal()
    seen = numbers(ground.bootstrap, topic)
    return Line(
        mode,
        "requests refused for a moment",
        size.records,
        tally(size.records, *seen),
        {"reordered": reordered, "faults": exactly(size.faults)},
        {"faults": hits},
        {"records/s": f"{size.records / seconds:,.0f}"},
    )


EXPERIMENT = Experiment("P09", "retries reorder with several requests in flight", run, Need.TAP)
