"""Headers that the driver cannot read stop no reader."""

import pytest

from master_dataset.kafka.record import headers_of_message


class Message:
    """As the driver's, of a record whose headers it reads in some way."""

    def __init__(self, outcome: list[tuple[str, bytes | None]] | Exception | None) -> None:
        self._outcome = outcome

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


@pytest.mark.parametrize("outcome", [None, SystemError(), UnicodeDecodeError("utf-8", b"", 0, 1, "")])
def test_a_record_whose_headers_cannot_be_read_has_none(outcome: Exception | None) -> None:
    assert headers_of_message(Message(outcome)) == ()


def test_other_headers_are_as_the_driver_reads_them() -> None:
    assert headers_of_message(Message([("schema", b"pos"), ("a", None)])) == [("schema", b"pos"), ("a", None)]
