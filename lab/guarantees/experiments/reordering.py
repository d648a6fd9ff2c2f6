"""P09, retries reorder: with several requests in flight, the one that is resent arrives after later ones.

The fault proxy rejects a request (as a leader does that temporarily has too few in-sync replicas) when the next one is
already written. The producer resends it a little later. Nothing is lost or duplicated, but each fault places one record
after others that were sent later.
"""

from collections.abc import Sequence

from lab.fault_proxy import Action, Api, Rule
from lab.guarantees.clients import numbers, producer, send
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need
from lab.guarantees.results import Bound, Result, count_numbers, exactly


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Five requests on their way, no idempotence."""
    reordered = exactly(setup.size.faults)
    return [refused(setup, "p09", ("no idempotence, in flight 5", Action.REJECT), reordered, max_in_flight=5)]


def refused(
    setup: ExperimentSetup,
    name: str,
    how: tuple[str, Action],
    reordered: Bound,
    *,
    waits: bool = False,
    **more: float | bool,
) -> Result:
    """Send the numbers in blocks, one request of each block refused. A block ends when all of it is acknowledged.

    `how`: the mode, and how a request is refused. `waits`: for every report before the next record is sent.
    """
    mode, action = how
    size, topic = setup.size, setup.topic(name)
    sender = producer(setup.proxied, **{"acks": "all", "enable_idempotence": False, **more})
    seconds, hits = 0.0, 0
    for block in range(size.faults):
        rule = setup.required_proxy.set_rule(Rule(Api.PRODUCE, action, first=max(size.every // 4, 2), topic=topic))
        part = range(block * size.every, (block + 1) * size.every)
        seconds += send(sender, topic, part, block=1 if waits else 0).seconds
        hits += rule.hits
    setup.required_proxy.clear_rule()
    seen = numbers(setup.kafka, topic)
    return Result(
        mode,
        "requests refused for a moment",
        size.records,
        count_numbers(size.records, *seen),
        {"reordered": reordered, "faults": exactly(size.faults)},
        {"faults": hits},
        {"records/s": f"{size.records / seconds:,.0f}"},
    )


EXPERIMENT = Experiment("P09", "retries reorder with several requests in flight", run, Need.FAULT_PROXY)
