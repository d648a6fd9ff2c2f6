"""P25, the overhead of the record format: what a record costs in the log, by the size of its batch.

Every batch has a header of 61 bytes, and every record some 9 bytes besides its value. So a record of 100 bytes that is
sent alone takes 170 bytes, and one of a batch of a hundred takes 110. Compression works on a batch: with batches of one
it saves nothing, because one record has nothing to repeat. Sizes are those of the broker's file. Galatea's producers
wait some milliseconds for more records (`linger.ms`); other experiments send batches of one, to count requests.
"""

from collections.abc import Iterator, Mapping, Sequence

from lab.guarantees.clients import flush, producer, read
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need
from lab.guarantees.results import Bound, Result, at_least, at_most, count_numbers, exactly

RECORDS, VALUE, DIGITS = 1000, 100, 6
"""How many records; bytes of each value, and how many of them differ from one to the next."""
BATCH_PREFIX = 12
"""Bytes of offset and length, which the length of a batch does not include."""
LONG_LINGER_MS = 10_000
"""Longer than handing over a batch takes: only full batches are sent."""


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Batches of 1 to 1,000, and the smallest and largest of them compressed."""
    alone, together = {"bytes per record": at_least(160)}, {"bytes per record": at_most(120)}
    return [
        _line(setup, 1, alone),
        _line(setup, 10, together),
        _line(setup, 100, together),
        _line(setup, RECORDS, together),
        _line(setup, 1, alone, compression="lz4"),
        _line(setup, RECORDS, {"bytes per record": at_most(VALUE // 2)}, compression="lz4"),
    ]


def _line(setup: ExperimentSetup, size: int, expected: Mapping[str, Bound], compression: str = "none") -> Result:
    topic = setup.topic(f"p25-{compression}-{size}")
    rng = setup.rng("p25")
    same = "".join(rng.choice("0123456789abcdef") for _ in range(VALUE - DIGITS)).encode()
    sender = producer(
        setup.kafka,
        acks="all",
        enable_idempotence=True,
        batch_num_messages=size,
        linger_ms=LONG_LINGER_MS,
        compression_type=compression,
    )
    for number in range(RECORDS):
        sender.produce(topic, same + f"{number:0{DIGITS}}".encode())
        if (number + 1) % size == 0:
            flush(sender)
    batches = list(batch_sizes(setup.required_log(topic).read_bytes()))
    seen = [[int(each.value[-DIGITS:]) for each in partition] for partition in read(setup.kafka, topic)]
    per_record = round(sum(batches) / RECORDS)
    return Result(
        f"batches of {size:,}" + (f", {compression}" if compression != "none" else ""),
        "none",
        RECORDS,
        count_numbers(RECORDS, *seen),
        {**expected, "batches": exactly(RECORDS // size)},
        {"bytes per record": per_record, "overhead": per_record - VALUE, "batches": len(batches)},
    )


def batch_sizes(log: bytes) -> Iterator[int]:
    """Yield the size of each batch in a log file: 8 bytes of offset, 4 with the length of the rest, the rest."""
    at = 0
    while at + BATCH_PREFIX <= len(log):
        size = BATCH_PREFIX + int.from_bytes(log[at + BATCH_PREFIX - 4 : at + BATCH_PREFIX])
        yield size
        at += size


EXPERIMENT = Experiment("P25", "overhead of the record format", run, Need.LOG)
