"""Events that the speed layer leaves to batch start a small rebuild by themselves, on a real stack."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from statistics import median

import pytest

from deploy.prompt_correction import PromptCorrectionThread, prompt_correction_of
from deploy.wiring import runner_of
from tests.integration.conftest import Stack, around_now, until
from tests.support import receipt

OLD = timedelta(hours=40)
"""More than the speed layer decides about."""
TIMES = 100


@contextmanager
def corrected_promptly(stack: Stack) -> Iterator[None]:
    """What an api process with GALATEA_PROMPT_CORRECTION does, in this process: that of the stack does not."""
    settings = stack.settings.replace(prompt_correction_delay_seconds=0, prompt_correction_pause_seconds=1)
    runner = runner_of(settings, "api-prompt")
    thread = PromptCorrectionThread(prompt_correction_of(settings, runner))
    thread.start()
    try:
        yield
    finally:
        thread.stop()
        runner.stop()


def send(stack: Stack, store: str, number: int, minor: int, age: timedelta) -> None:
    happened_at = (datetime.now(UTC) - age).isoformat(timespec="milliseconds")
    stack.ingest("pos_transactions", [receipt(happened_at, minor=minor, number=number, store=store)])


def sold(stack: Stack, store: str) -> tuple[float, int]:
    """The store's sales, and how many events wait."""
    body = stack.get("/v1/metrics/net_sales", store=store, grain="total", **around_now())
    points = body["series"][0]["points"]
    return points[0]["value"] or 0.0, body["as_of"]["waiting_for_batch"]


def published(stack: Stack, store: str) -> None:
    """Readers see a publication of a rebuild, with one receipt of the store."""
    send(stack, store, 1, 100, timedelta(seconds=1))
    stack.rebuild()
    assert sold(stack, store) == (1.0, 0)


def test_an_old_event_is_counted_by_a_rebuild_that_it_has_started(stack: Stack) -> None:
    store = "a late receipt"
    published(stack, store)
    send(stack, store, 2, 25, OLD)
    until(lambda: sold(stack, store) == (1.0, 1), "the receipt waits")

    with corrected_promptly(stack):
        until(lambda: sold(stack, store) == (1.25, 0), "the receipt is counted")

    [newest] = stack.get("/v1/publications", limit=1)["publications"]
    assert (newest["why"], newest["by"]) == ("late events", "galatea")
    assert stack.get("/v1/freshness")["late_events"] is None


@pytest.mark.nightly
def test_a_rollback_is_not_undone_by_an_old_event(stack: Stack) -> None:
    store = "a rollback"
    published(stack, store)
    [before] = stack.get("/v1/publications", limit=1)["publications"]
    send(stack, store, 2, 25, OLD)
    until(lambda: sold(stack, store) == (1.0, 1), "the receipt waits")
    stack.rebuild()
    stack.galatea("rollback", str(before["publication"]), "--why", "a test")

    with corrected_promptly(stack):
        until(
            lambda: (stack.get("/v1/freshness")["late_events"] or {}).get("left_because") == "rolled_back",
            "the events are left to the schedule",
        )

    assert sold(stack, store) == (1.0, 1)
    stack.rebuild()
    assert sold(stack, store) == (1.25, 0)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_a_hundred_old_events_one_after_another_are_each_counted_once(stack: Stack) -> None:
    store, total, took = "many late receipts", 100, list[float]()
    published(stack, store)

    with corrected_promptly(stack):
        for number in range(2, TIMES + 2):
            send(stack, store, number, number, OLD + timedelta(days=number % 5))
            total += number
            expected, began = (total / 100, 0), time.monotonic()
            until(lambda expected=expected: sold(stack, store) == expected, f"receipt {number} is counted")  # type: ignore[misc]
            took.append(time.monotonic() - began)

    print(f"{len(took)} old events, counted after {median(took):.0f} s (median), {max(took):.0f} s (longest)")  # noqa: T201
    verdict = stack.verify()
    assert (verdict.differing, verdict.examples) == (0, [])
