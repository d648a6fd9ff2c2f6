"""`/v1/alerts`: what was told, newest first, and what followed it."""

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Annotated

import orjson
from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from master_dataset.dead_letters.dead_letter import received_bound
from master_dataset.errors import RequestError
from serving_layer.alerts.history import END, AlertPosition, AlertsRequest, State, audited_cut
from serving_layer.api.caller import AlertingOf, AnswersOf, FreshnessOf, Reader
from serving_layer.api.downloads import formatted_response, returns_or_file
from serving_layer.api.parameters import TenantName, tenant_of
from serving_layer.errors import BadQuestionError
from serving_layer.files.formats import Format
from serving_layer.files.tables import alerts_table
from serving_layer.health.freshness import FreshnessService
from serving_layer.keys.key import ALL_TENANTS, Caller
from serving_layer.query.service import QueryService
from serving_layer.query.timeline import iso_instant
from serving_layer.responses.alerts import AlertDetail, AlertPage
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.schemas import returns
from views.core.cut import UNIX_EPOCH

router = APIRouter(prefix="/v1", tags=["alerts"])
PAGE = 1000
_ID = re.compile(r"[0-9a-f]{32}").fullmatch
Bound = Annotated[str | None, Field(max_length=40)]


class AlertsQuestion(BaseModel):
    """Which alerts; bounds are UTC days or instants, of `raised_at`."""

    model_config = ConfigDict(extra="forbid")

    store: list[str] = Field([], description="Store ids; every store if none is named.", max_length=100)
    rule: str | None = Field(None, max_length=64, description="The id of a rule.")
    state: State | None = Field(None, description="Open: nothing followed yet.")
    since: Bound = Field(None, alias="from", description="Raised then or later.")
    until: Bound = Field(None, alias="to", description="Raised before that.")
    tenant: TenantName = None
    limit: int = Field(100, ge=1, le=PAGE)
    after: str | None = Field(None, max_length=300, description="`next` of the page before.")
    format: Format = Field("json", description="JSON, or a table with a row per alert.")

    def understood(self, caller: Caller) -> AlertsRequest:
        """BadQuestionError, UnknownNameError."""
        try:
            since, until = received_bound(self.since) or UNIX_EPOCH, received_bound(self.until) or END
        except RequestError as error:
            raise BadQuestionError(error.message.replace("time of receipt", "time"), do=error.do) from error
        if since > until:
            raise BadQuestionError(f"`from` is `{self.since}`, which is after `to`: `{self.until}`.", do="Swap them.")
        visibility_scope = tenant_of(caller, self.tenant, ALL_TENANTS)
        after = None if self.after is None else read_token(self.after)
        return AlertsRequest(
            visibility_scope, frozenset(self.store), self.rule, self.state, since, until, self.limit, after
        )


@router.get("/alerts", operation_id="list_alerts", responses=returns_or_file(AlertPage))
async def list_alerts(
    asked: Annotated[AlertsQuestion, Query()],
    alerting: AlertingOf,
    answers: AnswersOf,
    freshness: FreshnessOf,
    caller: Reader,
) -> Response:
    """Alerts, newest first. A page may be short though others follow: only `next` null says that it is the last.

    `alerts_as_of`: every event received before it was judged, and what that led to is listed; null if nobody keeps
    alerts here. `complete_from`: what was told before is missing; null if nothing is. `state`: open (nothing followed),
    resolved (`resolved_at`, `resolved_because`) or retracted by a publication. `provisional`: no publication with which
    alerts were compared covers its window yet, and none has raised it late or retracted it; what has no window that
    ends, as a level or a silence, stays so unless it is retracted.
    """
    ask = asked.understood(caller)
    if asked.store:
        await answers.stores.visible(asked.store, caller)
    cut = await cut_of(freshness, answers)
    page = await alerting.alerts.page(ask)
    body = AlertPage(
        alerts_as_of=iso_instant(page.kept.as_of),
        complete_from=iso_instant(page.kept.complete_from),
        alerts=[told.response(cut) for told in page.told],
        next=None if page.following is None else write_token(page.following),
    )
    return await formatted_response(asked.format, encode(body), alerts_table, ["alerts"])


@router.get("/alerts/{alert_id}", operation_id="get_alert", responses=returns(AlertDetail))
async def get_alert(
    alert_id: Annotated[str, Path(max_length=64)],
    alerting: AlertingOf,
    answers: AnswersOf,
    freshness: FreshnessOf,
    caller: Reader,
) -> Response:
    """One alert, and every record of it in `records`: as it was raised, then resolved or retracted.

    `provisional` of a record is as of when it was told; above `records` it is as of now.
    """
    cut = await cut_of(freshness, answers)
    kept = await alerting.alerts.kept()
    told, records = await alerting.alerts.one(caller.tenant, alert_id)
    return Response(encode(told.detail(cut, kept, records)), media_type=JSON)


async def cut_of(freshness: FreshnessService, answers: QueryService) -> datetime:
    """As `audited_cut`."""
    return await audited_cut(freshness, answers.readers.published)


def write_token(spot: AlertPosition) -> str:
    """Where the next page begins, for the caller to hand back unread."""
    parts = [round(spot.raised_at.timestamp() * 1000), spot.alert_id]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode()


def read_token(token: str) -> AlertPosition:
    """The inverse. BadQuestionError for anything that `write_token` did not write."""
    try:
        millis, alert_id = orjson.loads(base64.urlsafe_b64decode(token.encode()))
        at = datetime.fromtimestamp(int(millis) / 1000, UTC)
        if _ID(alert_id) and UNIX_EPOCH <= at < END:
            return AlertPosition(at, alert_id)
    except (binascii.Error, ValueError, TypeError, OverflowError, OSError):
        pass
    raise BadQuestionError(
        "`after` is no token of this interface.", do="Use `next` of the page before, or leave it out."
    )
