"""Alerts to receivers over HTTP, from a real topic: in order for each store, whatever they answer, through kills."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from master_dataset.kafka.topics import Topics, TopicSettings
from speed_layer.webhooks.start_position import commit_start_positions
from tests.integration.conftest import Stack
from tests.support.alert_topic import ACME, alert, tell, until
from tests.support.webhooks import RunningEndpoint, group_of


class Receiver:
    """Listens on this machine. `answer` says what a call gets: its status, by its numbers and the calls so far."""

    def __init__(self, answer: Callable[[list[int], int], int]) -> None:
        self.calls, self.got = 0, []
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                alerts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"]
                with receiver._lock:
                    receiver.calls += 1
                    received = [(each["store"], each["value"]) for each in alerts]
                    status = answer([number for _, number in received], receiver.calls)
                    if status < 300:
                        receiver.got += received
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/alerts"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    got: list[tuple[str, int]]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def firsts(self, store: str) -> list[int]:
        """The numbers of a store's alerts in the order in which each came for the first time."""
        return list(dict.fromkeys(number for of, number in self.got if of == store))


@pytest.fixture
def topic(stack: Stack) -> str:
    name = f"alerts_{uuid4().hex[:8]}"
    Topics(stack.settings.kafka.connection).create([name], TopicSettings(3, 1, 3_600_000))
    return name


@pytest.fixture
def receiver() -> Iterator[Callable[[Callable[[list[int], int], int]], Receiver]]:
    made: list[Receiver] = []

    def make(answer: Callable[[list[int], int], int]) -> Receiver:
        made.append(Receiver(answer))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_receiver_that_fails_now_and_then_gets_all_of_its_tenants_alerts_in_order_for_each_store(
    stack: Stack, topic: str, receiver: Callable[..., Receiver]
) -> None:
    received = receiver(lambda _, call: 503 if call % 7 in (3, 4) else 204)
    tell(stack.settings.kafka.connection, topic, range(100))

    with RunningEndpoint(stack.settings.kafka.connection, topic, received.url) as running:
        until(lambda: len(received.got) >= 300)
        assert running.undelivered == []

    assert {store for store, _ in received.got} == ACME
    assert all(received.firsts(store) == list(range(100)) for store in ACME)


def test_what_a_receiver_refuses_is_kept_and_the_stream_goes_on(
    stack: Stack, topic: str, receiver: Callable[..., Receiver]
) -> None:
    received = receiver(lambda numbers, _: 422 if 13 in numbers else 200)
    tell(stack.settings.kafka.connection, topic, range(40))

    with RunningEndpoint(stack.settings.kafka.connection, topic, received.url) as running:
        until(lambda: len(set(received.got)) == 3 * 39 and len(running.undelivered) == 3)

        assert sorted(running.undelivered) == [(store, "the endpoint answered 422") for store in sorted(ACME)]
    assert all(received.firsts(store) == [number for number in range(40) if number != 13] for store in ACME)


@pytest.mark.nightly
def test_a_dispatcher_that_is_killed_again_and_again_loses_nothing_and_keeps_the_order(
    stack: Stack, topic: str, receiver: Callable[..., Receiver], tmp_path: Path
) -> None:
    received = receiver(lambda _, __: 200)
    bootstrap, endpoint = stack.settings.kafka.bootstrap, uuid4().hex
    command = [sys.executable, "-m", "tests.support.webhooks", bootstrap, topic, received.url, endpoint]
    for round_ in range(6):
        tell(stack.settings.kafka.connection, topic, range(round_ * 50, round_ * 50 + 50))
        before = len(received.got)
        with (tmp_path / "log").open("a") as log:
            child = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(Path.cwd())}, stderr=log)
        until(lambda before=before: len(received.got) > before)  # type: ignore[misc]
        child.send_signal(signal.SIGKILL)
        child.wait()

    child = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(Path.cwd())})
    until(lambda: len(set(received.got)) == 3 * 300)
    child.terminate()
    child.wait()

    assert all(received.firsts(store) == list(range(300)) for store in ACME)


def test_a_new_endpoint_starts_with_alerts_emitted_after_it_was_created(
    stack: Stack, topic: str, receiver: Callable[..., Receiver]
) -> None:
    received, endpoint = receiver(lambda _, __: 200), uuid4().hex
    tell(stack.settings.kafka.connection, topic, range(10))
    time.sleep(0.01)
    made = int(time.time() * 1000)
    tell(stack.settings.kafka.connection, topic, range(10, 20))

    settings = group_of(stack.settings.kafka.connection, endpoint)
    for _ in range(2):  # again, it has begun already
        commit_start_positions(settings, topic, range(3), made)
    with RunningEndpoint(stack.settings.kafka.connection, topic, received.url, endpoint):
        until(lambda: len(set(received.got)) >= 30)

    assert all(received.firsts(store) == list(range(10, 20)) for store in ACME)


def test_an_alert_whose_transaction_is_open_while_an_endpoint_starts_is_delivered(
    stack: Stack, topic: str, receiver: Callable[..., Receiver]
) -> None:
    received, endpoint = receiver(lambda _, __: 200), uuid4().hex
    producer = Producer({**stack.settings.kafka.connection.client(), "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, alert("acme", "1", 7).to_json(), key="1")
    producer.flush(30)

    commit_start_positions(
        group_of(stack.settings.kafka.connection, endpoint), topic, range(3), int(time.time() * 1000) + 60_000
    )
    producer.commit_transaction(30)
    with RunningEndpoint(stack.settings.kafka.connection, topic, received.url, endpoint):
        until(lambda: len(received.got) >= 1)

    assert received.got == [("1", 7)]


def test_a_blocking_record_is_reported_and_skipped_alone_and_the_rest_follows_in_order(
    stack: Stack, topic: str, receiver: Callable[..., Receiver]
) -> None:
    received = receiver(lambda numbers, _: 503 if 7 in numbers else 200)
    tell(stack.settings.kafka.connection, topic, range(20))

    with RunningEndpoint(stack.settings.kafka.connection, topic, received.url) as running:
        until(lambda: len(running.state().blocking) == 3 and all(len(received.firsts(store)) == 7 for store in ACME))
        blocking = {each.store: each for each in running.state().blocking}
        running.skip((topic, blocking["1"].partition, blocking["1"].offset))
        until(lambda: len(received.firsts("1")) == 19)
        until(lambda: running.state().records == 2 * 13)  # after the receiver has it, the dispatcher hears so
        state = running.state()

    assert {each.why for each in blocking.values()} == {"the endpoint answered 503"}
    assert received.firsts("1") == [number for number in range(20) if number != 7]
    assert all(received.firsts(store) == list(range(7)) for store in ACME - {"1"})
    assert running.undelivered == [("1", "an operator has skipped it")]
    assert {each.store for each in state.blocking} == ACME - {"1"}


def test_the_backlog_is_counted_and_is_zero_when_all_is_delivered(
    stack: Stack, topic: str, receiver: Callable[..., Receiver]
) -> None:
    received = receiver(lambda _, __: 200)
    tell(stack.settings.kafka.connection, topic, range(30))

    with RunningEndpoint(stack.settings.kafka.connection, topic, received.url) as running:
        until(lambda: len(set(received.got)) == 90)
        until(lambda: running.state().records == 0)
        state = running.state()

    assert (state.status, state.failing_since, state.oldest_at, state.blocking) == (200, None, None, ())
    assert state.delivered_at is not None
