"""Who asks, and whether a route is theirs: every route names the scope that it needs.

All are coroutines: FastAPI would hand plain functions to a thread, which costs more than an answer.
"""

from typing import TYPE_CHECKING, Annotated, cast

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import Scope as HTTPScope

from serving_layer.admin.operations import OperatorService
from serving_layer.alerts.rules import AlertService
from serving_layer.health.freshness import FreshnessService
from serving_layer.http.load_shedding import slot_of
from serving_layer.keys.key import Caller, Scope
from serving_layer.query.service import QueryService

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

READ: Scope = "read"
AUDITED_SCOPES = frozenset({"configure", "operate"})
"""Scopes whose acts are written down."""
SAFE_METHODS = frozenset({"GET", "HEAD"})
AUTHENTICATED_READER = "galatea.reader"
"""Where a request's own scope says who was let through to read."""
_BEARER = HTTPBearer(auto_error=False, scheme_name="key", description="A key of `galatea keys create`.")
"""Only describes the header: what is wrong with it is said by ourselves."""


async def answers_of(request: Request) -> QueryService:
    """The answers that the app was made with."""
    answers: QueryService = request.app.state.answers
    return answers


async def freshness_of(request: Request) -> FreshnessService:
    """The freshness that the app was made with."""
    freshness: FreshnessService = request.app.state.freshness
    return freshness


async def alerting_of(request: Request) -> AlertService:
    """The alerting that the app was made with."""
    alerting: AlertService = request.app.state.alerting
    return alerting


async def operations_of(request: Request) -> OperatorService:
    """The operations that the app was made with."""
    operations: OperatorService = request.app.state.operations
    return operations


class RequireKeyScope:
    """Lets through whose key has the scope, as often as it may ask. Raises what `authorize` raises."""

    def __init__(self, scope: Scope) -> None:
        """`scope`: what the route is for."""
        self.scope = scope

    async def __call__(self, request: Request, _: Annotated[object, Depends(_BEARER)]) -> Caller:
        """The caller. Who was let through before the question was read is not counted twice."""
        known = request.scope.get(AUTHENTICATED_READER)
        if known is not None and self.scope == READ:
            return cast("Caller", known)
        gate: Authenticator = request.app.state.gate
        caller = await authorize(request.scope, gate, request.headers.get("Authorization"), self.scope)
        if self.scope == READ:
            request.scope[AUTHENTICATED_READER] = caller
        return caller


async def authorize(of: HTTPScope, gate: "Authenticator", authorization: str | None, scope: Scope) -> Caller:
    """Whoever sends that header, counted until the answer begins. What Authenticator refuses; TooManyAtOnceError."""
    caller = await gate.caller(authorization, scope)
    if scope in AUDITED_SCOPES and of["method"] not in SAFE_METHODS:
        act = f"{of['method']} {of['path']}"
        slot_of(of).until_the_end(lambda status: of["app"].state.audit(caller.name, act, status))
    if end := gate.concurrency.enter(caller):
        slot_of(of).until_the_end(end)
    return caller


AnswersOf = Annotated[QueryService, Depends(answers_of)]
FreshnessOf = Annotated[FreshnessService, Depends(freshness_of)]
AlertingOf = Annotated[AlertService, Depends(alerting_of)]
OperationsOf = Annotated[OperatorService, Depends(operations_of)]
Reader = Annotated[Caller, Depends(RequireKeyScope(READ))]
Ingester = Annotated[Caller, Depends(RequireKeyScope("ingest"))]
Configurer = Annotated[Caller, Depends(RequireKeyScope("configure"))]
Operator = Annotated[Caller, Depends(RequireKeyScope("operate"))]
