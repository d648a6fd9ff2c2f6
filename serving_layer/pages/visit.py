"""One visitor who asks for one page: what may be asked on their behalf, and how the page is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse

from serving_layer.admin.operations import Operations
from serving_layer.alerts.service import Alerting
from serving_layer.api.caller import let_in
from serving_layer.health.freshness import Fresh
from serving_layer.keys.key import Scope
from serving_layer.pages.page_answers import PageAnswers
from serving_layer.pages.rendering import page
from serving_layer.pages.visitor import Visitor, visitor_of

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Gate


@dataclass(frozen=True)
class Visit:
    """Of one request."""

    request: Request
    visitor: Visitor
    answers: PageAnswers

    @property
    def operations(self) -> Operations:
        """The operations that the app was made with; pages of operators alone do any."""
        operations: Operations = self.request.app.state.operations
        return operations

    @property
    def alerting(self) -> Alerting:
        """The alerting that the app was made with."""
        alerting: Alerting = self.request.app.state.alerting
        return alerting

    async def fresh(self) -> Fresh:
        """How old everything is: read once for a page, whose head says it."""
        fresh: Fresh = await self.request.app.state.freshness.read()
        return fresh

    def page(self, template: str, fresh: Fresh, said: Mapping[str, object], *, status: int = 200) -> HTMLResponse:
        """What the visitor is shown."""
        return page(self.request, template, self.visitor, {"fresh": fresh, **said}, status=status)


class Shows:
    """Lets through whoever has the scope, by the key of a session or by none. What `let_in` refuses."""

    def __init__(self, scope: Scope) -> None:
        """`scope`: what the page is for."""
        self.scope = scope

    async def __call__(self, request: Request) -> Visit:
        """The visit."""
        visitor = await visitor_of(request)
        gate: Gate = request.app.state.gate
        await let_in(request.scope, gate, visitor.authorization, self.scope)  # which also counts
        return Visit(request, visitor, PageAnswers(request.app.state.answers, visitor.caller))


ReaderVisit = Annotated[Visit, Depends(Shows("read"))]
ConfigurerVisit = Annotated[Visit, Depends(Shows("configure"))]
OperatorVisit = Annotated[Visit, Depends(Shows("operate"))]
