"""P15, aborted transactions leave records that must not be read, and gaps that are no loss.

Ten transactions of ten records are committed and ten are aborted. All 200 records are in the log. A consumer with
read_committed gets 100, one with read_uncommitted gets all. Each transaction ends with a control record that has an
offset but is never delivered, so positions skip it. "Every offset was seen" is therefore no test of completeness, and
waiting for the last offset never ends; Galatea compares positions with end offsets. All consumers of Galatea use
read_committed.
"""

from collections.abc import Sequence

from lab.guarantees.clients import COMMITTED, UNCOMMITTED, flush, producer, read
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import Counts, Result, exactly

TRANSACTIONS, EACH = 20, 10
KEPT = TRANSACTIONS // 2 * EACH


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Commit every other transaction, abort the rest, and read both ways."""
    topic = setup.topic("p15")
    sender = producer(setup.kafka, transactional_id=setup.name("p15"))
    sender.init_transactions(60)
    for transaction in range(TRANSACTIONS):
        sender.begin_transaction()
        for number in range(EACH):
            sender.produce(topic, str(transaction * EACH + number).encode())
        flush(sender)
        if transaction % 2:
            sender.abort_transaction(60)
        else:
            sender.commit_transaction(60)
    jumped = TRANSACTIONS - 2 + KEPT - EACH  # control records and aborted ones before the last committed record
    return [
        _line(setup, topic, COMMITTED, phantom=0, jumped=jumped),
        _line(setup, topic, UNCOMMITTED, phantom=KEPT, jumped=TRANSACTIONS - 1),
    ]


def _line(setup: ExperimentSetup, topic: str, isolation: str, *, phantom: int, jumped: int) -> Result:
    """Lost are committed records that were not given, phantom are aborted ones that were."""
    [seen] = read(setup.kafka, topic, isolation)
    committed = {each.number for each in seen if each.number // EACH % 2 == 0}
    gaps = seen[-1].offset + 1 - len(seen) if seen else 0
    return Result(
        f"read with {isolation}",
        f"{TRANSACTIONS // 2} of {TRANSACTIONS} transactions aborted",
        KEPT,
        Counts(KEPT - len(committed), 0, 0),
        {"phantom": exactly(phantom), "offsets without a record": exactly(jumped)},
        {"phantom": len(seen) - len(committed), "offsets without a record": gaps},
    )


EXPERIMENT = Experiment("P15", "read_committed and read_uncommitted; a gap is no loss", run)
