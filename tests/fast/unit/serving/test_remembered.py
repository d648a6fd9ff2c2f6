"""A body is made once for all who ask while it is made, and kept as long as there is room."""

import asyncio

import pytest

from serving_layer.caching import BodyCache


def test_those_who_ask_together_have_it_made_once_and_those_who_ask_later_not_at_all() -> None:
    async def asked() -> None:
        made, remembered = [], BodyCache(100)

        async def make() -> bytes:
            made.append(1)
            await asyncio.sleep(0.01)
            return b"body"

        together = await asyncio.gather(*(remembered.get("key", make) for _ in range(20)))
        later = await remembered.get("key", make)

        assert {*together, later} == {b"body"}
        assert len(made) == 1

    asyncio.run(asked())


def test_what_making_raises_is_told_to_all_and_the_next_one_tries_again() -> None:
    async def asked() -> None:
        remembered = BodyCache(100)

        async def fails() -> bytes:
            await asyncio.sleep(0)
            raise OSError("no answer")

        async def makes() -> bytes:
            return b"body"

        told = await asyncio.gather(*(remembered.get("key", fails) for _ in range(3)), return_exceptions=True)
        then = await remembered.get("key", makes)

        assert [str(each) for each in told] == ["no answer"] * 3
        assert then == b"body"

    asyncio.run(asked())


def test_who_gives_up_does_not_end_it_for_the_others() -> None:
    async def asked() -> None:
        remembered = BodyCache(100)

        async def make() -> bytes:
            await asyncio.sleep(0.01)
            return b"body"

        impatient = asyncio.ensure_future(remembered.get("key", make))
        patient = asyncio.ensure_future(remembered.get("key", make))
        await asyncio.sleep(0)
        impatient.cancel()

        assert await patient == b"body"
        with pytest.raises(asyncio.CancelledError):
            await impatient

    asyncio.run(asked())


def test_a_body_that_is_larger_than_all_the_room_is_made_each_time() -> None:
    async def asked() -> None:
        made, remembered = [], BodyCache(3)

        async def make() -> bytes:
            made.append(1)
            return b"body"

        for _ in range(2):
            assert await remembered.get("key", make) == b"body"

        assert len(made) == 2

    asyncio.run(asked())
