"""P17, a commit that the network delivers late ends the next transaction.

The fault proxy holds the EndTxn of transaction 1 and closes the connection. The client silently resends it, and the
commit succeeds. Transaction 2 has written to its first target when the proxy delivers what it held. It comes from the
same producer in the same epoch, so the broker takes it as the end of transaction 2: its first half is committed,
without an offset. Then the application aborts transaction 2 and repeats it: that half is there twice.

A producer that checks the connection after each commit and is discarded if it broke (rule 6 of the loop) is in a new
epoch by then: the late EndTxn is rejected with error 47, and nothing is half-committed. (librdkafka issue 5423; brokers
and clients that both support KIP-890 raise the epoch with every transaction.)
"""

from collections.abc import Mapping, Sequence

from lab.fault_proxy import Action, Api, FaultProxy, Rule
from lab.guarantees.clients import numbers
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need
from lab.guarantees.results import Bound, Result, at_least, count_numbers, exactly, total_counts
from lab.guarantees.transactional_copy import AbandonedError, Route, TransactionalCopy

EACH, RECORDS = 10, 30
INVALID_PRODUCER_EPOCH = 47


class Attack:
    """Holds the first end of a transaction, delivers it in the middle of the second, and lets that one be abandoned."""

    def __init__(self, proxy: FaultProxy) -> None:
        """From now on."""
        self._proxy, self._transactions = proxy, 0
        self.answered = -1
        proxy.set_rule(Rule(Api.END_TXN, Action.HOLD))

    def passed(self, call: str) -> None:
        """Called by the loop after every call."""
        self._transactions += call == "begin"
        if self._transactions == 2 and self.answered < 0:  # noqa: PLR2004 - the second transaction
            if call == "first target" and self._proxy.await_held():
                self.answered = self._proxy.release()
        elif self._transactions == 2 and call == "second target":  # noqa: PLR2004 - the second transaction
            self._transactions += 1  # so that it is abandoned only once
            raise AbandonedError


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """The same attack on both kinds of loop."""
    return [
        _line(
            setup,
            "transactions, producer kept",
            {
                "duplicated": exactly(EACH),
                "reordered": exactly(1),
                "late end answered with": exactly(0),
                "producers discarded": exactly(0),
            },
            keeps_producer=True,
        ),
        _line(
            setup,
            "transactions, producer discarded",
            {"late end answered with": exactly(INVALID_PRODUCER_EPOCH), "producers discarded": at_least(2)},
            keeps_producer=False,
        ),
    ]


def _line(setup: ExperimentSetup, mode: str, expected: Mapping[str, Bound], *, keeps_producer: bool) -> Result:
    name = "p17-kept" if keeps_producer else "p17"
    targets = [setup.topic(f"{name}-b"), setup.topic(f"{name}-c")]
    route = Route(setup.proxied, setup.numbered(name, count=RECORDS), targets, setup.name(name), EACH)
    attack = Attack(setup.required_proxy)
    copy = TransactionalCopy(route, attack.passed, keeps_producer=keeps_producer)
    copy.run()
    setup.required_proxy.clear_rule()
    found = total_counts(count_numbers(RECORDS, *numbers(setup.kafka, target)) for target in targets)
    also = {"late end answered with": attack.answered, "producers discarded": copy.discarded}
    return Result(mode, "an end held, delivered in the next", len(targets) * RECORDS, found, expected, also)


EXPERIMENT = Experiment("P17", "a late commit ends the next transaction", run, Need.FAULT_PROXY)
