"""The records of one key: in order, at the pace of the handler; a failure waits, an error is set aside."""

import asyncio
from collections.abc import Callable, Sequence

from master_dataset.kafka.consumer import BlockedKey, ConsumerRecord, Done, HandlerResult, Reject, Retry
from master_dataset.kafka.consumer.key_queue import ATTEMPTS_BEFORE_SPLIT, KeyQueue


class PlayedHandler:
    """A handler that returns what `answer` returns, and keeps each call."""

    def __init__(self, answer: Callable[[list[int], int], HandlerResult]) -> None:
        self.answer = answer
        self.calls: list[list[int]] = []
        self.aside: list[int] = []
        self.done: list[int] = []
        self.called = asyncio.Event()
        self.no_room = 0

    async def handle(self, records: Sequence[ConsumerRecord]) -> HandlerResult:
        offsets = [record.offset for record in records]
        self.calls.append(offsets)
        self.called.set()
        await asyncio.sleep(0)
        return self.answer(offsets, len(self.calls))

    def accepts(self, _: ConsumerRecord) -> bool:
        return True

    async def store_rejected(self, record: ConsumerRecord, _: Reject) -> Done | Retry:
        if self.no_room:
            self.no_room -= 1
            return Retry("no room")
        self.aside.append(record.offset)
        return Done()

    def run(self, records: int, most: int = 500) -> "PlayedHandler":
        async def work() -> None:
            queue = KeyQueue(self, most, longest_wait=0.001)
            queue.waiting.extend(ConsumerRecord("alerts", 0, offset, b"1", b"", 0) for offset in range(records))
            await queue.run(asyncio.Semaphore(1), lambda record: self.done.append(record.offset))

        asyncio.run(work())
        return self


def test_batches_grow_while_the_receiver_is_quick_and_never_beyond_what_is_allowed() -> None:
    handler = PlayedHandler(lambda _, __: Done()).run(100, most=16)

    assert [len(call) for call in handler.calls] == [1, 2, 4, 8, 16, 16, 16, 16, 16, 5]
    assert handler.done == list(range(100))


def test_a_failure_is_tried_again_and_nothing_overtakes_it() -> None:
    handler = PlayedHandler(lambda _, call: Retry("no answer") if call in (3, 4, 5) else Done()).run(20)

    assert handler.done == list(range(20))
    assert handler.calls[2:6] == [[3, 4, 5, 6]] * 4


def test_what_is_tried_again_is_the_very_same_and_only_what_follows_it_comes_in_smaller_portions() -> None:
    handler = PlayedHandler(lambda _, call: Retry("no answer") if call == 4 else Done()).run(40)

    assert handler.calls[3] == handler.calls[4] == list(range(7, 15))
    assert [len(call) for call in handler.calls[5:]] == [8, 16, 1]


def test_what_comes_while_a_batch_is_tried_again_waits_for_the_next_one() -> None:
    async def work() -> list[list[int]]:
        handler = PlayedHandler(lambda _, call: Retry("no answer") if call == 1 else Done())
        queue = KeyQueue(handler, 500, longest_wait=0.001)
        queue.waiting.append(ConsumerRecord("alerts", 0, 0, b"1", b"", 0))
        task = asyncio.ensure_future(queue.run(asyncio.Semaphore(1), lambda _: None))
        await handler.called.wait()
        queue.waiting.append(ConsumerRecord("alerts", 0, 1, b"1", b"", 0))
        await task
        return handler.calls

    assert asyncio.run(work()) == [[0], [0], [1]]


def test_a_failure_that_is_none_of_their_number_never_parts_a_batch() -> None:
    handler = PlayedHandler(lambda _, call: Retry("away") if 2 <= call < 100 else Done()).run(20)

    assert handler.calls[1:100] == [[1, 2]] * 99
    assert handler.done == list(range(20))


def test_a_batch_that_may_be_too_much_is_tried_again_so_often_and_then_each_of_its_records_alone() -> None:
    handler = PlayedHandler(lambda offsets, _: Retry("too slow", fewer=True) if len(offsets) > 1 else Done()).run(5)

    assert handler.calls == [[0], *[[1, 2]] * ATTEMPTS_BEFORE_SPLIT, [1], [2], [3], [4]]
    assert handler.done == list(range(5))


def test_an_error_puts_aside_the_record_that_is_to_blame_and_no_other() -> None:
    handler = PlayedHandler(lambda offsets, _: Reject("bad") if 7 in offsets else Done()).run(20)

    assert handler.aside == [7]
    assert handler.done == list(range(20))


def test_what_cannot_be_put_aside_waits_until_it_can() -> None:
    handler = PlayedHandler(lambda offsets, _: Reject("bad") if 7 in offsets else Done())
    handler.no_room = 3

    handler.run(20)

    assert (handler.aside, handler.no_room) == ([7], 0)
    assert handler.done == list(range(20))


def test_a_key_queue_that_is_woken_retries_at_once_and_says_what_blocks_it_meanwhile() -> None:
    async def work() -> tuple[BlockedKey | None, BlockedKey | None, list[int]]:
        handler = PlayedHandler(lambda _, call: Retry("no answer", after=3600) if call == 1 else Done())
        queue = KeyQueue(handler, 500, longest_wait=3600)
        queue.waiting.extend(ConsumerRecord("alerts", 0, offset, b"1", b"", 0) for offset in range(3))
        task = asyncio.ensure_future(queue.run(asyncio.Semaphore(1), lambda record: handler.done.append(record.offset)))
        while queue.blocked is None:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0)
        before = queue.blocked
        queue.wake()
        await task
        return before, queue.blocked, handler.done

    before, after, done = asyncio.run(work())

    assert before is not None
    assert (before.record.offset, before.why) == (0, "no answer")
    assert (after, done) == (None, [0, 1, 2])


def test_a_key_queue_that_is_woken_during_a_call_retries_at_once_when_that_call_has_failed() -> None:
    async def work() -> list[int]:
        handler = PlayedHandler(lambda _, call: Retry("no answer", after=3600) if call == 1 else Done())
        queue = KeyQueue(handler, 500, longest_wait=3600)
        queue.waiting.extend(ConsumerRecord("alerts", 0, offset, b"1", b"", 0) for offset in range(3))
        task = asyncio.ensure_future(queue.run(asyncio.Semaphore(1), lambda record: handler.done.append(record.offset)))
        await handler.called.wait()
        queue.wake()
        async with asyncio.timeout(20):
            await task
        return handler.done

    assert asyncio.run(work()) == [0, 1, 2]


def test_a_key_queue_that_is_ended_starts_nothing_more_and_waits_for_no_retry() -> None:
    async def work() -> tuple[int, list[int]]:
        handler = PlayedHandler(lambda _, __: Retry("no answer", after=3600))
        queue = KeyQueue(handler, 500, longest_wait=3600)
        queue.waiting.extend(ConsumerRecord("alerts", 0, offset, b"1", b"", 0) for offset in range(3))
        task = asyncio.ensure_future(queue.run(asyncio.Semaphore(1), lambda _: None))
        await handler.called.wait()
        queue.stop()
        await task
        return len(handler.calls), handler.done

    assert asyncio.run(work()) == (1, [])
