"""Answers of pages about many stores: how old they may be, and what makes them new."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.stores import Store
from serving_layer.pages.recent import MANY_STORES, MOST_SECONDS, RENEWED_AFTER, TIMES_COMPUTED, RecentAnswers
from serving_layer.store.readers import Position
from serving_layer.store.snapshot import ReadSnapshot, ReadVersion
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing
from views.control.publication import Pointer

CUT = datetime(2026, 11, 21, 12, tzinfo=UTC)
PAGE = "a page"
COST = 1.0
"""Seconds that it takes to compute the answers."""


def version(events: int, publication: int = 1) -> ReadVersion:
    """What answers are computed from after so many events."""
    positions = (Position("pos_transactions", 0, events, CUT + timedelta(seconds=events)),)
    return ReadVersion(ReadSnapshot(Pointer(publication, CUT, f"run-{publication}", 1, {}), positions, ()), 1)


@dataclass
class Page:
    """A page whose answers say how many events they are computed from."""

    seconds: float = 0.0
    computed: list[int] = field(default_factory=list)
    failure: Exception | None = None

    def __post_init__(self) -> None:
        self.answers: RecentAnswers[int] = RecentAnswers(lambda: self.seconds)

    async def visit(self, at: ReadVersion) -> int:
        """What is shown."""
        return (await self.answers.get(PAGE, at, self._compute)).result

    async def _compute(self, at: ReadVersion) -> int:
        self.seconds += COST
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        events = at.snapshot.positions[0].position
        self.computed.append(events)
        return events


async def settled() -> None:
    """Let what runs in the background end."""
    for _ in range(5):
        await asyncio.sleep(0)


def run(check: Callable[[Page], Awaitable[None]]) -> None:
    """Run a check on an event loop."""
    asyncio.run(check(Page()))  # type: ignore[arg-type]  # a coroutine


def test_while_nothing_arrives_the_same_answers_are_shown_for_ever() -> None:
    async def check(page: Page) -> None:
        assert await page.visit(version(1)) == 1
        page.seconds += 100 * MOST_SECONDS
        assert await page.visit(version(1)) == 1
        assert page.computed == [1]

    run(check)


def test_events_are_shown_at_the_latest_when_the_answers_are_ten_times_as_old_as_they_took() -> None:
    async def check(page: Page) -> None:
        await page.visit(version(1))
        page.seconds = TIMES_COMPUTED * COST
        assert await page.visit(version(2)) == 1
        await settled()
        page.seconds = 2 * TIMES_COMPUTED * COST + 2 * COST
        assert await page.visit(version(3)) == 3

    run(check)


def test_a_visit_renews_what_is_getting_old_and_does_not_wait_for_it() -> None:
    async def check(page: Page) -> None:
        await page.visit(version(1))
        page.seconds = RENEWED_AFTER * TIMES_COMPUTED * COST
        assert await page.visit(version(2)) == 1
        assert page.computed == [1]
        page.seconds += 0.1
        assert [await page.visit(version(3)) for _ in range(3)] == [1, 1, 1]
        await settled()
        assert page.computed == [1, 3]
        assert await page.visit(version(4)) == 3

    run(check)


@pytest.mark.parametrize(
    "other",
    [version(1, publication=2), version(1)._replace(registry=2), version(1)._replace(now=86_400)],
    ids=["publication", "stores", "day"],
)
def test_whatever_is_no_event_makes_new_answers_at_once(other: ReadVersion) -> None:
    async def check(page: Page) -> None:
        await page.visit(version(1))
        await page.visit(other)
        assert page.computed == [1, 1]

    run(check)


def test_visitors_who_come_together_share_one_computation() -> None:
    async def check(page: Page) -> None:
        assert await asyncio.gather(*(page.visit(version(1)) for _ in range(5))) == [1] * 5
        assert page.computed == [1]

    run(check)


def test_a_failure_is_not_kept_and_in_the_background_not_shown() -> None:
    async def check(page: Page) -> None:
        page.failure = CassandraUnavailableError("No host answers.", do="Wait.")
        with pytest.raises(CassandraUnavailableError):
            await page.visit(version(1))
        page.failure = None
        assert await page.visit(version(1)) == 1
        page.failure, page.seconds = (
            CassandraUnavailableError("No host answers.", do="Wait."),
            page.seconds + TIMES_COMPUTED * COST / 2,
        )
        assert await page.visit(version(2)) == 1
        await settled()
        assert await page.visit(version(2)) == 1

    run(check)


@pytest.fixture(scope="module")
def chain() -> World:
    """As many stores as it takes, with a receipt each."""
    world = World(*(Store(id=str(number), timezone="UTC") for number in range(MANY_STORES)))
    for number in range(MANY_STORES):
        world.receive(receipt("2026-11-21T09:00:00Z", store=str(number), number=number), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return world


def test_the_page_of_a_chain_says_as_of_when_its_numbers_are(chain: World) -> None:
    chain.pass_time(datetime(2026, 11, 21, 12, tzinfo=UTC))
    browsing = Browsing(Asking(chain))
    before = browsing.get("/")
    chain.receive(receipt("2026-11-21T11:30:00Z", store="1", number=1001, minor=9_00), "2026-11-21T12:00:30Z")
    after = browsing.get("/")
    assert "Live up to</dt><dd>12:00:00 UTC" in before
    assert "Live up to</dt><dd>12:00:00 UTC" in after
