"""`/v1/alerts`: raised alerts, newest first, and what followed them."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from master_dataset.dead_letters.dead_letter import received_bound
from master_dataset.errors import RequestError
from master_dataset.registry.tenants import ALL_TENANTS
from serving_layer.alerts.history import END, AlertPosition, AlertsRequest, State, audited_cut
from serving_layer.api.caller import AlertingOf, AnswersOf, FreshnessOf, Reader
from serving_layer.api.downloads import formatted_response, returns_or_file
from serving_layer.api.parameters import MAX_PAGE, StoreIds, TenantName, page_token, read_page_token, tenant_of
from serving_layer.errors import BadQuestionError
from serving_layer.files.formats import Format
from serving_layer.files.tables import alerts_table
from serving_layer.health.freshness import FreshnessService
from serving_layer.keys.key import Caller
from serving_layer.responses.alerts import AlertDetail, AlertPage
from serving_layer.responses.encoding import JSON, encode, iso_instant
from serving_layer.responses.schemas import returns
from serving_layer.service import QueryService
from views.alerts.alert import is_alert_id
from views.core.cut import UNIX_EPOCH

router = APIRouter(prefix="/v1", tags=["alerts"])
Bound = Annotated[str | None, Field(max_length=40)]


class AlertsQuery(BaseModel):
    """Query parameters of alerts. Bounds are UTC days or instants of `raised_at`."""

    model_config = ConfigDict(extra="forbid")

    store: StoreIds = Field([], max_length=100)
    rule: str | None = Field(None, max_length=64, description="The id of a rule.")
    state: State | None = Field(None, description="Open: neither resolved nor retracted.")
    since: Bound = Field(None, alias="from", description="Raised at this time or later.")
    until: Bound = Field(None, alias="to", description="Raised before this time.")
    tenant: TenantName = None
    limit: int = Field(100, ge=1, le=MAX_PAGE)
    after: str | None = Field(None, max_length=300, description="`next` of the previous page.")
    format: Format = Field("json", description="JSON, or a table with one row per alert.")

    def to_request(self, caller: Caller) -> AlertsRequest:
        """Return the request to `AlertListing`.

        Raises:
            BadQuestionError: a bound or the token cannot be read.
            UnknownNameError: the tenant is not that of the key.
        """
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
    query: Annotated[AlertsQuery, Query()],
    alerting: AlertingOf,
    answers: AnswersOf,
    freshness: FreshnessOf,
    caller: Reader,
) -> Response:
    """Alerts, newest first. A page can be short although more follow: `next` is null only on the last page.

    `alerts_as_of`: all events received before were evaluated, and their alerts are listed; null if no alerts are kept
    here. `complete_from`: earlier alerts are missing; null if none is. `state`: open, resolved (`resolved_at`,
    `resolved_because`) or retracted by a publication. `provisional`: no audited publication covers the window of the
    alert yet, and none has raised it late or retracted it; alerts without an end of window, such as levels and
    silences, stay provisional unless they are retracted.
    """
    listed = query.to_request(caller)
    if query.store:
        await answers.stores.visible(query.store, caller)
    cut = await cut_of(freshness, answers)
    page = await alerting.alerts.page(listed)
    body = AlertPage(
        alerts_as_of=iso_instant(page.kept.as_of),
        complete_from=iso_instant(page.kept.complete_from),
        alerts=[stored.response(cut) for stored in page.alerts],
        next=None if page.following is None else write_token(page.following),
    )
    return await formatted_response(query.format, encode(body), alerts_table, ["alerts"])


@router.get("/alerts/{alert_id}", operation_id="get_alert", responses=returns(AlertDetail))
async def get_alert(
    alert_id: Annotated[str, Path(max_length=64)],
    alerting: AlertingOf,
    answers: AnswersOf,
    freshness: FreshnessOf,
    caller: Reader,
) -> Response:
    """One alert, with all its `records`: raised, then resolved or retracted.

    `provisional` in a record is as of the time when that record was sent; outside of `records` it is as of now.
    """
    cut = await cut_of(freshness, answers)
    kept = await alerting.alerts.kept()
    stored, records = await alerting.alerts.one(caller.tenant, alert_id)
    return Response(encode(stored.detail(cut, kept, records)), media_type=JSON)


async def cut_of(freshness: FreshnessService, answers: QueryService) -> datetime:
    """See `audited_cut`."""
    return await audited_cut(freshness, answers.readers.published)


def write_token(position: AlertPosition) -> str:
    """The page token of a position."""
    return page_token(round(position.raised_at.timestamp() * 1000), position.alert_id)


def read_token(token: str) -> AlertPosition:
    """The position of a page token. Raises BadQuestionError for an invalid one."""
    return read_page_token(token, _position)


def _position(millis: int, alert_id: str) -> AlertPosition:
    at = datetime.fromtimestamp(int(millis) / 1000, UTC)
    if not is_alert_id(alert_id) or not UNIX_EPOCH <= at < END:
        raise ValueError(alert_id)
    return AlertPosition(at, alert_id)
