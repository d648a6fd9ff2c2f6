"""P07, the idempotent producer: the broker recognises a record by producer id and sequence number.

The same lost acknowledgements as in P06, and the same retries. But the broker tracks sequence numbers per producer and
partition, and acknowledges a repetition without writing it. Every producer of Galatea is idempotent.
"""

from collections.abc import Sequence

from lab.guarantees.experiment import Experiment, ExperimentSetup, Need
from lab.guarantees.experiments.retrying_producer import lost_answers
from lab.guarantees.results import Result, exactly


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """P06 with one setting changed."""
    records = setup.size.records
    expected = {"ok": exactly(records), "log": exactly(records)}
    return [lost_answers(setup, "p07", "idempotent, acks=all", expected, enable_idempotence=True)]


EXPERIMENT = Experiment("P07", "idempotent producer", run, Need.FAULT_PROXY)
