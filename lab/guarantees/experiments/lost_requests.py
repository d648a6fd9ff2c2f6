"""P11, acks=0: a producer without acknowledgements reports every record as delivered.

The fault proxy drops ten requests. With acks=0, the producer reports a record as delivered once it is handed to the
network, so all are reported and ten are missing. With acks=1, it waits for a response, gets none, and resends.
"""

from collections.abc import Sequence

from lab.fault_proxy import Action, Api, Rule
from lab.guarantees.clients import SendReport, numbers, producer, send
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need, await_that
from lab.guarantees.results import ANY, ZERO, Result, count_numbers, exactly

SOON_MS = 1000
"""After this an answer is missed."""
FEW = 3
"""Faults where each is waited for."""


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """No acknowledgement, and that of the leader."""
    return [_line(setup, 0), _line(setup, 1)]


def _line(setup: ExperimentSetup, acks: int) -> Result:
    size, topic = setup.size, setup.topic(f"p11-{acks}")
    faults = FEW if acks else size.faults
    sender = producer(setup.proxied, acks=acks, enable_idempotence=False, max_in_flight=1, socket_timeout_ms=SOON_MS)
    rule = Rule(Api.PRODUCE, Action.DROP_REQUEST, first=size.every // 2, every=size.every, most=faults)
    before = setup.required_proxy.forwarded.get(Api.PRODUCE, 0)
    setup.required_proxy.set_rule(rule)
    sent = send(sender, topic, range(size.records))
    if not acks:
        _await_all(setup, topic, before, sent, rule)
    setup.required_proxy.clear_rule()
    seen = numbers(setup.kafka, topic)
    lost, late = (0, ANY) if acks else (faults, ZERO)  # with acks, late responses count as lost too: see P06
    return Result(
        f"acks={acks}",
        "requests lost",
        size.records,
        count_numbers(size.records, *seen),
        {
            "lost": exactly(lost),
            "ok": exactly(size.records),
            "duplicated": late,
            "reordered": late,
            "faults": exactly(faults),
        },
        {"ok": len(sent.ok), "faults": rule.hits},
    )


def _await_all(setup: ExperimentSetup, topic: str, before: int, sent: SendReport, rule: Rule) -> None:
    """Wait for unacknowledged records: until the proxy has all, then until the log has those that passed."""
    proxy = setup.required_proxy
    await_that(
        lambda: proxy.forwarded.get(Api.PRODUCE, 0) - before + rule.hits >= len(sent.ok),
        "requests did not reach the fault proxy",
    )
    passed = proxy.forwarded[Api.PRODUCE] - before
    await_that(lambda: len(numbers(setup.kafka, topic)[0]) >= passed, "records that passed are not in the log")


EXPERIMENT = Experiment("P11", "acks=0 reports what is lost as delivered", run, Need.FAULT_PROXY)
