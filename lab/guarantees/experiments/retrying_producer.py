"""P06, retries of a producer make duplicates, and P07, the idempotent producer, whose retries do not.

P06: the record was written, but its acknowledgement is lost. The fault proxy drops ten responses of the broker and
closes the connection. A producer cannot know whether the request or the response was lost, so it resends, and the log
has the record twice. Without retries it reports a failure instead, although the record was written: "failed" means
unknown. Galatea's senders do this every day, so identity, not transport, decides what a duplicate is.

P07: the same lost acknowledgements, and the same retries. But the broker tracks sequence numbers per producer and
partition, and acknowledges a repetition without writing it. Every producer of Galatea is idempotent.
"""

from collections.abc import Mapping, Sequence

from lab.fault_proxy import Action, Api, Rule
from lab.guarantees.clients import numbers, producer, send
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need
from lab.guarantees.results import Bound, Result, count_numbers, exactly


def without_idempotence(setup: ExperimentSetup) -> Sequence[Result]:
    """With retries, and without."""
    records, faults = setup.size.records, setup.size.faults
    return [
        _lost_answers(
            setup,
            "p06",
            "no idempotence, acks=all",
            {"duplicated": exactly(faults), "ok": exactly(records), "log": exactly(records + faults)},
        ),
        _lost_answers(
            setup,
            "p06-once",
            "no idempotence, no retries",
            {"ok": exactly(records - faults), "log": exactly(records)},
            retries=0,
        ),
    ]


def idempotent(setup: ExperimentSetup) -> Sequence[Result]:
    """P06 with one setting changed."""
    records = setup.size.records
    expected = {"ok": exactly(records), "log": exactly(records)}
    return [_lost_answers(setup, "p07", "idempotent, acks=all", expected, enable_idempotence=True)]


def _lost_answers(
    setup: ExperimentSetup, name: str, mode: str, expected: Mapping[str, Bound], **more: float | bool
) -> Result:
    """Send the numbers one at a time while the fault proxy drops so many responses."""
    size, topic = setup.size, setup.topic(name)
    faults = Rule(Api.PRODUCE, Action.DROP_RESPONSE, first=size.every // 2, every=size.every, most=size.faults)
    sender = producer(setup.proxied, **{"acks": "all", "max_in_flight": 1, "enable_idempotence": False, **more})
    setup.required_proxy.set_rule(faults)
    sent = send(sender, topic, range(size.records))
    setup.required_proxy.clear_rule()
    seen = numbers(setup.kafka, topic)
    counted = {"ok": len(sent.ok), "log": sum(map(len, seen)), "faults": faults.hits}
    bounds = {**expected, "faults": exactly(size.faults)}
    return Result(mode, "acknowledgements lost", size.records, count_numbers(size.records, *seen), bounds, counted)


RETRYING_PRODUCER = Experiment("P06", "a producer's retry makes duplicates", without_idempotence, Need.FAULT_PROXY)
IDEMPOTENT_PRODUCER = Experiment("P07", "idempotent producer", idempotent, Need.FAULT_PROXY)
