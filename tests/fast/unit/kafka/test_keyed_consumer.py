"""A member of a group over a driver that is played: what is committed, when it pauses, how it ends."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

import pytest
from confluent_kafka import KafkaError, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.consumer import (
    Backlog,
    ConsumerLimits,
    ConsumerRecord,
    Done,
    HandlerResult,
    KeyedConsumer,
    Reject,
    Retry,
)
from master_dataset.kafka.consumer import keyed_consumer as consuming
from master_dataset.kafka.consumer.partition import Partition
from tests.support.memory_topic import TOPIC, Driver, Message


class PlayedHandler:
    """Takes everything; `gate` holds the records of one key back."""

    def __init__(self, held: str = "") -> None:
        self.held, self.gate = held.encode(), asyncio.Event()
        self.taken: list[tuple[bytes, int]] = []
        self.unwanted: set[bytes] = set()
        self.at_once = self.most_at_once = 0

    def accepts(self, record: ConsumerRecord) -> bool:
        return record.key not in self.unwanted

    async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if records[0].key == self.held:
            await self.gate.wait()
        await asyncio.sleep(0)
        self.taken += [(record.key, record.offset) for record in records]
        self.at_once -= 1
        return Done()

    async def store_rejected(self, record: ConsumerRecord, refused: Reject) -> Done | Retry:
        raise AssertionError(record, refused)


async def run(
    driver: Driver, handler: PlayedHandler, limits: ConsumerLimits, until: Callable[[KeyedConsumer], bool]
) -> KeyedConsumer:
    consuming = KeyedConsumer({"group.id": "hooks"}, [TOPIC], handler, limits, driver)
    running = asyncio.ensure_future(consuming.run())
    async with asyncio.timeout(20):
        while not until(consuming):  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)
    consuming.stop()
    handler.gate.set()
    await running
    return consuming


class End(Message):
    """What the driver gives at the end of a partition: no record, and the offset that comes next."""

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._PARTITION_EOF)  # noqa: SLF001 - its name in the driver


def messages(number: int, *keys: str) -> list[Message]:
    return [Message(0, offset, keys[offset % len(keys)]) for offset in range(number)]


def test_all_is_taken_in_order_for_each_key_and_committed_in_the_end() -> None:
    driver, handler = Driver(messages(100, "1", "2", "3")), PlayedHandler()

    asyncio.run(run(driver, handler, ConsumerLimits(), lambda _: len(handler.taken) == 100))

    for key in (b"1", b"2", b"3"):
        own = [offset for of, offset in handler.taken if of == key]
        assert own == sorted(own)
    assert driver.committed[-1] == (0, 100)
    assert driver.is_closed


def test_the_marker_behind_the_last_record_is_passed_by_what_is_committed() -> None:
    """Otherwise retention deletes both, and a record that was delivered seems to be lost."""
    driver, handler = Driver([*messages(3, "1"), End(0, 4, "")]), PlayedHandler()

    asyncio.run(run(driver, handler, ConsumerLimits(), lambda _: len(handler.taken) == 3 and driver.left == 0))

    assert driver.committed[-1] == (0, 4)


def test_a_position_before_nothing_but_a_marker_moves_behind_it() -> None:
    driver, handler = Driver([End(0, 4, "")]), PlayedHandler()

    asyncio.run(run(driver, handler, ConsumerLimits(), lambda _: driver.left == 0))

    assert (handler.taken, driver.committed) == ([], [(0, 4)])


def test_nothing_is_committed_beyond_a_record_that_is_still_under_way() -> None:
    driver, handler = Driver(messages(100, "1", "2")), PlayedHandler(held="1")

    def others_are_done(consuming: KeyedConsumer) -> bool:
        return len(handler.taken) == 50 and consuming.waiting == 50

    async def work() -> list[tuple[int, int]]:
        consuming = KeyedConsumer({}, [TOPIC], handler, ConsumerLimits(leave=0.01), driver)
        running = asyncio.ensure_future(consuming.run())
        while not others_are_done(consuming):  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.001)
        consuming.stop()
        await running
        return driver.committed

    assert asyncio.run(work()) == [(0, 0)]


def test_when_too_many_wait_it_pauses_and_when_half_are_done_it_goes_on() -> None:
    driver, handler = Driver(messages(300, "1", "2")), PlayedHandler(held="1")
    most: list[int] = []

    async def work() -> None:
        consuming = KeyedConsumer({}, [TOPIC], handler, ConsumerLimits(waiting=40, batch=5), driver)
        running = asyncio.ensure_future(consuming.run())
        while len(handler.taken) < 300:
            most.append(consuming.waiting)
            if consuming.is_paused:
                handler.gate.set()
            await asyncio.sleep(0.001)
        consuming.stop()
        await running

    asyncio.run(work())

    assert driver.paused >= 1
    assert max(most) <= 40 + 10  # what one poll may bring
    assert len(handler.taken) == 300


def test_what_nobody_wants_is_behind_at_once_and_waits_for_none_of_the_others() -> None:
    driver, handler = Driver(messages(100, "1", "2")), PlayedHandler(held="1")
    handler.unwanted = {b"2"}

    async def work() -> tuple[int, Backlog]:
        consuming = KeyedConsumer({}, [TOPIC], handler, ConsumerLimits(), driver)
        running = asyncio.ensure_future(consuming.run())
        while driver.left or consuming.waiting < 50:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.001)
        driver.end = 107
        waiting, behind = consuming.waiting, consuming.backlog
        handler.gate.set()
        consuming.stop()
        await running
        return waiting, behind

    waiting, behind = asyncio.run(work())

    assert waiting == 50
    assert behind == Backlog(50 + 7, 1_800_000_000_000)
    assert {key for key, _ in handler.taken} <= {b"1"}


def test_no_more_calls_than_allowed_are_under_way() -> None:
    driver, handler = Driver(messages(200, *"abcdefghijklmnop")), PlayedHandler()

    asyncio.run(run(driver, handler, ConsumerLimits(under_way=3), lambda _: len(handler.taken) == 200))

    assert handler.most_at_once == 3


def test_what_is_taken_away_ends_what_is_under_way_and_commits_it_first() -> None:
    driver, handler = Driver(messages(40, "1", "2")), PlayedHandler(held="1")

    async def work() -> tuple[list[tuple[int, int]], list[tuple[bytes, int]]]:
        consuming = KeyedConsumer({}, [TOPIC], handler, ConsumerLimits(), driver)
        running = asyncio.ensure_future(consuming.run())
        while len(handler.taken) < 20:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.001)
        driver.rebalance()
        await asyncio.sleep(0.05)
        assert not driver.rebalanced.is_set()  # it waits for the call that is under way
        handler.gate.set()
        await asyncio.to_thread(driver.rebalanced.wait)
        committed, before = list(driver.committed), list(handler.taken[:21])
        async with asyncio.timeout(20):
            while len(handler.taken) - len(before) < 38:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.001)
        consuming.stop()
        await running
        return committed, before

    committed, before = asyncio.run(work())

    own = [(b"1", 0), *((b"2", offset) for offset in range(1, 40, 2))]
    assert sorted(before) == sorted(own)  # of what is held one call was under way, and no other was begun
    assert committed == [(0, 2)]
    again = [offset for key, offset in handler.taken[len(before) :] if key == b"1"]
    assert again == list(range(2, 40, 2))
    assert handler.most_at_once <= 2


def test_what_was_paused_and_is_taken_away_goes_on_when_it_comes_back() -> None:
    driver, handler = Driver(messages(300, "1")), PlayedHandler(held="1")

    async def work() -> None:
        consuming = KeyedConsumer({}, [TOPIC], handler, ConsumerLimits(waiting=40, batch=5, leave=0.01), driver)
        running = asyncio.ensure_future(consuming.run())
        while not consuming.is_paused:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.001)
        driver.rebalance()
        await asyncio.to_thread(driver.rebalanced.wait)
        handler.gate.set()
        async with asyncio.timeout(5):
            while len(handler.taken) < 300:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.001)
        consuming.stop()
        await running

    asyncio.run(work())

    assert [offset for _, offset in handler.taken] == list(range(300))


def test_a_taker_that_breaks_ends_the_consumer_with_its_error() -> None:
    class Broken(PlayedHandler):
        async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
            raise OSError(f"disk, at {records[0].offset}")

    driver = Driver(messages(3, "1"))

    with pytest.raises(OSError, match="disk"):
        asyncio.run(KeyedConsumer({}, [TOPIC], Broken(), ConsumerLimits(), driver).run())
    assert driver.is_closed
    assert driver.committed == [(0, 0)]


class Fatal(Message):
    """What the driver gives once it cannot go on."""

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._FATAL, "it cannot go on", True)  # noqa: FBT003, SLF001 - its name in the driver


def test_a_member_that_the_broker_has_ended_makes_no_more_calls() -> None:
    """Its successor reads the same records again: two would deliver them, and what fails would be tried for ever."""
    driver, calls = Driver([*messages(3, "1"), Fatal(0, 3, "1")]), list[int]()

    class Failing(PlayedHandler):
        async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
            calls.append(records[0].offset)
            return Retry("it does not answer")

    async def work() -> tuple[int, int]:
        member = KeyedConsumer({}, [TOPIC], Failing(), ConsumerLimits(longest_wait=0.01), driver)
        with pytest.raises(BrokerUnavailableError):
            await member.run()
        at_end = len(calls)
        await asyncio.sleep(0.1)
        return at_end, len(calls)

    at_end, later = asyncio.run(work())

    assert later == at_end
    assert driver.is_closed
    assert driver.committed == [(0, 0)]


def test_a_key_that_has_got_through_while_its_partition_is_taken_away_has_not_failed_since_then() -> None:
    """Else an endpoint that fails again weeks later counts as one that has failed for weeks, and is suspended."""
    driver = Driver([*messages(1, "1")])

    class Late(PlayedHandler):
        async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
            self.taken += [(record.key, record.offset) for record in records]
            if len(self.taken) == 2:  # the call that is under way
                await self.gate.wait()
                return Done()
            return Retry("it does not answer")

    handler = Late()

    async def work() -> tuple[float, float | None]:
        member = KeyedConsumer({}, [TOPIC], handler, ConsumerLimits(longest_wait=0.01), driver)
        running = asyncio.ensure_future(member.run())
        async with asyncio.timeout(20):
            while len(handler.taken) < 2:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.001)
            driver.rebalance()
            await asyncio.sleep(0.05)
            handler.gate.set()
            await asyncio.to_thread(driver.rebalanced.wait)
            recovered_at = time.time()
            driver.log.append(Message(0, 1, "1"))
            while member.failing_since is None:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.001)
        since = member.failing_since
        member.stop()
        await running
        return recovered_at, since

    recovered_at, since = asyncio.run(work())

    assert driver.committed[0] == (0, 1)
    assert since is not None
    assert since >= recovered_at


def test_what_to_commit_is_worked_out_where_records_begin_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    callers: set[int] = set()

    class Watched(Partition):
        @property
        def position(self) -> int | None:
            callers.add(threading.get_ident())
            return super().position

    monkeypatch.setattr(consuming, "Partition", Watched)
    monkeypatch.setattr(consuming, "COMMIT_SECONDS", 0.001)
    driver, handler = Driver(messages(50, "1", "2")), PlayedHandler()

    async def work() -> None:
        member = KeyedConsumer({}, [TOPIC], handler, ConsumerLimits(), driver)
        running = asyncio.ensure_future(member.run())
        while (0, 50) not in driver.committed:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.001)
        assert driver.revoke is not None
        await asyncio.to_thread(driver.revoke, None, [TopicPartition(TOPIC, 0)])
        member.stop()
        await running

    asyncio.run(work())

    assert callers == {threading.get_ident()}


def test_a_commit_that_was_begun_ends_before_the_next_one_so_that_a_place_never_goes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consuming, "COMMIT_SECONDS", 0.001)
    begun, goes_on = threading.Event(), threading.Event()

    class Slow(Driver):
        def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
            if not begun.is_set():
                begun.set()
                goes_on.wait()
            super().commit(offsets, asynchronous=asynchronous)

    driver, handler = Slow(messages(50, "1")), PlayedHandler()

    async def work() -> None:
        member = KeyedConsumer({}, [TOPIC], handler, ConsumerLimits(), driver)
        running = asyncio.ensure_future(member.run())
        await asyncio.to_thread(begun.wait)
        while len(handler.taken) < 50:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.001)
        member.stop()
        await asyncio.sleep(0.05)
        goes_on.set()
        await running

    asyncio.run(work())

    assert driver.committed == sorted(driver.committed)
    assert driver.committed[-1] == (0, 50)


def test_a_member_that_can_commit_no_more_ends_with_the_error() -> None:
    class Broken(Driver):
        def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
            raise RuntimeError(f"nobody foresaw it: {len(offsets)}, {asynchronous}")

    driver = Broken(messages(3, "1"))

    async def work() -> None:
        async with asyncio.timeout(20):
            await KeyedConsumer({}, [TOPIC], PlayedHandler(), ConsumerLimits(), driver).run()

    with pytest.raises(RuntimeError, match="nobody foresaw it"):
        asyncio.run(work())
    assert driver.is_closed


def test_it_never_commits_by_itself_and_reads_what_is_committed() -> None:
    driver = Driver([])

    KeyedConsumer(
        {"group.id": "hooks", "isolation.level": "read_uncommitted"}, [TOPIC], PlayedHandler(), ConsumerLimits(), driver
    )

    assert driver.settings["enable.auto.commit"] is False
    assert driver.settings["isolation.level"] == "read_committed"
