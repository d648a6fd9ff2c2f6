"""The fault proxy forwards everything except what its rule selects, and does to that what the rule says."""

import struct
from collections.abc import Iterator

import pytest

from deploy.local.ports import free_ports
from lab.fault_proxy import Action, Api, FaultProxy, Rule
from lab.fault_proxy.kafka_frames import NOT_ENOUGH_REPLICAS, correlation_of, rejected, request_header
from lab.fault_proxy.proxy import UNREAD
from tests.fast.unit.fault_proxy.scripted_broker import TOPIC, Client, ScriptedBroker, produced, request


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker() as started:
        yield started


@pytest.fixture
def proxy(broker: ScriptedBroker) -> Iterator[FaultProxy]:
    [port] = free_ports(1)
    with FaultProxy("127.0.0.1", port, broker.port) as listening:
        yield listening


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[Client]:
    connected = Client(proxy.port)
    yield connected
    connected.close()


def correlations(broker: ScriptedBroker) -> list[int]:
    """Of what reached the broker, in order."""
    return [request_header(frame).correlation for frame in broker.requests]


def outcome(answer: bytes) -> tuple[int, int]:
    """Error code and offset in an answer to Produce of version 10."""
    error, offset = struct.unpack_from(">hq", answer, answer.index(TOPIC.encode()) + len(TOPIC) + 1 + 4)
    return error, offset


def test_without_a_rule_everything_passes_as_it_is(broker: ScriptedBroker, proxy: FaultProxy, client: Client) -> None:
    sent = [request(Api.PRODUCE, 1, body=b"records"), request(3, 2), request(18, 3, body=bytes(100_000))]

    for frame in sent:
        client.send(frame)
        assert correlation_of(client.receive()) == request_header(frame).correlation

    assert broker.requests == sent
    assert proxy.forwarded == {Api.PRODUCE: 1, 3: 1, 18: 1}


def test_a_dropped_answer_was_written_and_ends_the_connection(
    broker: ScriptedBroker, proxy: FaultProxy, client: Client
) -> None:
    rule = proxy.set_rule(Rule(Api.PRODUCE, Action.DROP_RESPONSE, first=2))

    client.send(request(Api.PRODUCE, 1))
    first = client.receive()
    client.send(request(Api.PRODUCE, 2))
    second = client.receive()

    assert correlation_of(first) == 1
    assert second == b""
    assert correlations(broker) == [1, 2]
    assert rule.hits == 1


def test_a_dropped_request_never_arrives_and_no_error_is_returned(
    broker: ScriptedBroker, proxy: FaultProxy, client: Client
) -> None:
    proxy.set_rule(Rule(Api.PRODUCE, Action.DROP_REQUEST))

    client.send(request(Api.PRODUCE, 1))
    silence = client.hears_nothing()
    client.send(request(Api.PRODUCE, 2))

    assert silence
    assert correlation_of(client.receive()) == 2
    assert correlations(broker) == [2]


def test_a_refusal_comes_before_the_answer_to_the_next_request(
    broker: ScriptedBroker, proxy: FaultProxy, client: Client
) -> None:
    proxy.set_rule(Rule(Api.PRODUCE, Action.REJECT, topic=TOPIC))

    client.send(request(Api.PRODUCE, 1))
    silence = client.hears_nothing()
    client.send(request(Api.PRODUCE, 2))
    refused, done = client.receive(), client.receive()

    assert silence
    assert (correlation_of(refused), outcome(refused)) == (1, (NOT_ENOUGH_REPLICAS, -1))
    assert (correlation_of(done), outcome(done)) == (2, (0, 7))
    assert correlations(broker) == [2]


def test_who_waits_for_each_answer_is_refused_at_once(
    broker: ScriptedBroker, proxy: FaultProxy, client: Client
) -> None:
    proxy.set_rule(Rule(Api.PRODUCE, Action.REJECT_AT_ONCE, first=2, topic=TOPIC))

    answers = []
    for correlation in (1, 2, 3):
        client.send(request(Api.PRODUCE, correlation))
        answers.append(client.receive())

    assert [correlation_of(each) for each in answers] == [1, 2, 3]
    assert [outcome(each)[0] for each in answers] == [0, NOT_ENOUGH_REPLICAS, 0]
    assert correlations(broker) == [1, 3]


def test_a_held_request_arrives_when_it_is_released_over_another_connection(
    broker: ScriptedBroker, proxy: FaultProxy, client: Client
) -> None:
    proxy.set_rule(Rule(Api.END_TXN, Action.HOLD))

    client.send(request(Api.END_TXN, 1, version=3))
    ended = client.receive()
    held = proxy.await_held()
    before = list(broker.requests)
    code = proxy.release()

    assert (ended, held, before) == (b"", True, [])
    assert correlations(broker) == [1]
    assert code == 47


def test_a_request_that_is_held_silently_leaves_the_connection_as_it_is(
    broker: ScriptedBroker, proxy: FaultProxy, client: Client
) -> None:
    proxy.set_rule(Rule(Api.TXN_OFFSET_COMMIT, Action.HOLD_SILENTLY))

    client.send(request(Api.TXN_OFFSET_COMMIT, 1))
    silence, held = client.hears_nothing(), proxy.await_held()
    client.send(request(Api.PRODUCE, 2))

    assert (silence, held, correlation_of(client.receive())) == (True, True, 2)
    assert proxy.release() == UNREAD
    assert correlations(broker) == [2, 1]


def test_what_is_held_and_forgotten_never_arrives(broker: ScriptedBroker, proxy: FaultProxy, client: Client) -> None:
    proxy.set_rule(Rule(Api.END_TXN, Action.HOLD, every=1, most=2))
    client.send(request(Api.END_TXN, 1, version=3))
    proxy.await_held()
    proxy.discard_held()
    again = Client(proxy.port)

    again.send(request(Api.END_TXN, 2, version=3))
    held = proxy.await_held()
    proxy.release()
    again.close()

    assert held
    assert correlations(broker) == [2]


def test_a_healed_proxy_injects_no_more_faults(broker: ScriptedBroker, proxy: FaultProxy, client: Client) -> None:
    proxy.set_rule(Rule(Api.PRODUCE, Action.DROP_REQUEST, every=1, most=100))
    proxy.clear_rule()

    client.send(request(Api.PRODUCE, 1))

    assert correlation_of(client.receive()) == 1
    assert correlations(broker) == [1]


def test_an_unavailable_broker_is_unavailable_behind_its_proxy_too() -> None:
    port, nobody = free_ports(2)

    with FaultProxy("127.0.0.1", port, nobody):
        client = Client(port)
        ended = client.receive()
        client.close()

    assert ended == b""


def test_a_port_in_use_is_an_error_and_not_a_silent_proxy(broker: ScriptedBroker) -> None:
    with pytest.raises(OSError, match="in use"), FaultProxy("127.0.0.1", broker.port, broker.port):
        pass


def test_a_rule_hits_the_first_and_then_every_so_many_and_no_more() -> None:
    rule = Rule(Api.PRODUCE, Action.DROP_REQUEST, first=3, every=4, most=2)

    hit = [number for number in range(1, 20) if rule.selects(Api.PRODUCE)]

    assert hit == [3, 7]
    assert not Rule(Api.END_TXN, Action.HOLD).selects(Api.PRODUCE)


@pytest.mark.parametrize("version", [7, 8, 9, 10, 12])
def test_a_refusal_changes_the_error_and_the_offset_and_nothing_else(version: int) -> None:
    refused = rejected(produced(5, version=version), version, TOPIC, 4)

    assert refused == produced(4, NOT_ENOUGH_REPLICAS, -1, version=version)


def test_an_answer_about_another_topic_is_no_pattern_for_a_refusal() -> None:
    with pytest.raises(ValueError, match="not found"):
        rejected(produced(5), 10, "receipts", 4)
