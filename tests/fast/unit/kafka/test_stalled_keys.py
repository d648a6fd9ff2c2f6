"""A key that does not get on stops no other one of its partition, however much waits behind it, and loses nothing."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from master_dataset.kafka.consumer import (
    ConsumerLimits,
    ConsumerRecord,
    Done,
    HandlerResult,
    KeyedConsumer,
    Reject,
    Retry,
)
from master_dataset.kafka.consumer import key_queue as queue
from tests.support.memory_topic import TOPIC, Driver, Message

LIMITS = ConsumerLimits(waiting=40, batch=5, longest_wait=0.01, leave=1)
AT_A_LOOK = 10
PATIENCE = 20


class PlayedHandler:
    """Takes everything, but of the keys that `fail` or `hang`, until `heal`."""

    def __init__(self, fail: str = "", hang: str = "") -> None:
        self.fail, self.hang = fail.encode(), hang.encode()
        self.healthy = asyncio.Event()
        self.taken: list[tuple[bytes, int]] = []
        self.failed: list[tuple[int, ...]] = []

    def heal(self) -> None:
        self.healthy.set()

    def accepts(self, _: ConsumerRecord) -> bool:
        return True

    async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        key, offsets = records[0].key, tuple(record.offset for record in records)
        if key in self.hang:
            await self.healthy.wait()
        await asyncio.sleep(0)
        if key in self.fail and not self.healthy.is_set():
            self.failed.append(offsets)
            return Retry("no answer")
        self.taken += [(key, offset) for offset in offsets]
        return Done()

    async def store_rejected(self, record: ConsumerRecord, refused: Reject) -> Done | Retry:
        raise AssertionError(record, refused)

    def of(self, *keys: str) -> dict[str, list[int]]:
        return {key: [offset for of, offset in self.taken if of == key.encode()] for key in keys}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "STALLED_SECONDS", 0.01)


def messages(number: int, keys: str) -> list[Message]:
    return [Message(0, offset, keys[offset % len(keys)]) for offset in range(number)]


def all_of(number: int, keys: str) -> dict[str, list[int]]:
    return {key: list(range(at, number, len(keys))) for at, key in enumerate(keys)}


class Played:
    """A member over records of one partition, which lie there; `most`: records that waited at once."""

    def __init__(self, number: int, keys: str, handler: PlayedHandler) -> None:
        self.driver, self.handler, self.most = Driver(messages(number, keys)), handler, 0
        self.member = KeyedConsumer({}, [TOPIC], handler, LIMITS, self.driver)
        self.running = asyncio.ensure_future(self.member.run())

    async def until_taken(self, number: int) -> None:
        await self.until(lambda: len(self.handler.taken) >= number)

    async def until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not so() and not self.running.done():
                self.most = max(self.most, self.member.waiting)
                await asyncio.sleep(0.001)

    async def end(self) -> None:
        self.member.stop()
        await self.running


@pytest.mark.parametrize("how", ["fail", "hang"])
def test_others_of_its_partition_go_on_and_when_it_gets_on_all_of_it_comes_in_order(how: str) -> None:
    async def work() -> tuple[Played, int, list[tuple[int, int]]]:
        played = Played(600, "abc", PlayedHandler(**{how: "a"}))
        await played.until_taken(400)
        records = played.member.backlog.records
        await played.until(lambda: bool(played.driver.committed))
        committed = list(played.driver.committed)
        played.handler.heal()
        await played.until_taken(600)
        await played.end()
        return played, records, committed

    played, records, committed = asyncio.run(work())

    assert played.handler.of(*"abc") == all_of(600, "abc")
    assert records == 200
    assert set(committed) == {(0, 0)}
    assert played.most <= LIMITS.waiting + AT_A_LOOK
    assert played.driver.committed[-1] == (0, 600)


def test_what_was_handed_over_comes_again_as_it_was_though_what_waits_behind_it_is_let_go() -> None:
    async def work() -> Played:
        handler = PlayedHandler(fail="a")
        played = Played(400, "ab", handler)
        await played.until_taken(200)
        handler.heal()
        await played.until_taken(400)
        await played.end()
        return played

    handler = asyncio.run(work()).handler

    assert set(handler.failed) == {(0,)}
    assert handler.of(*"ab") == all_of(400, "ab")


def test_many_that_do_not_get_on_leave_room_for_the_one_that_does() -> None:
    keys = "abcdefghijklmnopqrstuvwxyz"

    async def work() -> Played:
        played = Played(26 * 40, keys, PlayedHandler(fail=keys[:-1]))
        await played.until_taken(40)
        assert played.handler.of("z") == {"z": all_of(26 * 40, keys)["z"]}
        played.handler.heal()
        await played.until_taken(26 * 40)
        await played.end()
        return played

    played = asyncio.run(work())

    assert played.handler.of(*keys) == all_of(26 * 40, keys)
    assert played.most <= LIMITS.waiting + AT_A_LOOK


def test_one_that_was_let_go_and_is_taken_away_comes_again_from_where_it_stood_and_has_failed_since_then() -> None:
    async def work() -> Played:
        played = Played(300, "ab", PlayedHandler(fail="a"))
        await played.until_taken(150)
        since, failed = played.member.failing_since, len(played.handler.failed)
        played.driver.rebalance()
        await asyncio.to_thread(played.driver.rebalanced.wait)
        while len(played.handler.failed) < failed + 20:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)
        assert played.member.failing_since == since  # a day of failures is not counted anew
        played.handler.heal()
        await played.until_taken(150 + 300)
        await played.end()
        return played

    played = asyncio.run(work())

    assert played.handler.of("a") == {"a": all_of(300, "ab")["a"]}
    assert played.driver.committed[-1] == (0, 300)


def test_where_the_broker_goes_back_nothing_is_known_any_more_of_what_lay_there_and_nothing_is_left_out() -> None:
    async def work() -> Played:
        played = Played(40, "ab", PlayedHandler(hang="a"))
        await played.until_taken(20)
        played.driver.go_back(0, 10)
        await asyncio.sleep(0.05)
        played.handler.heal()
        await played.until_taken(20 + 1 + 30)
        await played.end()
        return played

    played = asyncio.run(work())

    assert played.handler.of("a") == {"a": [0, *range(10, 40, 2)]}
    assert sorted(played.handler.of("b")["b"]) == sorted([*range(1, 40, 2), *range(11, 40, 2)])
    assert played.driver.committed[-1] == (0, 40)


def test_a_record_of_a_partition_that_is_not_its_own_is_left_to_whoever_has_it() -> None:
    class Late(Driver):
        def consume(self, most: int, seconds: float) -> list[Message]:
            return [*super().consume(most, seconds), Message(1, 7, "a")]

    async def work() -> tuple[Driver, PlayedHandler]:
        driver, handler = Late(messages(20, "ab")), PlayedHandler()
        member = KeyedConsumer({}, [TOPIC], handler, LIMITS, driver)
        running = asyncio.ensure_future(member.run())
        while len(handler.taken) < 20:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)
        member.stop()
        await running
        return driver, handler

    driver, handler = asyncio.run(work())

    assert handler.of(*"ab") == all_of(20, "ab")
    assert {partition for partition, _ in driver.committed} == {0}
