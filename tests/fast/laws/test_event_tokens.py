"""Tokens as texts, their joins, and what it takes for an answer to contain what they name."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galatea.client.tokens import joined as joined_by_client
from master_dataset.kafka.producer import Delivery, DeliveryStatus
from master_dataset.visits.visit import RULES
from serving_layer.errors import NotYetError
from serving_layer.ingest.tokens import Acknowledged, Sent
from serving_layer.store.at_least import AtLeast, Demand, Opening
from serving_layer.store.readers import Position
from serving_layer.store.snapshot import ReadSnapshot
from tests.support.examples import examples
from views.control.publication import Pointer
from views.control.token import EventToken, InvalidTokenError, TopicEnds, joined
from views.core.cut import UNIX_EPOCH
from views.core.waiting import WaitingRule

TOPICS = ("pos_transactions", "people_counts", "a.b-c_d")
TAGS = st.sampled_from(["00000000", "e21f9da0"])
MS = st.integers(0, 4_000_000_000_000)
ENDS = st.dictionaries(st.integers(0, 40), st.integers(1, 2**50), min_size=1, max_size=5)
TOKENS = st.just(EventToken()) | st.builds(
    EventToken,
    st.dictionaries(st.sampled_from(TOPICS), st.builds(TopicEnds, TAGS, ENDS), min_size=1, max_size=3),
    st.none() | MS,
    st.none() | MS,
    MS,
)


@given(TOKENS)
@settings(max_examples=examples(2000), deadline=None)
def test_a_token_is_read_from_its_text(token: EventToken) -> None:
    assert EventToken.of_text(token.text()) == token


@given(st.text(max_size=60) | st.text("0123456789abcdef~.", max_size=60).map(lambda text: f"1~{text}"))
@settings(max_examples=examples(1000), deadline=None)
def test_any_text_is_a_token_or_is_refused(text: str) -> None:
    try:
        token = EventToken.of_text(text)
    except InvalidTokenError:
        return
    assert EventToken.of_text(token.text()) == token


@given(st.lists(TOKENS, max_size=4))
@settings(max_examples=examples(2000), deadline=None)
def test_the_client_joins_tokens_as_the_platform_does(tokens: Sequence[EventToken]) -> None:
    text = ""
    for each in tokens:
        text = joined_by_client(text, each.text())

    assert EventToken.of_text(text) == joined(tokens)


@given(TOKENS, TOKENS)
@settings(max_examples=examples(2000), deadline=None)
def test_a_join_names_all_that_both_name_of_the_same_topics(one: EventToken, other: EventToken) -> None:
    both = one.joined(other)

    assert both.cut_ms >= max(one.cut_ms, other.cut_ms)
    for token in (one, other):
        for topic, number, end in token.partitions:
            if both.topics[topic].tag == token.topics[topic].tag:
                assert both.topics[topic].ends[number] >= end
    assert one.joined(one) == one


# What contains a token. The rules of both layers are written down again here, event by event.

TOPIC, TAG = "wifi_sightings", "e21f9da0"
RULE = WaitingRule(timedelta(milliseconds=40), RULES, frozenset())


class Received(NamedTuple):
    """An event: where it is, when its broker received it, and when it happened."""

    partition: int
    offset: int
    stamp: int
    happened: int


class State(NamedTuple):
    """What an answer may be computed from."""

    cut: int
    positions: Mapping[int, int]
    openings: Sequence[Opening]
    has_speed: bool


@st.composite
def histories(draw: st.DrawFn) -> tuple[Sequence[Sequence[Received]], State]:
    """Some requests with events, in partitions whose timestamps rise; partition 2 was added or is being added."""
    stamps = {number: sorted(draw(st.lists(st.integers(0, 100), max_size=6))) for number in range(3)}
    events = [
        Received(number, offset, stamp, stamp - draw(st.integers(0, 60)))
        for number, own in stamps.items()
        for offset, stamp in enumerate(own)
    ]
    requests = (
        draw(st.lists(st.lists(st.sampled_from(events), min_size=1, max_size=3), min_size=1, max_size=4))
        if events
        else []
    )
    opened = draw(st.none() | st.integers(0, 120))
    grown = [Opening(2, 3, opened)] if draw(st.booleans()) else []
    readable = 2 if grown and opened is None else 3
    positions = {number: draw(st.integers(0, len(stamps[number]))) for number in range(readable)}
    cut = draw(st.integers(0, 140))
    if grown and opened is None:
        cut = draw(st.integers(0, 100))
    return requests, State(cut, positions, grown, draw(st.booleans()))


def is_contained(event: Received, state: State) -> bool:
    """In batch, or in the rows of the speed layer that count."""
    [opened] = [each.opened_ms for each in state.openings if each.before <= event.partition < each.partitions] or [0]
    if opened is None:
        return False
    received = max(event.stamp, opened)
    if received < state.cut:
        return True
    is_read = state.has_speed and event.offset < state.positions.get(event.partition, 0)
    return is_read and not RULE.waits(TOPIC, event.happened, received)


class Topics:
    """TopicReader of a state."""

    def __init__(self, state: State, tag: str = TAG) -> None:
        self.state, self.tag = state, tag

    async def tags(self, _generation: int) -> Mapping[str, str]:
        return {TOPIC: self.tag}

    async def openings(self) -> Sequence[Opening]:
        return self.state.openings


def token_of(events: Sequence[Received]) -> EventToken:
    acknowledged = Acknowledged(TOPIC, RULE)
    for each in events:
        delivery = Delivery(DeliveryStatus.ACKNOWLEDGED, each.partition, each.offset, each.stamp)
        acknowledged.add(Sent(delivery, each.happened))
    token = acknowledged.token(TAG)
    assert token is not None
    return token


def answers(token: EventToken, state: State) -> bool:
    """Whether an answer from this state is given to somebody who demands the token."""
    pointer = Pointer(1, UNIX_EPOCH + timedelta(milliseconds=state.cut), "run", 7, {})
    positions = tuple(Position(TOPIC, number, at, None) for number, at in state.positions.items() if at)
    snapshot = ReadSnapshot(pointer, positions if state.has_speed else (), () if state.has_speed else ("speed",))
    waits = AtLeast(Topics(state), [TOPIC], 0, lambda: 0.0)

    async def never() -> ReadSnapshot:
        raise AssertionError

    async def asleep(_: float) -> None:
        raise AssertionError

    try:
        assert asyncio.run(waits.wait(Demand(token), snapshot, never, asleep)) is snapshot
    except NotYetError:
        return False
    return True


@given(histories())
@settings(max_examples=examples(2000), deadline=None)
def test_an_answer_that_is_given_contains_every_event_that_the_token_names(
    history: tuple[Sequence[Sequence[Received]], State],
) -> None:
    requests, state = history
    named = [event for request in requests for event in request]

    if answers(joined(map(token_of, requests)), state):
        assert all(is_contained(event, state) for event in named)


@pytest.mark.parametrize(("cut", "read"), [(100, 0), (0, 1)], ids=["by the cut", "by the speed layer"])
def test_an_event_that_one_layer_has_passed_is_answered_and_contained(cut: int, read: int) -> None:
    event, state = Received(0, 0, 10, 5), State(cut, {0: read, 1: 0, 2: 0}, [], has_speed=True)

    assert is_contained(event, state)
    assert answers(token_of([event]), state)


@given(histories())
@settings(max_examples=examples(1000), deadline=None)
def test_what_both_layers_have_passed_is_answered(history: tuple[Sequence[Sequence[Received]], State]) -> None:
    requests, state = history
    passed = state._replace(cut=500, has_speed=True, openings=[each._replace(opened_ms=0) for each in state.openings])

    assert answers(joined(map(token_of, requests)), passed)


@given(histories())
@settings(max_examples=examples(1000), deadline=None)
def test_without_speed_a_cut_after_the_last_event_is_enough(
    history: tuple[Sequence[Sequence[Received]], State],
) -> None:
    requests, state = history
    published = state._replace(cut=200, has_speed=False, openings=[])

    assert answers(joined(map(token_of, requests)), published)


@pytest.mark.parametrize(
    "text", ["2~~~", "1", "1~~~~t", "1~G~~", "1~~~~t~e21f9da0~01", "1~~~~t~e21f9da0~1~t~e21f9da0~2", "x" * 9000]
)
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(InvalidTokenError):
        EventToken.of_text(text)
