"""The application, from its parts. It reads no setting and no environment: everything comes in as an argument."""

from collections.abc import Callable

from fastapi import FastAPI

from serving_layer.admin.operations import Operations
from serving_layer.alerts.service import Alerting
from serving_layer.api import (
    alert_rules,
    alerts,
    corrections,
    dead_letters,
    events,
    health,
    index,
    live,
    metrics,
    problems,
    publications,
    raw,
    recomputes,
    state,
    views,
    webhooks,
)
from serving_layer.api.bodies import Bodies
from serving_layer.api.described import describe
from serving_layer.api.in_flight import InFlight
from serving_layer.api.limits import LIMITS, Limits
from serving_layer.api.requests import Requests
from serving_layer.api.response_cache import Repeats
from serving_layer.health.freshness import Freshness
from serving_layer.http.body_drain import Leftover
from serving_layer.http.load_shedding import Shell
from serving_layer.ingest.ingest import Ingest
from serving_layer.keys.authenticator import Gate
from serving_layer.pages import elsewhere
from serving_layer.pages.install import install as install_pages
from serving_layer.query.answers import Answers
from serving_layer.query.live import Live

Audit = Callable[[str, str, int], None]
"""Who did what, by method and path, and with which status."""
ROUTERS = (
    metrics,
    live,
    index,
    views,
    raw,
    state,
    alerts,
    alert_rules,
    publications,
    corrections,
    dead_letters,
    recomputes,
    webhooks,
    events,
    health,
)


def create_app(  # noqa: PLR0913 - what every process has, then what one may go without
    answers: Answers,
    freshness: Freshness,
    operations: Operations,
    gate: Gate,
    ingest: Ingest | None = None,
    *,
    alerting: Alerting,
    limits: Limits = LIMITS,
    audit: Audit = lambda *_: None,
) -> FastAPI:
    """`gate`: who may ask. `ingest`: None if this process takes no events. `audit`: is told of what operators do."""
    app = FastAPI(
        title="Galatea",
        description="Numbers of physical stores: live within a second, and exact.",
        version="1",
        docs_url=None,
        redoc_url=None,  # they load scripts from elsewhere, which our own headers forbid
    )
    app.state.answers = answers
    app.state.freshness = freshness
    app.state.operations = operations
    app.state.alerting = alerting
    app.state.gate = gate
    app.state.audit = audit
    app.state.ingest = ingest
    app.state.live = Live(answers, limits)
    app.state.bodies = Bodies(limits)
    app.state.in_flight = InFlight(limits.requests_in_flight)
    for module in ROUTERS:
        app.include_router(module.router)
    app.add_middleware(Repeats)
    install_pages(app)
    problems.install(app)
    elsewhere.install(app)
    describe(app)
    app.add_middleware(Shell, in_flight=app.state.in_flight)
    app.add_middleware(Leftover)
    app.add_middleware(Requests)
    return app
