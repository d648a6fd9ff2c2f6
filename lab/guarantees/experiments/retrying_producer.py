"""P06, a producer's retry makes duplicates: the record was written, but its acknowledgement is lost.

The tap swallows ten answers of the broker and breaks the connection. A producer cannot know whether the request or the
answer was lost, so it sends again, and the log has the record twice. Without retries it reports a failure instead, and
the record is there all the same: "failed" means unknown. Unknown senders do this to Galatea every day, so identity, and
not transport, decides what a duplicate is.
"""

from collections.abc import Mapping, Sequence

from lab.fault_proxy import Action, Api, Rule
from lab.guarantees.clients import numbers, producer, send
from lab.guarantees.experiment import Experiment, Ground, Need
from lab.guarantees.results import Bound, Line, exactly, tally


def run(ground: Ground) -> Sequence[Line]:
    """With retries, and without."""
    records, faults = ground.size.records, ground.size.faults
    return [
        lost_answers(
            ground,
            "p06",
            "no idempotence, acks=all",
            {"duplicated": exactly(faults), "ok": exactly(records), "log": exactly(records + faults)},
        ),
        lost_answers(
            ground,
            "p06-once",
            "no idempotence, no retries",
            {"ok": exactly(records - faults), "log": exactly(records)},
            retries=0,
        ),
    ]


def lost_answers(ground: Ground, name: str, mode: str, expected: Mapping[str, Bound], **more: float | bool) -> Line:
    """Send the numbers one at a time while the tap swallows so many answers."""
    size, topic = ground.size, ground.topic(name)
    faults = Rule(Api.PRODUCE, Action.DROP_RESPONSE, first=size.every // 2, every=size.every, most=size.faults)
    sender = producer(ground.tapped, **{"acks": "all", "max_in_flight": 1, "enable_idempotence": False, **more})
    ground.the_tap.harm(faults)
    sent = send(sender, topic, range(size.records))
    ground.the_tap.heal()
    seen = numbers(ground.bootstrap, topic)
    counted = {"ok": len(sent.ok), "log": sum(map(len, seen)), "faults": faults.hits}
    bounds = {**expected, "faults": exactly(size.faults)}
    return Line(mode, "acknowledgements lost", size.records, tally(size.records, *seen), bounds, counted)


EXPERIMENT = Experiment("P06", "a producer's retry makes duplicates", run, Need.TAP)
