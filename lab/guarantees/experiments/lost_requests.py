"""P11, acks=0: who asks for no acknowledgement is told that everything arrived.

The tap loses ten requests on their way. With acks=0 the producer reports a record as delivered when it has been handed
to the network, so all are reported and ten are nowhere. With acks=1 it waits for an answer, gets none, and repeats.
"""

from collections.abc import Sequence

from lab.fault_proxy import Action, Api, Rule
from lab.guarantees.clients import Sent, numbers, producer, send
from lab.guarantees.experiment import Experiment, Ground, Need, await_that
from lab.guarantees.results import ANY, ZERO, Line, exactly, tally

SOON_MS = 1000
"""After this an answer is missed."""
FEW = 3
"""Faults where each is waited for."""


def run(ground: Ground) -> Sequence[Line]:
    """No acknowledgement, and that of the leader."""
    return [_line(ground, 0), _line(ground, 1)]


def _line(ground: Ground, acks: int) -> Line:
    size, topic = ground.size, ground.topic(f"p11-{acks}")
    faults = FEW if acks else size.faults
    sender = producer(ground.tapped, acks=acks, enable_idempotence=False, max_in_flight=1, socket_timeout_ms=SOON_MS)
    rule = Rule(Api.PRODUCE, Action.DROP_REQUEST, first=size.every // 2, every=size.every, most=faults)
    before = ground.the_tap.forwarded.get(Api.PRODUCE, 0)
    ground.the_tap.harm(rule)
    sent = send(sender, topic, range(size.records))
    if not acks:
        _await_all(ground, topic, before, sent, rule)
    ground.the_tap.heal()
    seen = numbers(ground.bootstrap, topic)
    lost, late = (0, ANY) if acks else (faults, ZERO)  # an answer that is only late is missed too: that is P06
    return Line(
        f"acks={acks}",
        "requests lost",
        size.records,
        tally(size.records, *seen),
        {
            "lost": exactly(lost),
            "ok": exactly(size.records),
            "duplicated": late,
            "reordered": late,
            "faults": exactly(faults),
        },
        {"ok": len(sent.ok), "faults": rule.hits},
    )


def _await_all(ground: Ground, topic: str, before: int, sent: Sent, rule: Rule) -> None:
    """Nobody says when records without acknowledgement are written: the tap has all, then the log has what passed."""
    tap = ground.the_tap
    await_that(
        lambda: tap.forwarded.get(Api.PRODUCE, 0) - before + rule.hits >= len(sent.ok), "requests did not reach the tap"
    )
    passed = tap.forwarded[Api.PRODUCE] - before
    await_that(lambda: len(numbers(ground.bootstrap, topic)[0]) >= passed, "records that passed are not in the log")


EXPERIMENT = Experiment("P11", "acks=0 reports what is lost as delivered", run, Need.TAP)
