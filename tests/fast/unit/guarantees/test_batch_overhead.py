"""The batches in the file of a log are found by the lengths in their headers."""

from lab.guarantees.experiments.batch_overhead import BATCH_PREFIX, batch_sizes


def batch(offset: int, rest: bytes) -> bytes:
    return offset.to_bytes(8) + len(rest).to_bytes(4) + rest


def test_every_batch_of_a_log_has_the_size_that_it_takes_there() -> None:
    batches = [batch(0, b"x" * 158), batch(1, b""), batch(7, bytes(range(256)))]

    assert list(batch_sizes(b"".join(batches))) == [len(each) for each in batches]
    assert sum(batch_sizes(b"".join(batches))) == sum(map(len, batches))


def test_an_empty_log_has_no_batch() -> None:
    assert list(batch_sizes(b"")) == []
    assert list(batch_sizes(b"x" * (BATCH_PREFIX - 1))) == []
