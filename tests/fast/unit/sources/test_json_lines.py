"""Lines are read in bounded memory, and one that is too long is seen without being held."""

import io
import time

from master_dataset.kafka.ingest import MAX_LINE_BYTES, paced, read_lines


def test_lines_come_without_their_ends_and_the_last_needs_none() -> None:
    file = io.BytesIO(b"a\n\r\nb\r\n c \nd")

    assert list(read_lines(file)) == [b"a", b"", b"b", b" c ", b"d"]


def test_a_line_at_the_limit_is_whole_and_a_longer_one_is_cut_behind_it() -> None:
    for length in (MAX_LINE_BYTES, MAX_LINE_BYTES + 1, MAX_LINE_BYTES + 2, 2 * MAX_LINE_BYTES + 4, 3 * MAX_LINE_BYTES):
        file = io.BytesIO(b"x" * length + b"\nnext\n")

        long, following = read_lines(file)

        assert len(long) == min(length, MAX_LINE_BYTES + 1)
        assert following == b"next"


def test_a_pace_is_kept() -> None:
    began = time.monotonic()

    assert len(list(paced([b"x"] * 21, 100))) == 21

    assert time.monotonic() - began >= 0.19
