"""One visitor who asks for one page: what may be asked on their behalf, and how the page is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse

from serving_layer.freshness import Fresh
from serving_layer.operations import Operations
from serving_layer.pages.page_answers import PageAnswers
from serving_layer.pages.rendering import page
from serving_layer.pages.visitor import Visitor, operator_of, reader_of


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

    async def fresh(self) -> Fresh:
        """How old everything is: read once for a page, whose head says it."""
        fresh: Fresh = await self.request.app.state.freshness.read()
        return fresh

    def page(self, template: str, fresh: Fresh, said: Mapping[str, object], *, status: int = 200) -> HTMLResponse:
        """What the visitor is shown."""
        return page(self.request, template, self.visitor, {"fresh": fresh, **said}, status=status)


async def read(request: Request, visitor: Annotated[Visitor, Depends(reader_of)]) -> Visit:
    """By whoever may read."""
    return Visit(request, visitor, PageAnswers(request.app.state.answers, visitor.caller))


async def operated(request: Request, visitor: Annotated[Visitor, Depends(operator_of)]) -> Visit:
    """By whoever may operate."""
    return Visit(request, visitor, PageAnswers(request.app.state.answers, visitor.caller))


ReaderVisit = Annotated[Visit, Depends(read)]
OperatorVisit = Annotated[Visit, Depends(operated)]
