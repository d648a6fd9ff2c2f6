"""One name never has all places."""

import asyncio

from serving_layer.limits import Turns


def test_a_name_leaves_places_to_others_and_is_forgotten() -> None:
    async def work() -> None:
        turns, held, done = Turns(2, 1), asyncio.Event(), []

        async def hold(name: str) -> None:
            async with turns.of(name):
                await held.wait()
                done.append(name)

        greedy = [asyncio.ensure_future(hold("greedy")) for _ in range(3)]
        await asyncio.sleep(0)
        async with turns.of("other"):
            assert len(turns) == 2
            assert done == []
        held.set()
        await asyncio.gather(*greedy)

        assert len(done) == 3
        assert len(turns) == 0

    asyncio.run(work())


def test_whoever_gives_up_waiting_leaves_no_place_taken() -> None:
    taken = []

    async def work() -> None:
        turns = Turns(1, 1)
        async with turns.of("a"):
            waiting = [asyncio.ensure_future(turns.of(name).__aenter__()) for name in ("a", "b")]
            await asyncio.sleep(0)
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        async with turns.of("b"):
            taken.append("b")

    asyncio.run(work())
    assert taken == ["b"]
