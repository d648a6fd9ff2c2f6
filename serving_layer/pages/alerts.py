"""`/alerts`: the alerts that are open, those that ended, and the rules that raise them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple, Self
from urllib.parse import urlencode

from fastapi import Query, Response
from pydantic import BaseModel, Field

from master_dataset.registry.stores import Store
from master_dataset.registry.tenants import ALL_TENANTS
from serving_layer.alerts.history import AlertsRequest, State, StoredAlert
from serving_layer.api.alerts import cut_of, read_token, write_token
from serving_layer.api.parameters import DEFAULT_TENANT, tenant_of
from serving_layer.pages.figures import figure, plain_number
from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.pickers import names_of
from serving_layer.pages.routing import ReaderVisit, Visit, page_router
from serving_layer.pages.sentences import translated, unit_of
from views.alerts.alert import Alert

router = page_router()
PATH = "/alerts"
MAX_OPEN, PAGE_SIZE = 100, 50
ENDED: tuple[State, ...] = ("resolved", "retracted")
ENDED_TEXTS: Mapping[str, str] = {"resolved": gettext_noop("Ended"), "retracted": gettext_noop("Retracted")}
REASON_TEXTS = {
    "corrected": gettext_noop("later events changed the number"),
    "heard": gettext_noop("data arrived again"),
    "closed": gettext_noop("the store closed"),
    "rule_changed": gettext_noop("the rule changed"),
    "forgotten": gettext_noop("no longer expected"),
    "waited": gettext_noop("late events"),
    "late": gettext_noop("late events"),
    "definition changed": gettext_noop("the definition of the metric changed"),
    "miskeyed": gettext_noop("events with the key of another store"),
    "rolled back": gettext_noop("a publication was rolled back"),
    "again": gettext_noop("later events changed it twice"),
    "unexplained": gettext_noop("the difference is unexplained"),
}
"""Why an alert was resolved or retracted. Any other reason is shown as it is."""


class AlertsPageFilter(BaseModel):
    """The query string. An empty field does not filter."""

    store: str = Field("", max_length=256)
    rule: str = Field("", max_length=64)
    tenant: str = Field("", max_length=256)
    after: str = Field("", max_length=300)
    done: str = Field("", pattern="^(saved|removed|)$")

    def path(self, **changes: str) -> str:
        """The address of this page, with some filters changed."""
        filters = {"store": self.store, "rule": self.rule, "tenant": self.tenant} | changes
        filters = {name: value for name, value in filters.items() if value}
        return f"{PATH}?{urlencode(filters)}" if filters else PATH

    @property
    def rest_path(self) -> str:
        """The address of the same alerts in REST."""
        return f"/v1{self.path()}"


@router.get(PATH)
async def get_alerts(visit: ReaderVisit, query: Annotated[AlertsPageFilter, Query()]) -> Response:
    """Open alerts first, then those that ended, then the rules."""
    fresh = await visit.fresh()
    if query.store:
        await visit.queries.store(query.store)
    tenant = tenant_of(visit.visitor.caller, query.tenant or None, DEFAULT_TENANT)
    rules = await visit.alerting.in_thread(tenant, lambda rules: rules.listed(tenant))
    values = {
        "query": query,
        "tenant": tenant,
        "rules": rules,
        "rule_names": {entry.id: entry.rule.name for entry in rules if entry.rule and entry.rule.name},
        "max_rules": visit.alerting.rules.most,
        "names": names_of(await visit.queries.stores()),
        **await _alerts(visit, query),
    }
    return visit.page("alerts.html", fresh, values)


async def _alerts(visit: Visit, query: AlertsPageFilter) -> dict[str, object]:
    visible = tenant_of(visit.visitor.caller, query.tenant or None, ALL_TENANTS)
    _, stores = await visit.queries.service.stores.all()
    cut = await cut_of(visit.request.app.state.freshness, visit.queries.service)
    only = frozenset([query.store] if query.store else [])
    rule, after = query.rule or None, read_token(query.after) if query.after else None
    listing = visit.alerting.alerts
    is_open = await listing.page(AlertsRequest(visible, only, rule, "open", limit=MAX_OPEN))
    ended = await listing.page(AlertsRequest(visible, only, rule, ENDED, limit=PAGE_SIZE, after=after))
    return {
        "open": [AlertRow.of(each, stores, cut) for each in is_open.alerts],
        "has_more_open": is_open.following is not None,
        "ended": [AlertRow.of(each, stores, cut) for each in ended.alerts],
        "coverage": is_open.kept,
        "following": ended.following and write_token(ended.following),
    }


async def newest_open_alerts(visit: Visit, most: int) -> "OpenAlerts":
    """The newest open alerts of all stores that the visitor can see."""
    _, stores = await visit.queries.service.stores.all()
    cut = await cut_of(visit.request.app.state.freshness, visit.queries.service)
    visible = tenant_of(visit.visitor.caller, None, ALL_TENANTS)
    page = await visit.alerting.alerts.page(AlertsRequest(visible, state="open", limit=most))
    rows = [AlertRow.of(each, stores, cut) for each in page.alerts]
    return OpenAlerts(rows, page.following is not None, is_known=page.kept.as_of is not None)


@dataclass(frozen=True)
class AlertRow:
    """An alert as the page shows it.

    `since`, `until`: its window; `until` is None if it has no end. `certainty`: final once a publication has evaluated
    its window, or if a publication raised it; a window without an end stays provisional. `ended_at`, `ended`: when and
    how it ended; None and empty while it is open.
    """

    alert: Alert
    store: Store | None
    state: str
    since: datetime
    until: datetime | None
    raised_at: datetime
    numbers: str
    certainty: Literal["provisional", "final"]
    ended_at: datetime | None
    ended: str

    @classmethod
    def of(cls, stored: StoredAlert, stores: Mapping[str, Store], cut: datetime) -> Self:
        """`cut`: up to where alerts have been compared with what is published."""
        alert, following = stored.alert, stored.following
        return cls(
            alert,
            stores.get(alert.store),
            stored.state,
            datetime.fromisoformat(alert.window.start),
            datetime.fromisoformat(alert.window.end) if alert.window.end else None,
            stored.raised_at,
            _numbers(alert, stores.get(alert.store)),
            "provisional" if stored.is_provisional(cut) else "final",
            datetime.fromisoformat(following.raised_at) if following else None,
            _ended(following),
        )

    @property
    def sentence(self) -> str:
        """What it says, in the language of the page, with the name of the store and the units of its numbers."""
        return translated(self.alert.sentence, self.store)

    @property
    def zone(self) -> str:
        """The time zone in which its times are shown."""
        return self.store.timezone if self.store else "UTC"

    @property
    def store_name(self) -> str:
        """The name of the store, or its id."""
        return self.store.name or self.alert.store if self.store else self.alert.store


class OpenAlerts(NamedTuple):
    """`has_more`: whether there are older ones. `is_known`: whether alerts have been evaluated at all yet."""

    rows: Sequence[AlertRow]
    has_more: bool
    is_known: bool


def _numbers(alert: Alert, store: Store | None) -> str:
    unit = unit_of(alert.sentence)

    def written(value: Decimal | None) -> str:
        if value is None or not unit or (unit == "money" and store is None):
            return plain_number(value)
        if unit == "minutes":
            return f"{plain_number(value)} min"
        return str(figure(value, unit, store.currency.code if store else ""))

    value = written(alert.value)
    if alert.baseline is not None:
        text = _("{value}, a week before {baseline}; limit {threshold} %")
        return text.format(value=value, baseline=written(alert.baseline), threshold=plain_number(alert.threshold))
    return _("{value}, limit {threshold}").format(value=value, threshold=written(alert.threshold))


def _ended(following: Alert | None) -> str:
    if following is None:
        return ""
    reason, ended = following.reason or "", _(ENDED_TEXTS.get(following.kind, following.kind))
    if reason in {"", "over"}:  # the usual end
        return ended
    return f"{ended}: {_(REASON_TEXTS[reason]) if reason in REASON_TEXTS else reason}"
