"""A value is made once for all who request it meanwhile, and kept as long as there is room."""

import asyncio

import pytest

from serving_layer.caching import SharedCache


def test_concurrent_requests_make_a_body_once_and_later_ones_not_at_all() -> None:
    async def scenario() -> None:
        made, cache = [], SharedCache[str, bytes](100, len)

        async def make() -> bytes:
            made.append(1)
            await asyncio.sleep(0.01)
            return b"body"

        together = await asyncio.gather(*(cache.get("key", make) for _ in range(20)))
        later = await cache.get("key", make)

        assert {*together, later} == {b"body"}
        assert len(made) == 1

    asyncio.run(scenario())


def test_all_who_wait_get_the_error_and_the_next_request_tries_again() -> None:
    async def scenario() -> None:
        cache = SharedCache[str, bytes](100, len)

        async def fails() -> bytes:
            await asyncio.sleep(0)
            raise OSError("no answer")

        async def makes() -> bytes:
            return b"body"

        raised = await asyncio.gather(*(cache.get("key", fails) for _ in range(3)), return_exceptions=True)
        then = await cache.get("key", makes)

        assert [str(each) for each in raised] == ["no answer"] * 3
        assert then == b"body"

    asyncio.run(scenario())


def test_who_gives_up_does_not_end_it_for_the_others() -> None:
    async def scenario() -> None:
        cache = SharedCache[str, bytes](100, len)

        async def make() -> bytes:
            await asyncio.sleep(0.01)
            return b"body"

        impatient = asyncio.ensure_future(cache.get("key", make))
        patient = asyncio.ensure_future(cache.get("key", make))
        await asyncio.sleep(0)
        impatient.cancel()

        assert await patient == b"body"
        with pytest.raises(asyncio.CancelledError):
            await impatient

    asyncio.run(scenario())


def test_a_body_larger_than_the_cache_is_made_each_time() -> None:
    async def scenario() -> None:
        made, cache = [], SharedCache[str, bytes](3, len)

        async def make() -> bytes:
            made.append(1)
            return b"body"

        for _ in range(2):
            assert await cache.get("key", make) == b"body"

        assert len(made) == 2

    asyncio.run(scenario())
