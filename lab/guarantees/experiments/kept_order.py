"""P10, ways to keep the order: wait for each acknowledgement, or sequence numbers.

The same refusals as in P09. (a) Who waits for the report of a record before sending the next keeps the order, and is
as slow as that sounds. (b) `max.in.flight=1` is meant to do the same inside the client, and does not with this one:
librdkafka has the next request ready while one is on its way, and sends it although the one before was refused (its
issue 1092). One record overtakes at each fault. (c) With idempotence the broker takes sequence numbers only in order:
it refuses those that came too early, and the producer repeats them all in order, with five requests on their way.
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
