"""`galatea simulate --send`: the stores are registered first, and what fails says how to go on."""

from collections.abc import Iterable
from datetime import timedelta

import pytest
from typer.testing import CliRunner, Result

from deploy import cassandra
from galatea.cli.main import app
from lab.simulation import output
from lab.simulation.records import TimedRecord
from master_dataset.errors import LinesNotSentError
from master_dataset.registry import registration
from master_dataset.registry.stores import Store

WORDS = ["simulate", "--stores", "1", "--from", "2026-03-07", "--to", "2026-03-07", "--sources", "weather_observations"]


class Stack:
    """Stands for the running stack."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> None:
        self.did: list[str] = []
        self._fails = fails
        monkeypatch.setattr(cassandra, "session_of", lambda _: None)
        monkeypatch.setattr(registration, "register", self._register)
        monkeypatch.setattr(output, "send", self._send)

    def _register(self, _: object, __: object, stores: Iterable[Store], *, skew: timedelta) -> None:
        self.did += [f"registered {store.id}, skew {skew.total_seconds():g} s" for store in stores]

    def _send(self, deliveries: Iterable[TimedRecord], _: str) -> int:
        if self._fails:
            raise LinesNotSentError("Ingest stopped.", do="Repeat it with `--from-line 7`.")
        number = len(list(deliveries))
        self.did.append(f"sent {number}")
        return number


def simulate(*words: str) -> Result:
    return CliRunner().invoke(app, [*WORDS, *words])


def test_stores_are_registered_before_their_first_record(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Stack(monkeypatch)

    assert simulate("--send", "--no-faults").exit_code == 0
    assert stack.did == ["registered sim-1, skew 5 s", "sent 96"]


def test_a_send_that_fails_is_repeated_with_the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    Stack(monkeypatch, fails=True)

    failed = simulate("--send").exception
    assert isinstance(failed, LinesNotSentError)
    assert "same seed" in failed.do


def test_it_says_that_it_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    Stack(monkeypatch)
    said: list[str] = []
    monkeypatch.setattr("galatea.cli.simulate.print_message", said.append)

    simulate("--send", "--live", "100000")

    assert "Simulated: no shop, person, device or receipt in it is real." in said[0]
    assert any("acknowledged" in line for line in said)
