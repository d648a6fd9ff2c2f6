"""`/alerts`: what is open now, what was before, and the rules by which somebody is told."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Response
from pydantic import BaseModel, Field

from master_dataset.registry.stores import Store
from serving_layer.alerts.alerts import AlertsAsk, State
from serving_layer.api.alerts import cut_of, read_token, write_token
from serving_layer.api.tenant import DEFAULT, tenant_of
from serving_layer.keys.key import EVERY_TENANT
from serving_layer.pages.alert_line import AlertLine
from serving_layer.pages.page_route import routes
from serving_layer.pages.visit import ReaderVisit, Visit

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
    sight = tenant_of(caller, asked.tenant or None, EVERY_TENANT)
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
    now = await alerts.page(AlertsAsk(sight, of, rule, "open", limit=MOST_OPEN))
    after = read_token(asked.after) if asked.after else None
    before = await alerts.page(AlertsAsk(sight, of, rule, ENDED, limit=PAGE, after=after))
    return {
        "open": [AlertLine.of(each, *known) for each in now.told],
        "has_more_open": now.following is not None,
        "ended": [AlertLine.of(each, *known) for each in before.told],
        "kept": now.kept,
        "following": before.following and write_token(before.following),
    }
