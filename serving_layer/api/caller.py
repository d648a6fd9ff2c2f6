"""FastAPI dependencies: the services of the app, and the authenticated caller with the scope that a route requires.

All are coroutines: FastAPI would run plain functions in a thread, which costs more than a response.
"""

from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import Scope as HTTPScope

from serving_layer.admin.operations import OperatorService
from serving_layer.alerts.rules import AlertService
from serving_layer.errors import (
    ApiKeyMissingError,
    InvalidApiKeyError,
    RateLimitedError,
    ScopeMissingError,
    not_offered,
)
from serving_layer.health.freshness import FreshnessService
from serving_layer.http.invalid_arguments import refuse_unread
from serving_layer.http.load_shedding import slot_of
from serving_layer.keys.authenticator import Authenticator, refuse_anonymous_through_proxy
from serving_layer.keys.key import Caller, Scope
from serving_layer.saved.service import SavedService
from serving_layer.saved.shares import SharedQueries, token_in
from serving_layer.saved.views import require_key
from serving_layer.service import QueryService

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from master_dataset.errors import GalateaError

READ: Scope = "read"
AUDITED_SCOPES = frozenset({"configure", "operate"})
"""Requests with these scopes that change something are written to the audit log."""
SAFE_METHODS = frozenset({"GET", "HEAD"})
MAX_AUDITED, MAX_AUDITED_PATH = 64, 500
"""Characters of one detail of a form, and of a path, in the audit log, which only grows. No name of ours is as long."""
_AUDITED_DETAILS = "galatea.audited_details"
CALLER = "galatea.caller"
"""Key of the ASGI scope: the caller that was authorized, with whatever scope."""
AUTHORIZED = "galatea.authorized"
"""Key of the ASGI scope: by scope of keys the caller that was already authorized with it."""
SESSION_EXISTS = "galatea.session_exists"
"""Key of the ASGI scope, if a browser session stands for the key: an async function that says whether it still exists.

It raises CassandraUnavailableError if Cassandra does not answer."""
_REFUSED_KEY = "galatea.refused_key"
"""Key of the ASGI scope: why the key of the request was refused, which is the same whoever asks next."""
_BEARER = HTTPBearer(auto_error=False, scheme_name="key", description="A key of `galatea keys create`.")
"""Only describes the header in OpenAPI; `Authenticator` reports what is wrong with it."""


async def answers_of(request: Request) -> QueryService:
    """The query service of the app."""
    answers: QueryService = request.app.state.answers
    return answers


async def freshness_of(request: Request) -> FreshnessService:
    """The freshness service of the app."""
    freshness: FreshnessService = request.app.state.freshness
    return freshness


async def alerting_of(request: Request) -> AlertService:
    """The alert service of the app."""
    alerting: AlertService = request.app.state.alerting
    return alerting


async def operations_of(request: Request) -> OperatorService:
    """The operator service of the app."""
    operations: OperatorService = request.app.state.operations
    return operations


class RequireKeyScope:
    """Dependency of a route: authorizes the caller for one scope.

    Raises what `authorize` raises, and what `refuse_unread` raises for an argument that the route would not read.
    """

    def __init__(self, scope: Scope, *, keeps: bool = False) -> None:
        """Require a scope.

        Args:
            scope: what the route requires.
            keeps: the route keeps something that belongs to a key, so it needs one, and the audit log has it.
        """
        self.scope, self.keeps = scope, keeps

    async def __call__(self, request: Request, _: Annotated[object, Depends(_BEARER)]) -> Caller:
        """Return the caller. One that was authorized before the route is not counted twice.

        Every route with arguments has a caller, so arguments that are not read are refused here, for all of them.
        """
        authenticator: Authenticator = request.app.state.authenticator
        caller = await authorize_once(request.scope, authenticator, request.headers.get("Authorization"), self.scope)
        if self.keeps:
            require_key(caller)
            audit_change(request.scope, caller)
        refuse_unread(request)
        return caller


async def authorize_once(
    of: HTTPScope, authenticator: Authenticator, authorization: str | None, scope: Scope
) -> Caller:
    """The caller of a request, who is authorized and counted unless that was done before. Raises as `authorize`."""
    authorized: dict[Scope, Caller] = of.setdefault(AUTHORIZED, {})
    if scope not in authorized:
        authorized[scope] = await authorize(of, authenticator, authorization, scope)
    return authorized[scope]


async def authorize(of: HTTPScope, authenticator: Authenticator, authorization: str | None, scope: Scope) -> Caller:
    """Authorize the request with this ASGI scope, and count it until its response begins.

    A wrong key is counted once for a request, also if the cache of responses and the route both ask. Raises what
    `Authenticator.authorize` raises, and TooManyAtOnceError. With the token of a share link, it raises what
    `ShareLinks.open` raises, and ScopeMissingError for what the page of the link does not ask.
    """
    refused: GalateaError | None = of.get(_REFUSED_KEY)
    if refused is not None:
        raise refused
    token = token_in(authorization)
    caller = (
        await _authorize_key(of, authenticator, authorization, scope)
        if token is None
        else await _authorize_share(of, authenticator, token, scope)
    )
    if scope in AUDITED_SCOPES and of["method"] not in SAFE_METHODS:
        audit_change(of, caller)
    if end := authenticator.concurrency.enter(caller):
        slot_of(of).on_end(end)
    of[CALLER] = caller
    return caller


async def is_still_authorized(request: Request, caller: Caller) -> bool:
    """Whether a request that has begun to be answered would still be answered.

    Args:
        request: that was authorized.
        caller: whom it was authorized as.

    Returns:
        False if the key is not valid any more or is now another caller's, or if the browser session that stood for the
        key has ended.

    Raises:
        CassandraUnavailableError: Cassandra does not answer.
    """
    session_exists: Callable[[], Awaitable[bool]] | None = request.scope.get(SESSION_EXISTS)
    if session_exists is not None and not await session_exists():
        return False
    authenticator: Authenticator = request.app.state.authenticator
    try:
        return await authenticator.keys.caller(request.headers.get("Authorization")) == caller
    except (ApiKeyMissingError, InvalidApiKeyError):
        return False


def audit_change(of: HTTPScope, caller: Caller) -> None:
    """Write the request to the audit log when its response begins. `authorize` does it where the scope is audited."""
    path: str = of["path"]
    act = f"{of['method']} {path if len(path) <= MAX_AUDITED_PATH else path[:MAX_AUDITED_PATH] + '...'}"

    def write(status: int) -> None:
        of["app"].state.audit(caller.name, " ".join((act, *of.get(_AUDITED_DETAILS, ()))), status)

    slot_of(of).on_end(write)


def audit_details(of: HTTPScope, *details: str) -> None:
    """What a form of several actions does, for the audit log: its action and the id that it is about."""
    of[_AUDITED_DETAILS] = [each[:MAX_AUDITED] for each in details if each]


async def _authorize_key(
    of: HTTPScope, authenticator: Authenticator, authorization: str | None, scope: Scope
) -> Caller:
    refuse_anonymous_through_proxy(of, authorization)
    try:
        return await authenticator.authorize(authorization, scope, client_of(of))
    except (InvalidApiKeyError, RateLimitedError) as error:
        of[_REFUSED_KEY] = error
        raise


async def _authorize_share(of: HTTPScope, authenticator: Authenticator, token: str, scope: Scope) -> Caller:
    saved: SavedService | None = of["app"].state.saved
    if saved is None:
        raise InvalidApiKeyError(
            "This API process does not serve share links.", do="Send the request to another API process."
        )
    link = await saved.shares.open(token, client_of(of))
    authenticator.rates.count(link.caller, scope)
    queries: SharedQueries = of["app"].state.shared_pages
    if scope != READ or of["method"] not in SAFE_METHODS or not await queries.admits(of, link):
        raise ScopeMissingError("This is not what the shared page shows.", do="Sign in with a key.")
    return link.caller


def client_of(of: HTTPScope) -> str:
    """The address of the client with this ASGI scope; empty if it is not known."""
    client = of.get("client")
    return str(client[0]) if client else ""


async def saved_of(request: Request) -> SavedService:
    """The annotations, saved views and share links of the app. NotOfferedError if this process has none."""
    saved: SavedService | None = request.app.state.saved
    if saved is None:
        raise not_offered("annotations, saved views or share links")
    return saved


AnswersOf = Annotated[QueryService, Depends(answers_of)]
FreshnessOf = Annotated[FreshnessService, Depends(freshness_of)]
AlertingOf = Annotated[AlertService, Depends(alerting_of)]
SavedOf = Annotated[SavedService, Depends(saved_of)]
OperationsOf = Annotated[OperatorService, Depends(operations_of)]
Reader = Annotated[Caller, Depends(RequireKeyScope(READ))]
Keeper = Annotated[Caller, Depends(RequireKeyScope(READ, keeps=True))]
Ingester = Annotated[Caller, Depends(RequireKeyScope("ingest"))]
Configurer = Annotated[Caller, Depends(RequireKeyScope("configure"))]
Operator = Annotated[Caller, Depends(RequireKeyScope("operate"))]
