"""Recomputes, rollbacks and corrections, as an operator asks for them from Python."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest

from galatea.client.errors import NotReadyError
from serving_layer.admin.ledger import Ledger
from tests.support import World, receipt
from tests.support.world import at
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import async_client, client

WINDOW = 1795255200  # 2026-11-21T10:00:00Z


@pytest.fixture
def asking() -> Asking:
    """Two publications."""
    world = World()
    world.receive(receipt("2026-11-20T09:00:00Z", minor=100), "2026-11-20T09:00:01Z")
    world.rebuild("2026-11-20T10:00:00Z")
    world.rebuild("2026-11-21T10:00:00Z")
    return Asking(world)


def test_a_recompute_is_requested_with_the_given_arguments(asking: Asking) -> None:
    connection = client(asking, OPERATOR_KEY)

    id_ = connection.recompute(
        reason="late file", views="sales", first=date(2026, 11, 20), last="2026-11-21", mode="preview"
    )

    [said] = asking.recomputing.requests
    assert (said.views, said.first, said.last, said.mode) == (
        ("sales",),
        date(2026, 11, 20),
        date(2026, 11, 21),
        "preview",
    )
    found = connection.recompute_state(id_)
    assert (found.id, found.state, found.why, found.has_ended) == (id_, "asked", "late file", False)


def test_waiting_for_a_recompute_returns_how_it_ended(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = client(asking, OPERATOR_KEY)
    id_ = connection.recompute(reason="a test")
    waited: list[float] = []

    def pass_time(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            record = asking.world.recomputes[id_]
            asking.world.recomputes[id_] = replace(record, state="published", publication=3, ended_at=at("2026-11-22"))

    monkeypatch.setattr("galatea.client.client.time", SimpleNamespace(sleep=pass_time))  # others sleep, too

    found = connection.wait(id_, every=2)

    assert (found.state, found.publication, waited) == ("published", 3, [2, 2, 2])


def test_awaiting_a_recompute_ends_with_its_outcome_and_not_never(asking: Asking) -> None:
    async def ask() -> None:
        async with async_client(asking, OPERATOR_KEY) as connection:
            await connection.wait(await connection.recompute(reason="a test"), every=0.01, at_most=0.02)

    with pytest.raises(NotReadyError, match=r"is asked after 0.02 seconds"):
        asyncio.run(ask())


def test_a_rollback_says_what_it_published(asking: Asking) -> None:
    connection = client(asking, OPERATOR_KEY)

    tried = connection.rollback(1, reason="a test", dry_run=True)
    done = connection.rollback(1, reason="a test")

    assert (tried.dry_run, done.dry_run) == (True, False)
    assert (done.publication, done.restores, done.cut) == (3, 1, datetime(2026, 11, 20, 10, tzinfo=UTC))


def test_corrections_come_from_all_pages(asking: Asking) -> None:
    rows = [
        {
            "window": WINDOW + 900 * number,
            "dimensions": {"currency": "EUR"},
            "state": "net_sales",
            "shown": None,
            "corrected": number,
            "difference": number,
            "cause": "waited",
            "events": ["identity"],
            "events_total": 1,
        }
        for number in range(3)
    ]
    asking.world.ledgers["2"] = Ledger("2", "run-2", 1, at("2026-11-21T10:01:00Z"), {"rows": 3})
    asking.world.corrections["run-2", "sales"] = {("1", date(2026, 11, 21)): json.dumps(rows)}

    found = list(client(asking, OPERATOR_KEY).corrections(limit=2))

    assert [(each.corrected, each.shown, each.cause) for each in found] == [
        (0, None, "waited"),
        (1, None, "waited"),
        (2, None, "waited"),
    ]
    assert found[0].window == datetime(2026, 11, 21, 10, tzinfo=UTC)


def test_a_ledger_that_is_not_written_yet_is_no_empty_one(asking: Asking) -> None:
    del asking.world.ledgers["2"]

    with pytest.raises(NotReadyError, match="not written yet"):
        list(client(asking, OPERATOR_KEY).corrections())
