"""A value may be as old as agreed; a fresh read begins after the request."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from serving_layer.caching import RefreshAheadCache


class Read:
    """A source that has another value each time it is read."""

    def __init__(self, seconds: float) -> None:
        self.now, self.times, self.began, self.error = 0.0, 0, 0, None
        self.cache = RefreshAheadCache(self._value, seconds, lambda: self.now)

    async def _value(self) -> int:
        self.began += 1
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        self.times += 1
        return self.times

    error: Exception | None


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(coroutine)


def test_within_its_time_a_value_is_read_once_and_afterwards_again() -> None:
    async def scenario() -> None:
        read = Read(seconds=1)

        first = [await read.cache.read() for _ in range(3)]
        read.now = 1.5
        later = await read.cache.read()

        assert (first, later) == ([1, 1, 1], 2)

    run(scenario())


def test_a_value_that_grows_old_is_read_ahead_while_nobody_waits() -> None:
    async def scenario() -> None:
        read = Read(seconds=1)
        await read.cache.read()

        read.now = 0.6
        meanwhile = await read.cache.read()
        await asyncio.sleep(0.01)
        read.now = 1.1
        then = await read.cache.read()

        assert (meanwhile, then, read.times) == (1, 2, 2)

    run(scenario())


def test_a_fresh_read_begins_after_the_request() -> None:
    async def scenario() -> None:
        read = Read(seconds=1)
        await read.cache.read()

        assert await read.cache.read(fresh=True) == 2
        assert await read.cache.read() == 2

    run(scenario())


def test_with_no_time_at_all_every_question_is_read_even_if_the_clock_stands_still() -> None:
    async def scenario() -> None:
        read = Read(seconds=0)

        assert [await read.cache.read() for _ in range(3)] == [1, 2, 3]

    run(scenario())


def test_a_failed_read_ahead_is_raised_to_the_next_caller_once_the_value_is_too_old() -> None:
    async def scenario() -> None:
        read = Read(seconds=1)
        await read.cache.read()

        read.now, read.error = 0.6, OSError("no answer")
        meanwhile = await read.cache.read()
        await asyncio.sleep(0.01)
        read.now = 1.1

        assert meanwhile == 1
        with pytest.raises(OSError, match="no answer"):
            await read.cache.read()

    run(scenario())


def test_many_who_ask_together_share_a_read() -> None:
    async def scenario() -> None:
        read = Read(seconds=1)

        found = await asyncio.gather(*(read.cache.read() for _ in range(50)))

        assert set(found) <= {1, 2}
        assert read.times <= 2

    run(scenario())


def test_once_cleared_nothing_earlier_is_returned_not_even_a_read_in_progress() -> None:
    async def scenario() -> None:
        read = Read(seconds=1)
        under_way = asyncio.ensure_future(read.cache.read())
        while not read.began:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0)

        read.cache.expire()

        assert (await under_way, await read.cache.read()) == (1, 2)

    run(scenario())
