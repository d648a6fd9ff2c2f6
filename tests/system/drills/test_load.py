"""A load reports that everything is acknowledged, or that it has ended. Waiting for it never hangs."""

import threading

import pytest

from master_dataset.kafka.connection import KafkaConnection
from tests.system.drills.load import Load, Mix
from tests.system.drills.till_roll import TillRoll

PATIENCE_SECONDS = 60.0


@pytest.fixture
def load() -> Load:
    """Sends nothing until it is started."""
    return Load(KafkaConnection("127.0.0.1:1"), 1, Mix(), TillRoll())


def test_paused_load_sends_nothing(load: Load) -> None:
    load.start()

    load.rest()

    assert load.is_alive()
    load.leave()


def test_pausing_a_load_that_has_ended_is_an_error(load: Load) -> None:
    said = list[str]()

    def ask() -> None:
        try:
            load.rest()
        except RuntimeError as error:
            said.append(str(error))

    load.start()
    load.leave()
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE_SECONDS)

    assert said == ["the load has ended, so nobody knows whether all that it sent is acknowledged"]
