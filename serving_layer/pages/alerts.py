"""An alert as a line of a page: what, where, since when, how far beyond its bound, and how sure that is.

`/alerts`: what is open now, what was before, and the rules by which somebody is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal, Self
from urllib.parse import urlencode

from fastapi import Query, Response
from pydantic import BaseModel, Field

from master_dataset.registry.stores import Store
from serving_layer.alerts.history import AlertsRequest, State, StoredAlert
from serving_layer.api.alerts import cut_of, read_token, write_token
from serving_layer.api.parameters import DEFAULT, tenant_of
from serving_layer.keys.key import ALL_TENANTS
from serving_layer.pages.figures import NOTHING
from serving_layer.pages.routing import ReaderVisit, Visit, routes
from views.alerts.alert import Alert

MINUS = "\N{MINUS SIGN}"
BECAUSE = {
    "over": "it is over",
    "corrected": "later events changed the number",
    "heard": "it was heard again",
    "closed": "the store closed",
    "rule_changed": "the rule was changed",
    "forgotten": "it is no longer waited for",
    "waited": "late events, which a publication counts",
    "late": "events that came when the window was judged already",
    "definition changed": "the metric is defined otherwise now",
    "miskeyed": "events under the key of another store",
    "rolled back": "a publication was rolled back",
    "again": "later events took it back and still later ones did not",
    "unexplained": "nobody knows why the numbers differ",
}
"""Why an alert was resolved or retracted, in words; any other reason stands as it is."""


@dataclass(frozen=True)
class AlertLine:
    """`zone`: of the store. `since`: from when on it holds; `until`: when its window ends, None if nobody knows.

    `ended_at`, `ended`: when and how; None and empty as long as it is open. `certainty`: final, once a publication has
    looked at its window, or has said itself what it says; what has no window that ends stays provisional.
    """

    alert: Alert
    store: Store | None
    state: str
    since: datetime
    until: datetime | None
    raised_at: datetime
    against: str
    certainty: Literal["provisional", "final"]
    ended_at: datetime | None
    ended: str

    @classmethod
    def of(cls, told: StoredAlert, stores: Mapping[str, Store], cut: datetime) -> Self:
        """`cut`: see `audited_cut`."""
        alert, following = told.alert, told.following
        until = datetime.fromisoformat(alert.window.end) if alert.window.end else None
        return cls(
            alert,
            stores.get(alert.store),
            told.state,
            datetime.fromisoformat(alert.window.start),
            until,
            told.raised_at,
            _against(alert),
            "provisional" if told.is_provisional(cut) else "final",
            datetime.fromisoformat(following.raised_at) if following else None,
            _ended(following),
        )

    @property
    def zone(self) -> str:
        """In which its times are shown."""
        return self.store.timezone if self.store else "UTC"

    @property
    def place(self) -> str:
        """What the store is called."""
        return self.store.name or self.alert.store if self.store else self.alert.store


def plain(value: Decimal | None) -> str:
    """A number as people write it: no zeros behind, no exponent."""
    if value is None:
        return NOTHING
    text = f"{value:,f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", MINUS)


def _against(alert: Alert) -> str:
    if alert.baseline is not None:
        return f"{plain(alert.value)}, a week before {plain(alert.baseline)}; bound {plain(alert.threshold)} %"
    return f"{plain(alert.value)}, bound {plain(alert.threshold)}"


def _ended(following: Alert | None) -> str:
    if following is None:
        return ""
    reason = following.reason or ""
    return f"{following.kind}: {BECAUSE.get(reason, reason)}" if reason else following.kind


router = routes()
PATH = "/alerts"
MOST_OPEN, PAGE = 100, 50
ENDED: tuple[State, ...] = ("resolved", "retracted")


class AlertsForm(BaseModel):
    """An empty field asks for everything."""

    store: str = Field("", max_length=256)
    rule: str = Field("", max_length=64)
    tenant: str = Field("", max_length=256)
    after: str = Field("", max_length=300)
    done: str = Field("", pattern="^(saved|removed|)$")

    def path(self, **other: str) -> str:
        """The address of this question, with some of it otherwise."""
        said = {"store": self.store, "rule": self.rule, "tenant": self.tenant} | other
        said = {name: value for name, value in said.items() if value}
        return f"{PATH}?{urlencode(said)}" if said else PATH

    @property
    def rest_path(self) -> str:
        """Where REST answers the same."""
        return f"/v1{self.path()}"


@router.get(PATH)
async def get_alerts(visit: ReaderVisit, asked: Annotated[AlertsForm, Query()]) -> Response:
    """Open ones first, then those that ended, then the rules."""
    fresh = await visit.fresh()
    caller = visit.visitor.caller
    sight = tenant_of(caller, asked.tenant or None, ALL_TENANTS)
    if asked.store:
        await visit.answers.store(asked.store)
    _, stores = await visit.answers.all.stores.all()
    whose = tenant_of(caller, asked.tenant or None, DEFAULT)
    rules = await visit.alerting.beside(lambda rules: rules.listed(whose))
    cut = await cut_of(visit.request.app.state.freshness, visit.answers.all)
    said = {
        "asked": asked,
        "whose": whose,
        "rules": rules,
        "most": visit.alerting.rules.most,
        **await _listed(visit, asked, sight, (stores, cut)),
    }
    return visit.page("alerts.html", fresh, said)


async def _listed(
    visit: Visit, asked: AlertsForm, sight: str, known: tuple[Mapping[str, Store], datetime]
) -> dict[str, object]:
    """`known`: every store, and up to where alerts were compared with what is published."""
    of = frozenset([asked.store] if asked.store else [])
    rule = asked.rule or None
    alerts = visit.alerting.alerts
    now = await alerts.page(AlertsRequest(sight, of, rule, "open", limit=MOST_OPEN))
    after = read_token(asked.after) if asked.after else None
    before = await alerts.page(AlertsRequest(sight, of, rule, ENDED, limit=PAGE, after=after))
    return {
        "open": [AlertLine.of(each, *known) for each in now.told],
        "has_more_open": now.following is not None,
        "ended": [AlertLine.of(each, *known) for each in before.told],
        "kept": now.kept,
        "following": before.following and write_token(before.following),
    }
