"""A key of a tenant may ask so many times a second, of all processes; the operator's as often as it likes."""

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from master_dataset.errors import CassandraUnavailableError
from serving_layer.errors import RateLimitedError
from serving_layer.keys.key import OPERATOR, Caller
from serving_layer.keys.rates import REPORT_SECONDS, ByteLimiter, RateExchange, RateLimiter, Rates, share

ACME = Caller("one", "acme", frozenset({"read", "ingest"}))
OTHER = Caller("two", "acme", frozenset({"read"}))


def test_a_key_is_refused_beyond_its_rate_and_no_other_is() -> None:
    rates = RateLimiter(reads=3, ingests=2)

    for _ in range(3):
        rates.count(ACME, "read")

    with pytest.raises(RateLimitedError):
        rates.count(ACME, "read")
    rates.count(OTHER, "read")


def test_reading_and_ingesting_are_counted_apart() -> None:
    rates = RateLimiter(reads=1, ingests=1)

    rates.count(ACME, "read")
    rates.count(ACME, "ingest")

    with pytest.raises(RateLimitedError):
        rates.count(ACME, "ingest")


def test_the_operator_is_not_counted() -> None:
    rates = RateLimiter(reads=1, ingests=1)

    for _ in range(100):
        rates.count(OPERATOR, "read")


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ([], 20),
        ([5.0], 15),
        ([0.4], 20),
        ([10.0], 10),
        ([300.0], 10),
        ([2.0, 300.0], 9),
        ([300.0, 2.0], 9),
        ([300.0] * 100, 1),
    ],
)
def test_a_process_may_answer_what_the_others_leave_and_at_least_an_equal_part(others: list[float], left: int) -> None:
    assert share(20, others) == left


@given(st.integers(1, 1000), st.lists(st.floats(0, 5000), min_size=1, max_size=8))
def test_all_processes_together_answer_what_is_asked_up_to_the_limit(limit: int, asked: list[float]) -> None:
    answered = [min(each, share(limit, asked[:at] + asked[at + 1 :])) for at, each in enumerate(asked)]

    assert sum(answered) <= limit + len(asked)  # each is rounded up
    assert sum(answered) >= min(limit, sum(asked)) - 1e-6


class Reports:
    """RateReports in memory. `is_away`: nothing can be read or written."""

    def __init__(self) -> None:
        self.kept: dict[str, Rates] = {}
        self.is_away = False

    async def report(self, process: str, rates: Rates, seconds: int) -> None:
        assert seconds == REPORT_SECONDS
        self._answer()
        self.kept[process] = dict(rates)

    async def reports(self) -> Mapping[str, Rates]:
        self._answer()
        return dict(self.kept)

    def _answer(self) -> None:
        if self.is_away:
            raise CassandraUnavailableError("Cassandra did not answer.", do="Ask again.")


class Deployment:
    """Two processes, and the time between their exchanges."""

    def __init__(self) -> None:
        self.seconds, self.reports = 0.0, Reports()
        self.limiters = [RateLimiter(reads=10**6, ingests=10**6) for _ in range(2)]
        self.exchanges = [
            RateExchange(limiter, self.reports, str(number), lambda: self.seconds)
            for number, limiter in enumerate(self.limiters)
        ]

    def second(self, *asked: int) -> None:
        """The key asks each process so often, then they exchange."""
        for limiter, often in zip(self.limiters, asked, strict=True):
            for _ in range(often):
                limiter.count(ACME, "read")
        self.seconds += 1.0
        for exchange in self.exchanges:
            asyncio.run(exchange.exchange())

    def left(self, process: int) -> int:
        return share(100, [said["read one"] for said in self.limiters[process].others if "read one" in said])


def test_a_key_that_asks_one_process_alone_has_its_whole_limit_there() -> None:
    deployment = Deployment()

    for _ in range(5):
        deployment.second(90, 0)

    assert deployment.left(0) == 100
    assert deployment.left(1) == 50


def test_a_key_that_asks_both_has_half_of_it_at_each() -> None:
    deployment = Deployment()

    for _ in range(5):
        deployment.second(200, 200)

    assert [deployment.left(each) for each in (0, 1)] == [50, 50]


def test_what_a_key_does_not_ask_any_more_is_forgotten() -> None:
    deployment = Deployment()
    deployment.second(0, 400)

    for _ in range(20):
        deployment.second(0, 0)

    assert deployment.left(0) == 100
    assert deployment.reports.kept["1"] == {}


def test_what_the_others_said_counts_for_five_seconds_without_cassandra() -> None:
    deployment = Deployment()
    for _ in range(3):
        deployment.second(0, 400)
    assert deployment.left(0) == 50

    deployment.reports.is_away = True
    deployment.second(0, 400)
    assert deployment.left(0) == 50
    for _ in range(REPORT_SECONDS):
        deployment.second(0, 400)

    assert deployment.left(0) == 100


def test_a_process_that_nobody_asks_writes_nothing() -> None:
    deployment = Deployment()

    deployment.second(0, 0)

    assert deployment.reports.kept == {}


def test_a_key_is_refused_beyond_the_part_of_this_process() -> None:
    rates = RateLimiter(reads=6, ingests=6)
    rates.others = [{"read one": 100.0}]

    for _ in range(3):
        rates.count(ACME, "read")

    with pytest.raises(RateLimitedError, match="may send 6 requests per second"):
        rates.count(ACME, "read")
    rates.count(ACME, "ingest")


def test_a_key_that_has_sent_its_bytes_of_a_minute_waits_until_some_are_free_again() -> None:
    now = [100.0]
    sent = ByteLimiter(6_000_000, lambda: now[0])

    sent.refuse(ACME)
    sent.count(ACME, 6_500_000)  # known only when it has been read

    with pytest.raises(RateLimitedError) as refused:
        sent.refuse(ACME)
    assert refused.value.retry_after == 6
    sent.refuse(OTHER)
    now[0] += refused.value.retry_after
    sent.refuse(ACME)


def test_bytes_that_could_have_been_sent_evenly_are_forgotten() -> None:
    now = [0.0]
    sent = ByteLimiter(6_000_000, lambda: now[0])

    for _ in range(600):
        sent.refuse(ACME)
        sent.count(ACME, 100_000)
        now[0] += 1


def test_the_bytes_of_the_operator_are_not_counted() -> None:
    sent = ByteLimiter(1)

    sent.count(OPERATOR, 1000)

    sent.refuse(OPERATOR)
