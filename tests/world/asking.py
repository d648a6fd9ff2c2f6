"""Questions to the REST interface over a World, without a network."""

import asyncio
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import httpx

from serving_layer.answers import Answers
from serving_layer.api.app import create_app
from serving_layer.catalogue import Catalogue
from serving_layer.readers import Readers
from tests.world.readers import WorldTables
from tests.world.world import World
from views.core.cut import BEGINNING
from views.metrics import registered_metrics
from views.registry import registered_views

OPERATOR_KEY = "the operator's key"
Body = dict[str, Any]


class Asking:
    """One process that serves. Its answers are remembered from question to question, as in the real one."""

    def __init__(self, world: World, readers: Readers | None = None) -> None:
        self._world = world
        catalogue = Catalogue({view.name: view for view in registered_views()}, registered_metrics())
        clock = count(step=10)  # every question finds the registry's version old
        read_from = readers or WorldTables(world).readers
        self.answers = Answers(read_from, catalogue, timedelta(days=7), lambda: float(next(clock)), self._now)
        self.app = create_app(self.answers, OPERATOR_KEY)

    def _now(self) -> datetime:
        return self._world.now or self._world.speed_as_of or BEGINNING

    def response(
        self, path: str, *, method: str = "GET", key: str | None = None, **arguments: object
    ) -> httpx.Response:
        """The response to a question. `from_` stands for `from`."""
        query = {name.rstrip("_"): value for name, value in arguments.items()}
        headers = {"Authorization": f"Bearer {key}"} if key else {}

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://galatea") as client:
                return await client.request(method, path, params=query, headers=headers)  # type: ignore[arg-type]

        return asyncio.run(ask())

    def body(self, path: str, **arguments: object) -> Body:
        """The body of an answer that must be one."""
        response = self.response(path, **arguments)  # type: ignore[arg-type]
        assert response.status_code == 200, response.text
        found: Body = response.json()
        return found

    def refusal(self, path: str, **arguments: object) -> Body:
        """The problem that a refused question gets."""
        response = self.response(path, **arguments)  # type: ignore[arg-type]
        assert response.headers["content-type"] == "application/problem+json", response.text
        found: Body = response.json()
        assert found["status"] == response.status_code
        return found
