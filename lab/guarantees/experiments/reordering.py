"""P09, retries reorder, and P10, two ways to keep the order: wait for each acknowledgement, or sequence numbers.

P09: with several requests in flight, the one that is resent arrives after later ones. The fault proxy rejects a request
(as a leader does that temporarily has too few in-sync replicas) when the next one is already written. The producer
resends it a little later. Nothing is lost or duplicated, but each fault places one record after others that were sent
later.

P10: the same rejections. (a) Waiting for the report of a record before sending the next one keeps the order, and is as
slow as it sounds. (b) `max.in.flight=1` should do the same inside the client, but does not in this one: librdkafka has
the next request ready while one is in flight, and sends it although the previous one was rejected (its issue 1092). One
record overtakes at each fault. (c) With idempotence, the broker accepts sequence numbers only in order: it rejects
those that are too early, and the producer resends them in order, with five requests in flight. Galatea's producers do
(c).
"""

from collections.abc import Sequence

from lab.fault_proxy import Action, Api, Rule
from lab.guarantees.clients import numbers, producer, send
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need
from lab.guarantees.results import ZERO, Bound, Result, at_least, count_numbers, exactly


def five_in_flight(setup: ExperimentSetup) -> Sequence[Result]:
    """Five requests on their way, no idempotence."""
    reordered = exactly(setup.size.faults)
    return [_refused(setup, "p09", ("no idempotence, in flight 5", Action.REJECT), reordered, max_in_flight=5)]


def in_order(setup: ExperimentSetup) -> Sequence[Result]:
    """One at a time by waiting; one at a time by a setting; five with idempotence."""
    at_once = Action.REJECT_AT_ONCE
    return [
        _refused(setup, "p10a", ("no idempotence, each awaited", at_once), ZERO, waits=True),
        _refused(setup, "p10b", ("no idempotence, in flight 1", at_once), at_least(1), max_in_flight=1),
        _refused(
            setup, "p10c", ("idempotent, in flight 5", Action.REJECT), ZERO, max_in_flight=5, enable_idempotence=True
        ),
    ]


def _refused(
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


REORDERING = Experiment("P09", "retries reorder with several requests in flight", five_in_flight, Need.FAULT_PROXY)
KEPT_ORDER = Experiment("P10", "order kept: waiting, or idempotence", in_order, Need.FAULT_PROXY)
