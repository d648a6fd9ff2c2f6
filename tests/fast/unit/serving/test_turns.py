"""One name never has all places, and a name that has none is next."""

import asyncio

import pytest

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


def test_a_name_that_holds_nothing_is_next_however_many_wait() -> None:
    """Two tenants fill all places, and have more waiting."""
    began: list[str] = []

    async def work() -> None:
        turns, ends = Turns(4, 3), asyncio.Semaphore(0)

        async def run(name: str) -> None:
            async with turns.of(name):
                began.append(name)
                await ends.acquire()

        tasks = [asyncio.ensure_future(run(name)) for name in [*"aaaaaa", *"bbbbbb"]]
        await asyncio.sleep(0)
        tasks.append(asyncio.ensure_future(run("c")))
        await asyncio.sleep(0)
        assert began == [*"aaab"]
        for _ in tasks:
            ends.release()
        await asyncio.gather(*tasks)

    asyncio.run(work())
    assert began[4] == "c"
    assert sorted(began) == sorted("aaaaaabbbbbbc")


@pytest.mark.parametrize("is_given", [False, True])
def test_who_gives_up_passes_the_place_on(*, is_given: bool) -> None:
    """Also one who is given it at the same moment."""
    got: list[str] = []

    async def work() -> None:
        turns = Turns(1, 1)
        holding, giving_up = turns.of("a"), asyncio.ensure_future(turns.of("b").__aenter__())
        await holding.__aenter__()
        await asyncio.sleep(0)

        async def wait() -> None:
            async with turns.of("c"):
                got.append("c")

        last = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        if is_given:
            await holding.__aexit__(None, None, None)
        giving_up.cancel()
        if not is_given:
            await holding.__aexit__(None, None, None)
        await last

    asyncio.run(asyncio.wait_for(work(), 5))
    assert got == ["c"]
