"""Positions are committed as a consumer group, whatever the client answers and whenever."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from master_dataset.errors import BrokerAccessError, BrokerUnavailableError
from master_dataset.kafka import lag
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.lag import ConsumerGroup

Answer = tuple[KafkaError | None, Sequence[Any]]
TOPIC = "pos_transactions"


class Said:
    """An error that the client hands out instead of a record."""

    def __init__(self, code: int) -> None:
        self._error = KafkaError(code)

    def error(self) -> KafkaError:
        return self._error


class Client:
    """A consumer. `answers`: how it answers each commit; None: not at all. `says`: what `poll` returns, in turn."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.answers: list[Callable[[Sequence[TopicPartition]], Answer | None]] = []
        self.says: list[Said] = []
        self.committed: list[dict[int, int]] = []
        self.polls = 0
        self._due: list[Answer] = []

    def commit(self, offsets: Sequence[TopicPartition], *, asynchronous: bool) -> None:
        assert asynchronous
        self.committed.append({each.partition: each.offset for each in offsets})
        answer = self.answers.pop(0)(offsets) if self.answers else (None, offsets)
        if answer is not None:
            self._due.append(answer)

    def poll(self, _: float) -> Said | None:
        self.polls += 1
        while self._due:
            self.options["on_commit"](*self._due.pop(0))
        return self.says.pop(0) if self.says else None

    def answer(self, *answer: Any) -> None:
        """Answer late."""
        self._due.append(answer)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    client = Client({})

    def made(options: dict[str, Any]) -> Client:
        client.options = options
        return client

    monkeypatch.setattr(lag, "Consumer", made)
    monkeypatch.setattr(lag, "_TIMEOUT_SECONDS", 0.05)
    return client


@pytest.fixture
def group(client: Client) -> ConsumerGroup:
    assert not client.options
    return ConsumerGroup(KafkaConnection("127.0.0.1:9092"), "galatea.speed")


def silent(_: Sequence[TopicPartition]) -> None:
    return None


def at(*offsets: int) -> dict[str, dict[int, int]]:
    return {TOPIC: dict(enumerate(offsets))}


def test_positions_are_committed_unless_none_has_moved(group: ConsumerGroup, client: Client) -> None:
    for positions in (at(1, 2), at(1, 2), at(1, 3)):
        group.commit(positions)

    assert client.committed == [{0: 1, 1: 2}, {0: 1, 1: 3}]
    assert (client.options["group.id"], client.options["enable.auto.commit"]) == ("galatea.speed", False)


def test_without_an_answer_the_broker_does_not_respond_and_the_next_round_commits(
    group: ConsumerGroup, client: Client
) -> None:
    client.answers = [silent]
    with pytest.raises(BrokerUnavailableError, match="does not respond"):
        group.commit(at(1))
    group.commit(at(1))

    assert client.committed == [{0: 1}, {0: 1}]


def test_a_late_answer_is_not_that_of_the_next_commit(group: ConsumerGroup, client: Client) -> None:
    client.answers = [silent, silent]
    with pytest.raises(BrokerUnavailableError):
        group.commit(at(1))
    client.answer(None, [TopicPartition(TOPIC, 0, 1)])
    with pytest.raises(BrokerUnavailableError):
        group.commit(at(2))


@pytest.mark.parametrize("is_of_partition", [True, False])
def test_a_refusal_is_raised_and_committed_again(
    group: ConsumerGroup, client: Client, *, is_of_partition: bool
) -> None:
    def refuse(offsets: Sequence[TopicPartition]) -> Answer:
        error = KafkaError(KafkaError.UNKNOWN_MEMBER_ID)
        if not is_of_partition:
            return error, offsets
        return None, [Refused(each, error) for each in offsets]

    client.answers = [refuse]
    with pytest.raises(BrokerUnavailableError, match=r"cannot commit the positions of `galatea\.speed`"):
        group.commit(at(1))
    group.commit(at(1))

    assert len(client.committed) == 2


class Refused:
    """A partition with an error, which the client alone can make."""

    def __init__(self, of: TopicPartition, error: KafkaError) -> None:
        self.topic, self.partition, self.offset, self.error = of.topic, of.partition, of.offset, error


def test_a_missing_right_is_named_at_once_and_in_later_rounds(group: ConsumerGroup, client: Client) -> None:
    client.answers, client.says = [silent, silent], [Said(KafkaError.GROUP_AUTHORIZATION_FAILED)]
    for _ in range(2):  # the client says it once
        with pytest.raises(BrokerAccessError, match="does not allow it"):
            group.commit(at(1))
    polls = client.polls
    group.commit(at(1))

    assert polls == 2


def test_what_the_client_raises_is_explained(group: ConsumerGroup, client: Client) -> None:
    def fails(_: Sequence[TopicPartition]) -> Answer:
        raise KafkaException(KafkaError(KafkaError._STATE))  # noqa: SLF001 - its name

    client.answers = [fails]
    with pytest.raises(BrokerUnavailableError, match="cannot commit"):
        group.commit(at(1))
