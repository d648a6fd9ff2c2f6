"""Answers of pages about many stores: how old they may be, and what makes them new."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from master_dataset.errors import CassandraUnavailableError, RangeTooLongError
from master_dataset.registry.stores import Store
from serving_layer.keys.key import Caller
from serving_layer.pages.overview import LEADING
from serving_layer.pages.queries import PageQueries, PageQuery, QueryFailure, is_complete
from serving_layer.pages.recent import MANY_STORES, MOST_SECONDS, RENEWED_AFTER, TIMES_COMPUTED, RecentAnswers
from serving_layer.store.readers import Position
from serving_layer.store.snapshot import ReadSnapshot, ReadVersion
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing
from views.control.publication import Pointer

CUT = datetime(2026, 11, 21, 12, tzinfo=UTC)
PAGE = "a page"
FAILED = -1
"""What the page shows instead of an answer that is not there."""
COST = 1.0
"""Seconds that it takes to compute the answers."""


def version(events: int, publication: int = 1) -> ReadVersion:
    """What answers are computed from after so many events."""
    positions = (Position("pos_transactions", 0, events, CUT + timedelta(seconds=events)),)
    return ReadVersion(ReadSnapshot(Pointer(publication, CUT, f"run-{publication}", 1, {}), positions, ()), "1")


@dataclass
class Page:
    """A page whose answers say how many events they are computed from."""

    seconds: float = 0.0
    cost: float = COST
    computed: list[int] = field(default_factory=list)
    failure: Exception | None = None
    is_broken: bool = False

    def __post_init__(self) -> None:
        self.answers: RecentAnswers[int] = RecentAnswers(lambda: self.seconds, lambda events: events != FAILED)

    async def visit(self, at: ReadVersion) -> int:
        """What is shown."""
        return (await self.answers.get(PAGE, at, self._compute)).result

    async def _compute(self, at: ReadVersion) -> int:
        self.seconds += self.cost
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        events = FAILED if self.is_broken else at.snapshot.positions[0].position
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


def test_events_are_shown_at_the_latest_after_ten_times_as_long_as_it_took() -> None:
    async def check(page: Page) -> None:
        await page.visit(version(1))
        page.seconds = COST + TIMES_COMPUTED * COST
        assert await page.visit(version(2)) == 1  # and has them computed again
        await settled()
        assert await page.visit(version(3)) == 2
        page.seconds += TIMES_COMPUTED * COST + 0.1
        assert await page.visit(version(3)) == 3

    run(check)


def test_what_took_long_is_shown_for_some_seconds_all_the_same() -> None:
    async def check(page: Page) -> None:
        page.cost = 3 * MOST_SECONDS
        await page.visit(version(1))
        page.seconds += MOST_SECONDS
        assert await page.visit(version(2)) == 1

    run(check)


def test_a_visit_renews_what_is_getting_old_and_does_not_wait_for_it() -> None:
    async def check(page: Page) -> None:
        await page.visit(version(1))
        page.seconds = COST + RENEWED_AFTER * TIMES_COMPUTED * COST
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
    [version(1, publication=2), version(1)._replace(registry="2"), version(1)._replace(now=86_400)],
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


def test_what_lacks_an_answer_is_shown_once_and_replaces_nothing() -> None:
    async def check(page: Page) -> None:
        page.is_broken = True
        assert await page.visit(version(1)) == FAILED
        page.is_broken = False
        assert await page.visit(version(1)) == 1
        page.is_broken, page.seconds = True, page.seconds + TIMES_COMPUTED * COST / 2
        assert await page.visit(version(2)) == 1
        await settled()
        assert page.computed == [FAILED, 1, FAILED]
        assert await page.visit(version(2)) == 1

    run(check)


def test_a_visitor_who_leaves_keeps_nobody_from_the_answers() -> None:
    async def check(page: Page) -> None:
        first, second = (asyncio.ensure_future(page.visit(version(1))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 1
        assert page.computed == [1]

    run(check)


CHAIN = [
    Store(
        id=str(number), timezone=("Asia/Tokyo", "America/Los_Angeles")[number % 2], tenant=("acme", "other")[number % 2]
    )
    for number in range(2 * MANY_STORES)
]
"""Stores of two tenants, in zones where today is another date."""
NOW = datetime(2026, 11, 21, 20, tzinfo=UTC)
"""The 21st in Los Angeles, and the 22nd in Tokyo."""


@pytest.fixture
def chain() -> World:
    """The store of number n sells 1.00 + n cents on each of the last ten days, but on the 22nd in Tokyo 90.00 more."""
    world = World(*CHAIN)
    for day in range(12, 22):
        for number, store in enumerate(CHAIN):
            at = f"2026-11-{day:02}T02:00:00Z"
            world.receive(receipt(at, minor=100 + number, store=store.id, number=100 * number + day), at)
    world.rebuild("2026-11-21T10:00:00Z")
    for number, store in enumerate(CHAIN[::2]):
        world.receive(
            receipt("2026-11-21T16:00:00Z", minor=9_000, store=store.id, number=100_000 + number),
            "2026-11-21T16:00:01Z",
        )
    world.pass_time(NOW)
    return world


def live_up_to(page: str) -> str:
    return page.partition("Live up to</dt><dd>")[2].partition(" UTC")[0]


def test_the_page_of_a_chain_says_as_of_when_its_numbers_are(chain: World) -> None:
    seconds = [0.0]
    asking = Asking(chain)
    asking.app.state.recent_answers = RecentAnswers(lambda: seconds[0], is_complete)
    browsing = Browsing(asking)
    browsing.sign_in()
    before = browsing.get("/")
    chain.receive(receipt("2026-11-21T20:00:10Z", store="1", number=7, minor=5_000_000), "2026-11-21T20:00:30Z")
    kept = browsing.get("/")
    assert [live_up_to(page) for page in (before, kept)] == ["20:00:00", "20:00:00"]
    assert "50," not in kept.partition("Net sales</h3>")[2].partition("</li>")[0]
    seconds[0] += MOST_SECONDS + 1
    after = browsing.get("/")
    assert live_up_to(after) == "20:00:30"
    assert "50," in after.partition("Net sales</h3>")[2].partition("</li>")[0]


def test_tenants_share_no_answers(chain: World) -> None:
    state = Asking(chain).app.state
    query = PageQuery("net_sales", start="2026-11-14", end="2026-11-15", by=("total",), grain="total")

    async def sold(tenant: str) -> object:
        caller = Caller("key", tenant, frozenset({"read"}))
        queries = PageQueries(state.answers, caller, recent=state.recent_answers)
        result = (await queries.answer_recent([query], lambda _: ()))[query]
        assert not isinstance(result, QueryFailure)
        return result.series[0].points[0].value

    async def check() -> None:
        once = [await sold(tenant) for tenant in ("acme", "other")]
        again = [await sold(tenant) for tenant in ("acme", "other")]
        even, odd = (sum(100 + number for number in range(first, len(CHAIN), 2)) / 100 for first in (0, 1))
        assert once == again == [Decimal(str(even)), Decimal(str(odd))]

    asyncio.run(check())


def test_changes_are_of_the_days_of_their_ranking(chain: World) -> None:
    browsing = Browsing(Asking(chain))
    browsing.sign_in()
    page = browsing.get("/?range=today")
    top = page.partition("Top stores</h2>")[2].partition("</section>")[0]
    assert re.findall(r'data-direction="(\w*)"', top) == ["level"] * LEADING


def test_a_reason_that_lasts_is_kept_as_an_answer_is() -> None:
    query = PageQuery("net_sales")
    lasting = QueryFailure.of(RangeTooLongError("The range is too long.", do="Ask for less."))
    passing = QueryFailure.of(CassandraUnavailableError("No host answers.", do="Wait."))
    assert is_complete({query: lasting})
    assert not is_complete({query: lasting, PageQuery("traffic_in"): passing})
