"""Requests that arrive together have no more than one after the other."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any, cast

import pytest

from master_dataset.registry.stores import Store
from master_dataset.webhooks.endpoint import Endpoint, RegisteredEndpoint
from serving_layer.keys.key import Caller
from serving_layer.saved.addresses import parse_address
from serving_layer.saved.annotations import Annotation, Annotations, NewAnnotation
from serving_layer.saved.shares import ShareLink, ShareLinks
from serving_layer.saved.views import SavedView, SavedViews
from serving_layer.webhooks.service import WebhookService
from tests.support.saved import WorldAnnotations, WorldShares, WorldViews

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CALLER = Caller("k", "acme", frozenset({"read"}))
STORES = {"1": Store(id="1", timezone="UTC", tenant="acme")}
MOST, AT_ONCE = 5, 12


class SlowAnnotations(WorldAnnotations):
    async def put(self, annotations: Sequence[Annotation]) -> None:
        await asyncio.sleep(0)
        await super().put(annotations)


class SlowViews(WorldViews):
    async def put(self, view: SavedView) -> None:
        await asyncio.sleep(0)
        await super().put(view)


class SlowShares(WorldShares):
    async def add(self, digest: bytes, link: ShareLink, seconds: int) -> None:
        await asyncio.sleep(0)
        await super().add(digest, link, seconds)


class SlowEndpoints:
    def __init__(self) -> None:
        self.kept: list[RegisteredEndpoint] = []

    async def all(self) -> Sequence[RegisteredEndpoint]:
        return self.kept

    async def add(self, endpoint: Endpoint) -> None:
        await asyncio.sleep(0)
        self.kept.append(RegisteredEndpoint(endpoint))


Adding = Callable[[int], Awaitable[object]]


def annotations() -> tuple[Any, Adding]:
    store = SlowAnnotations()
    all_of_them = Annotations(store, MOST)
    return store, lambda n: all_of_them.add(
        "acme", [NewAnnotation(date(2026, 1, 1), None, "note", str(n))], STORES, ("k", NOW)
    )


def saved_views() -> tuple[Any, Adding]:
    store = SlowViews()
    views = SavedViews(store, MOST)
    return store, lambda n: views.save(CALLER, str(n), parse_address("/"), NOW)


def share_links() -> tuple[Any, Adding]:
    store = SlowShares()
    links = ShareLinks(store, lambda: NOW, lambda: 0.0, most=MOST)
    return store, lambda _: links.make(CALLER, (parse_address("/"), "acme"), 1, "", STORES)


def webhooks() -> tuple[Any, Adding]:
    store = SlowEndpoints()
    service = WebhookService(cast("Any", store), cast("Any", None), MOST, lambda: NOW)
    return store, lambda n: service.make("acme", f"https://shop.example/{n}", 1)


@pytest.mark.parametrize("made", [annotations, saved_views, share_links, webhooks])
def test_concurrent_requests_have_no_more_than_the_limit(made: Callable[[], tuple[Any, Adding]]) -> None:
    async def work() -> int:
        store, add = made()
        await asyncio.gather(*(add(n) for n in range(AT_ONCE)), return_exceptions=True)
        return len(store.kept)

    assert asyncio.run(work()) == MOST
