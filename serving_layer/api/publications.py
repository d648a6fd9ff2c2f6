"""`/v1/publications`: the history of what readers saw, and the way back in it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.admin.publication_entry import GREATEST
from serving_layer.api.bounded import Bounded
from serving_layer.api.caller import AnswersOf, OperationsOf, Operator, Reader
from serving_layer.api.words import Reason
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.publications import PublicationPage, RolledBack
from serving_layer.responses.schemas import returns

router = APIRouter(prefix="/v1", tags=["publications"], route_class=Bounded)
PAGE = 1000


class PublicationsQuestion(BaseModel):
    """`before` is the `next` of the page before."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(100, ge=1, le=PAGE)
    before: int | None = Field(None, ge=0, le=GREATEST, description="Only publications with a lesser number.")


class RollbackQuestion(BaseModel):
    """Why, and whether in earnest."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason
    dry_run: bool = Field(default=False, strict=True, description="Say what would be published; change nothing.")


@router.get("/publications", operation_id="list_publications", responses=returns(PublicationPage))
async def list_publications(asked: Annotated[PublicationsQuestion, Query()], answers: AnswersOf, _: Reader) -> Response:
    """Publications, newest first. `next` is null on the last page.

    `collected`: its cells are gone, so it can no longer be asked with `as_of`. `restores`: the publication whose cells
    it published again. What its recompute did, null where it did not say: `partitions` (pairs of view and day), `days`,
    `blocks` written, `rows` read, `seconds` from question to publication, and the same by view in `views`.
    """
    before = GREATEST if asked.before is None else asked.before
    found = await answers.readers.published.history(before, asked.limit + 1)
    page = found[: asked.limit]
    following = page[-1].publication if len(found) > asked.limit else None
    return Response(encode(PublicationPage([entry.response() for entry in page], following)), media_type=JSON)


@router.post("/publications/{number}/rollback", operation_id="roll_back", responses=returns(RolledBack))
async def roll_back(
    number: Annotated[int, Path(ge=0, le=GREATEST)], asked: RollbackQuestion, operations: OperationsOf, by: Operator
) -> Response:
    """Publish again what an older publication said. Needs the scope `operate`; answers when readers are switched.

    `publication`: the new one, which `restores` the old one at its `cut`, with speed rows of `generation`.
    """
    done = await operations.rollbacks.run(number, asked.reason, by.name, dry_run=asked.dry_run)
    return Response(encode(done.response()), media_type=JSON)
