"""`galatea targets`: what stores should reach on a business day."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.cli.common.tenants import print_listed, print_loaded, session_for_loads

Tenant = Annotated[str, typer.Option("--tenant", help="Tenant that owns the targets.")]
app = typer.Typer(no_args_is_help=True, help="Load and list store targets.")


@app.command()
def load(
    file: Annotated[Path, typer.Argument(help="CSV or JSON Lines: store, day, metric, value.")],
    tenant: Tenant = "default",
    replace: Annotated[bool, typer.Option("--replace", help="Remove targets that are not in FILE.")] = False,
    as_json: AsJson = False,
) -> None:
    """Load the targets in FILE, all or none. Each replaces the previous one for its store, day and metric."""
    from master_dataset.registry.registry import Registry
    from master_dataset.registry.targets import TargetTables
    from master_dataset.registry.targets_file import read_targets
    from master_dataset.registry.tenants import require_tenant
    from serving_layer.admin.loaded_files import TargetTerms
    from views.metrics import registered_metrics
    from views.registry import registered_views

    session = session_for_loads(Settings())
    views = {view.name: view for view in registered_views()}
    stores, metrics = Registry(session).stores().values(), registered_metrics().values()
    require_tenant(tenant, stores)
    targets = read_targets(file, *TargetTerms.of(tenant, stores, metrics, views))
    loaded = sum(len(days) for of_store in targets.values() for days in of_store.values())
    current = TargetTables(session).load(tenant, targets, replace=replace)
    print_loaded("targets", loaded, current, as_json=as_json)


@app.command("list")
def list_targets(
    tenant: Tenant = "default",
    store: Annotated[str, typer.Option("--store", help="Only this store.")] = "",
    metric: Annotated[str, typer.Option("--metric", help="Only this metric.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000_000, help="List at most this many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the tenant's targets by store, metric and day."""
    from deploy.cassandra import session_of
    from master_dataset.registry.registry import Registry
    from master_dataset.registry.targets import DIGITS, TargetTables
    from master_dataset.registry.tenants import require_tenant

    session = session_of(Settings().cassandra.address)
    require_tenant(tenant, Registry(session).stores().values())
    current, blocks = TargetTables(session).all(tenant)
    found = sorted(
        (of, name, day, value)
        for of, targets in blocks
        if store in ("", of)
        for name, days in targets.items()
        if metric in ("", name)
        for day, value in days.items()
    )
    rows = [
        {
            "store": of,
            "day": day.isoformat(),
            "metric": name,
            "value": f"{Decimal(value).scaleb(-DIGITS).normalize():f}",
        }
        for of, name, day, value in found[:limit]
    ]
    count = current.count if current else 0
    print_listed("targets", tenant, count, ("store", "day", "metric", "value"), rows, as_json=as_json)
