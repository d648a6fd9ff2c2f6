"""`galatea alerts`: alerts and their rules."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.cli.common.tenants import warn_of_unknown_tenants

if TYPE_CHECKING:
    from datetime import datetime

    from serving_layer.alerts.history import AlertListing, AlertListPage, AlertsRequest, AuditReader
    from serving_layer.alerts.rules import AlertService
    from serving_layer.alerts.rules_file import RuleChange
    from serving_layer.store.readers import PublishedReader

DEFAULT = "default"
app = typer.Typer(no_args_is_help=True, help="Apply and list alert rules, and list alerts.")


@app.command()
def apply(
    file: Annotated[Path, typer.Argument(help="YAML file with a list `rules` of {kind, id, ...}.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the differences without changing anything.")
    ] = False,
    tenant: Annotated[
        str, typer.Option("--tenant", help="Tenant of the rules, if neither the rule nor the file names one.")
    ] = "",
    prune: Annotated[
        bool, typer.Option("--prune", help="Also remove rules of these tenants that are not in FILE.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create or change the rules in FILE. Nothing changes if any of them is invalid."""
    from serving_layer.alerts.rules_file import apply_changes, load, plan_changes

    said = load(file)
    usual = tenant or said.tenant or DEFAULT
    wanted = [(str(rule.get("tenant", usual)), rule) for rule in said.rules]
    alerting, stores = _alerting(), _stores()
    speaks_of = dict.fromkeys([usual, *(of for of, _ in wanted)]) if prune else ()
    steps = plan_changes(alerting.rules, stores, wanted, prune=speaks_of)
    if not dry_run:
        apply_changes(alerting.rules, steps)
    warn_of_unknown_tenants((step.tenant for step in steps if step.after), stores.values())
    if as_json:
        print_json({"dry_run": dry_run, "rules": [_step(step) for step in steps]})
        return
    print_table(("tenant", "rule", "action", "difference"), [_line(step) for step in steps])
    changes = sum(step.does != "keep" for step in steps)
    print_message(
        f"  {changes} of {len(steps)} rules {'would change' if dry_run else 'changed'}{_when(alerting, changes)}"
    )


@app.command()
def rules(tenant: Annotated[str, typer.Option("--tenant", help="Tenant.")] = DEFAULT, as_json: AsJson = False) -> None:
    """List the rules of a tenant."""
    entries = [entry.response() for entry in _alerting().rules.listed(tenant)]
    if as_json:
        print_json({"rules": entries})
        return
    rows = [(each.id, each.version, each.effective_at, each.in_words) for each in entries]
    print_table(("rule", "version", "effective from", "description"), rows)


@app.command("list")
def list_alerts(
    tenant: Annotated[str, typer.Option("--tenant", help="Tenant (default: all).")] = "",
    store: Annotated[list[str] | None, typer.Option("--store", help="Only alerts of this store; repeatable.")] = None,
    state: Annotated[str, typer.Option("--state", help="open, resolved or retracted (default: all).")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="List at most this many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List alerts, newest first, and the time up to which the list is complete."""
    from master_dataset.registry.tenants import ALL_TENANTS
    from serving_layer.alerts.history import STATES, AlertsRequest
    from serving_layer.responses.encoding import iso_instant

    if state and state not in STATES:
        from master_dataset.errors import UnknownNameError

        raise UnknownNameError("state", state, STATES)
    chosen = next((each for each in STATES if each == state), None)
    ask = AlertsRequest(tenant or ALL_TENANTS, frozenset(store or ()), None, chosen, limit=limit)
    page, cut = asyncio.run(_page(_alerting().alerts, *_publications(), ask))
    shown = [each.response(cut) for each in page.alerts]
    as_of, complete_from = iso_instant(page.kept.as_of), iso_instant(page.kept.complete_from)
    if as_json:
        print_json({"alerts_as_of": as_of, "complete_from": complete_from, "alerts": shown})
        return
    rows = [(each.raised_at, each.state, each.tenant, each.store, each.sentence) for each in shown]
    print_table(("raised", "state", "tenant", "store", "message"), rows)
    print_message(
        f"  as of {as_of}" if as_of else "  there is no alert history yet: is the component `alerts` running?"
    )


async def _page(
    alerts: "AlertListing", audits: "AuditReader", published: "PublishedReader", ask: "AlertsRequest"
) -> "tuple[AlertListPage, datetime]":
    """Return a page of alerts, and the cut up to which they were audited."""
    from serving_layer.alerts.history import audited_cut

    cut = await audited_cut(audits, published)
    return await alerts.page(ask), cut


def _alerting() -> "AlertService":
    from deploy.wiring import alert_service_of

    return alert_service_of(Settings())


def _publications() -> "tuple[AuditReader, PublishedReader]":
    from deploy.cassandra import session_of
    from serving_layer.tables import AsyncSession, PublishedTables, WatchTables

    bridge = AsyncSession(session_of(Settings().cassandra.address))
    return WatchTables(bridge), PublishedTables(bridge)


def _stores() -> Any:  # noqa: ANN401 - a mapping whose type is imported late
    from deploy.cassandra import session_of
    from master_dataset.registry.registry import Registry

    return Registry(session_of(Settings().cassandra.address)).stores()


def _step(step: "RuleChange") -> dict[str, Any]:
    differs = {name: [_said(one) for one in both] for name, both in step.differs.items()}
    return {"tenant": step.tenant, "id": step.id, "does": step.does, "differs": differs}


def _line(step: "RuleChange") -> tuple[str, str, str, str]:
    from views.alerts.sentences import describe_rule

    if step.does == "create" and step.after:
        return step.tenant, step.id, step.does, describe_rule(step.after)
    shown = [f"{name}: {_said(old)} -> {_said(new)}" for name, (old, new) in step.differs.items()]
    return step.tenant, step.id, step.does, "" if step.does in ("keep", "remove") else ", ".join(shown)


def _said(value: object) -> Any:  # noqa: ANN401 - any JSON
    from decimal import Decimal

    return str(value) if isinstance(value, Decimal) else value


def _when(alerting: "AlertService", changes: int) -> str:
    return f"; they take effect at {alerting.rules.effective_at():%H:%M:%S} UTC" if changes else ""
