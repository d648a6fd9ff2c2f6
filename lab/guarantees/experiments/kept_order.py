"""P10, two ways to keep the order: wait for each acknowledgement, or sequence numbers.

The same rejections as in P09. (a) Waiting for the report of a record before sending the next one keeps the order, and
is as slow as it sounds. (b) `max.in.flight=1` should do the same inside the client, but does not in this one:
librdkafka has the next request ready while one is in flight, and sends it although the previous one was rejected (its
issue 1092). One record overtakes at each fault. (c) With idempotence, the broker accepts sequence numbers only in
order: it rejects those that are too early, and the producer resends them in order, with five requests in flight.
Galatea's producers do (c).
"""

from collections.abc import Sequence

from lab.fault_proxy import Action
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need
from lab.guarantees.experiments.reordering import refused
from lab.guarantees.results import ZERO, Result, at_least


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """One at a time by waiting; one at a time by a setting; five with idempotence."""
    at_once = Action.REJECT_AT_ONCE
    return [
        refused(setup, "p10a", ("no idempotence, each awaited", at_once), ZERO, waits=True),
        refused(setup, "p10b", ("no idempotence, in flight 1", at_once), at_least(1), max_in_flight=1),
        refused(
            setup, "p10c", ("idempotent, in flight 5", Action.REJECT), ZERO, max_in_flight=5, enable_idempotence=True
        ),
    ]


EXPERIMENT = Experiment("P10", "order kept: waiting, or idempotence", run, Need.FAULT_PROXY)
