"""Build the application from its parts. It reads no settings and no environment; everything is an argument."""

import time
from collections.abc import Callable, Sequence

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from prometheus_client import Histogram
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from master_dataset import tracing
from serving_layer.admin.floor_plans import FloorPlanService
from serving_layer.admin.loaded_files import ProductService, TargetService
from serving_layer.admin.operations import OperatorService
from serving_layer.alerts.rules import AlertService
from serving_layer.api import (
    alert_rules,
    alerts,
    annotations,
    cells,
    dead_letters,
    events,
    floor_plans,
    health,
    metrics,
    products,
    publications,
    saved,
    sensors,
    stores,
    targets,
    webhooks,
)
from serving_layer.api.openapi import describe
from serving_layer.api.request_bodies import BodyReader
from serving_layer.api.response_cache import ResponseCacheMiddleware
from serving_layer.health.freshness import FreshnessService
from serving_layer.http.body_drain import BodyDrain
from serving_layer.http.hosts import AllowedHosts, HostCheck
from serving_layer.http.load_shedding import InFlight, LoadSheddingMiddleware
from serving_layer.http.middleware import HeadRequests, RequestTraces
from serving_layer.http.problems import install as install_problems
from serving_layer.ingest.ingest import IngestService
from serving_layer.keys.authenticator import Authenticator
from serving_layer.limits import LIMITS, Limits
from serving_layer.live import Live
from serving_layer.pages.install import install as install_pages
from serving_layer.pages.install import install_error_pages
from serving_layer.pages.reference import Reference
from serving_layer.pages.sessions import Sessions
from serving_layer.pages.shared import SharedPages
from serving_layer.pages.throttled_sign_ins import ThrottledSignIns
from serving_layer.reports import routes as reports
from serving_layer.saved.service import SavedService
from serving_layer.service import QueryService

SECONDS = Histogram(
    "galatea_request_seconds",
    "Duration of a request until its complete response is sent.",
    ("route", "status"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
NO_ROUTE = "none"
"""The request matched no route, or was rejected before routing."""


CORS_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
CORS_HEADERS = (
    "Authorization",
    "Cache-Control",
    "Content-Encoding",
    "Content-Type",
    "Galatea-At-Least",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
)
"""Request headers that scripts of other origins may set."""
CORS_EXPOSED = (
    "Content-Disposition",
    "ETag",
    "Galatea-As-Of",
    "Galatea-Next",
    "Galatea-Token",
    "Location",
    "Retry-After",
)
"""Response headers that they may read."""
CORS_SECONDS = 600
"""How long browsers keep the answer to a preflight request."""


class RequestMetrics:
    """Middleware that measures requests by route and status, never by store, tenant or caller.

    Only `RequestTraces` and `HeadRequests`, which replaces the scope, are outside of it.
    """

    def __init__(self, app: ASGIApp) -> None:
        """`app`: the inner application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and measure it. A request without a response counts as 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 500, time.perf_counter()

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            SECONDS.labels(route, str(status)).observe(time.perf_counter() - began)


Audit = Callable[[str, str, int], None]
"""Called with the name of the caller, method and path, and the status of the response."""
ROUTERS = (
    metrics.router,
    metrics.index_router,
    cells.router,
    cells.raw_router,
    health.freshness_router,
    stores.router,
    sensors.router,
    floor_plans.router,
    products.router,
    targets.router,
    reports.router,
    alerts.router,
    alert_rules.router,
    annotations.router,
    annotations.file_router,
    saved.router,
    publications.router,
    publications.corrections_router,
    dead_letters.router,
    publications.recomputes_router,
    webhooks.router,
    events.router,
    health.router,
)


def create_app(  # noqa: PLR0913 - the parts that every process has, then the optional ones
    answers: QueryService,
    freshness: FreshnessService,
    operations: OperatorService,
    authenticator: Authenticator,
    ingest: IngestService | None = None,
    *,
    alerting: AlertService,
    sessions: Sessions,
    products: ProductService | None = None,
    targets: TargetService | None = None,
    plans: FloorPlanService | None = None,
    saved_service: SavedService | None = None,
    limits: Limits = LIMITS,
    cors_origins: Sequence[str] = (),
    hosts: AllowedHosts | None = None,
    audit: Audit = lambda *_: None,
) -> FastAPI:
    """Build the application.

    Args:
        answers: answers queries.
        freshness: reads freshness and alarms.
        operations: what operators do.
        authenticator: identifies callers and enforces their limits.
        ingest: None if this process accepts no events.
        alerting: alerts and their rules.
        sessions: of browsers.
        products: None if this process has no products.
        targets: None if this process loads no targets.
        plans: None if this process has no floor plans.
        saved_service: annotations, saved views and share links; None if this process has none.
        limits: of requests.
        cors_origins: the origins whose scripts may call the API, with a key that they bring, never with the cookie of
            a session; none: browsers keep other origins out.
        hosts: the names under which it is served; None for any.
        audit: called for each request that changes something.
    """
    app = FastAPI(
        title="Galatea",
        description="Numbers of physical stores: live within a second, and exact.",
        version="1",
        openapi_url=None,  # it would write the document for each request
        docs_url=None,
        redoc_url=None,  # these pages load scripts from other hosts, which our own headers forbid; ours is at `/docs`
        redirect_slashes=False,  # such a redirect repeats the `Host` of the request, whoever chose it
    )
    app.state.answers = answers
    app.state.freshness = freshness
    app.state.operations = operations
    app.state.alerting = alerting
    app.state.authenticator = authenticator
    app.state.audit = audit
    app.state.ingest = ingest
    app.state.products = products
    app.state.targets = targets
    app.state.floor_plans = plans
    app.state.saved = saved_service
    app.state.shared_pages = SharedPages(time.monotonic)
    app.state.reference = Reference(app)
    app.state.live = Live(answers, limits)
    app.state.bodies = BodyReader(limits)
    app.state.in_flight = InFlight(limits.requests_in_flight)
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # themselves: copies take 50 ms to make, and differ in nothing
    app.add_middleware(ResponseCacheMiddleware)
    install_pages(app, sessions)
    app.router.routes.extend(reports.pages.routes)
    install_problems(app)
    install_error_pages(app)
    describe(app)
    if cors_origins:  # FastAPI has one outside of all middleware: scripts of other origins could not read its answers
        app.add_middleware(ServerErrorMiddleware, handler=app.exception_handlers[Exception])
    app.add_middleware(ThrottledSignIns, authenticator=authenticator)
    app.add_middleware(LoadSheddingMiddleware, in_flight=app.state.in_flight)
    if hosts is not None:
        app.add_middleware(HostCheck, hosts=hosts)
    app.add_middleware(BodyDrain)
    if cors_origins:  # outside of what may refuse a request, so that scripts can read why
        app.add_middleware(
            CORSMiddleware,
            allow_origins=cors_origins,
            allow_methods=CORS_METHODS,
            allow_headers=CORS_HEADERS,
            expose_headers=CORS_EXPOSED,
            max_age=CORS_SECONDS,
        )
    app.add_middleware(RequestMetrics)
    if tracing.is_on():
        app.add_middleware(RequestTraces)
    app.add_middleware(HeadRequests)
    return app
