"""P14, exactly once across partitions: output and offset in one Kafka transaction.

A process copies a topic to two others, ten records per transaction, and is killed after each of its six calls, five
times each. A read_committed consumer sees each record once in both topics, and both are equal after every kill. A
read_uncommitted one also sees the attempts of the killed processes.
"""

from collections.abc import Iterator, Sequence

from lab.guarantees.child import die
from lab.guarantees.child import run_child as live_once
from lab.guarantees.clients import COMMITTED, UNCOMMITTED, numbers
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import ANY, ZERO, Counts, Result, count_numbers, exactly, total_counts
from lab.guarantees.transactional_copy import CALLS, Route, TransactionalCopy, settle

PER_TRANSACTION, ENOUGH = 10, 100
"""A round of deaths, one after each call, commits seven transactions at most."""
ATTEMPTED = {"first target": 1, "second target": 2, "offsets": 2}
"""Targets that have the records of a transaction that is killed after that call."""


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Kill it everywhere; compare both targets after every death, and all in the end."""
    sent = max(setup.size.records // 2, ENOUGH)
    times = sent // ENOUGH
    targets = [setup.topic("p14-b"), setup.topic("p14-c")]
    route = Route(setup.kafka, setup.numbered("p14", count=sent), targets, setup.name("p14"), PER_TRANSACTION)
    partial = killed = 0
    for death in [*deaths(times), None]:
        killed += live_once(__name__, {"route": route, "kill_at": death})
        settle(route)
        partial += _seen(route, COMMITTED, 0) != _seen(route, COMMITTED, 1)
    fault, aborted = "kill -9 after each call", sum(ATTEMPTED.values()) * PER_TRANSACTION * times
    return [
        Result(
            f"transactions, {COMMITTED}",
            fault,
            2 * sent,
            _both(route, COMMITTED, sent),
            {"partial": ZERO, "faults": exactly(times * len(CALLS))},
            {"partial": partial, "faults": killed},
        ),
        Result(
            f"the same, {UNCOMMITTED}",
            fault,
            2 * sent,
            _both(route, UNCOMMITTED, sent),
            {"duplicated": exactly(aborted), "reordered": ANY},
        ),
    ]


def deaths(times: int) -> Iterator[tuple[str, int]]:
    """Behind which call, and the how many-th of that life: the second, so that each life but the first gets on."""
    for _ in range(times):
        for call in CALLS:
            yield call, 1 if call == "init" else 2


def child_main(route: Route, kill_at: tuple[str, int] | None) -> None:
    """Run the copying process."""
    passes = dict.fromkeys(CALLS, 0)

    def passed(call: str) -> None:
        passes[call] += 1
        if kill_at is not None and (call, passes[call]) == kill_at:
            die()

    TransactionalCopy(route, passed).run()


def _seen(route: Route, isolation: str, target: int) -> list[int]:
    [seen] = numbers(route.kafka, route.targets[target], isolation)
    return seen


def _both(route: Route, isolation: str, sent: int) -> Counts:
    return total_counts(count_numbers(sent, _seen(route, isolation, target)) for target in (0, 1))


EXPERIMENT = Experiment("P14", "transactions: output and position, whole or not at all", run)
