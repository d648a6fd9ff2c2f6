"""`galatea stores`: the registry of stores."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.console import ProgressSteps, print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.cli.common.tenants import registered_stores, session_for_loads, was_just_restored

if TYPE_CHECKING:
    from datetime import datetime

    from cassandra.cluster import Session

    from master_dataset.registry.floor_plans import FloorPlan
    from master_dataset.registry.stores import Store

StoreId = Annotated[str, typer.Argument(metavar="STORE", help="Id of a registered store.")]
app = typer.Typer(no_args_is_help=True, help="Register and list stores.")


@app.command()
def load(
    file: Annotated[Path, typer.Argument(help="stores.yaml: a list `stores` of {id, timezone, ...}.")],
    is_lost: Annotated[
        bool, typer.Option("--restore", help="Re-register stores that Cassandra lost, as they were.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Register the stores in FILE, or change registered ones."""
    from deploy.cassandra import refuse_wrong_clock
    from master_dataset.registry.registration import register, restore
    from master_dataset.registry.stores_file import load as read
    from serving_layer.responses.encoding import iso_instant

    settings = Settings()
    stores, skew, session = read(file), settings.layers.skew, session_for_loads(settings)
    refuse_wrong_clock(session, skew)
    owners = {each.id: each.tenant for each in registered_stores(settings)}
    new = {each.tenant for each in stores} - set(owners.values())
    moved = [each for each in stores if each.tenant != owners.get(each.id, each.tenant)]
    to = settings.paths.master_uri, session, stores
    if is_lost:
        begins_at = restore(*to, skew=skew, replaces=was_just_restored(session))
    else:
        with ProgressSteps("stores", transient=True) as steps:
            begins_at = register(*to, partial(_archived, settings, steps), skew=skew)
    if as_json:
        print_json(
            {"loaded": len(stores), "takes_effect_at": iso_instant(begins_at), "moved": [each.id for each in moved]}
        )
        return
    print_message(f"  {len(stores)} stores registered; every process has read them")
    if new:
        print_message(f"  new tenants: {', '.join(sorted(new))}")
    for each in moved:
        print_message(f"  store {each.id} moved from tenant {owners[each.id]} to {each.tenant}, with its history")
    if begins_at:
        print_message(f"  records that are received from {begins_at:%H:%M:%S} UTC on are read accordingly")


def _archived(settings: Settings, steps: ProgressSteps) -> None:
    from deploy.batch import archive_has_read_all

    steps.step(0, 0, "waiting until the archive has read what was sent")
    archive_has_read_all(settings)


@app.command()
def remove(
    stores: Annotated[list[str], typer.Argument(metavar="STORE...", help="Ids of registered stores.")],
    is_meant: Annotated[bool, typer.Option("--yes", help="Remove them. Otherwise nothing changes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what it means to remove stores from the registry, or remove them with --yes. Their events stay."""
    from deploy.cassandra import refuse_wrong_clock
    from deploy.wiring import alert_service_of
    from master_dataset.errors import UnknownNameError
    from master_dataset.registry.registration import remove as take_out
    from master_dataset.registry.registration import stores_with_events
    from serving_layer.responses.encoding import iso_instant

    settings = Settings()
    session, skew = session_for_loads(settings), settings.layers.skew
    known = {each.id: each for each in registered_stores(settings)}
    for id_ in stores:
        if id_ not in known:
            raise UnknownNameError("store", id_, known)
    chosen = [known[id_] for id_ in dict.fromkeys(stores)]
    with_events = stores_with_events(settings.paths.master_uri, stores)
    rules = alert_service_of(settings).rules
    named = {tenant: rules.listed(tenant) for tenant in {each.tenant for each in chosen}}
    rules_of = {
        each.id: [entry.id for entry in named[each.tenant] if entry.rule and each.id in (entry.rule.stores or ())]
        for each in chosen
    }
    begins_at: datetime | None = None
    if is_meant:
        refuse_wrong_clock(session, skew)
        begins_at = take_out(session, [each.id for each in chosen], skew=skew)
    if as_json:
        shown = [
            {"id": each.id, "tenant": each.tenant, "has_events": each.id in with_events, "rules": rules_of[each.id]}
            for each in chosen
        ]
        print_json({"dry_run": not is_meant, "stores": shown, "takes_effect_at": iso_instant(begins_at)})
        return
    rows = [
        (each.tenant, each.id, each.name, "stay" if each.id in with_events else "none", ", ".join(rules_of[each.id]))
        for each in chosen
    ]
    print_table(("tenant", "id", "name", "events", "named by rules"), rows)
    print_message(f"  {len(chosen)} stores {'removed' if is_meant else 'would be removed; to do it: --yes'}")
    if begins_at:
        print_message(f"  records that are received from {begins_at:%H:%M:%S} UTC on are read accordingly")
    if with_events:
        print_message("  keys of their tenants get `unknown_name` for them, and totals are without them")
        print_message("  to register them again as they were: galatea stores load FILE")


@app.command("list")
def list_stores(as_json: AsJson = False) -> None:
    """List the registered stores, by tenant and id."""
    from deploy.cassandra import session_of
    from master_dataset.registry.registry import Registry

    found = Registry(session_of(Settings().cassandra.address)).stores()
    stores = sorted(found.values(), key=lambda each: (each.tenant, each.id))
    if as_json:
        listed = [
            {
                "id": each.id,
                "tenant": each.tenant,
                "name": each.name,
                "timezone": each.timezone,
                "groups": each.current_groups,
            }
            for each in stores
        ]
        print_json({"stores": listed})
    else:
        print_table(
            ("tenant", "id", "name", "time zone", "currency", "groups"),
            [
                (
                    s.tenant,
                    s.id,
                    s.name,
                    s.timezone,
                    s.currency.code,
                    ", ".join(f"{n}={v}" for n, v in s.current_groups.items()),
                )
                for s in stores
            ],
        )


@app.command("floor-plan")
def floor_plan(
    store: StoreId,
    image: Annotated[Path | None, typer.Argument(metavar="IMAGE", help="PNG, JPEG or WebP, at most 2 MB.")] = None,
    zones: Annotated[
        Path | None, typer.Option("--zones", help="YAML: a list `zones` of {zone, rectangle or polygon}.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Save the floor plan of STORE: its image, the zones drawn on it, or both. What is not named stays."""
    from master_dataset.errors import BadFloorPlanError
    from master_dataset.registry.floor_plans import FloorPlanTables
    from master_dataset.registry.floor_plans_file import load_image, load_zones

    if image is None and zones is None:
        raise BadFloorPlanError("image", "There is nothing to save.", do="Name an IMAGE, `--zones FILE`, or both.")
    session, of = _registered(store)
    saved = FloorPlanTables(session).save(
        of.tenant,
        of.id,
        image=load_image(image) if image else None,
        zones=load_zones(zones, of.terms.zones) if zones else None,
    )
    _print_floor_plan(of, saved, as_json=as_json)


@app.command("show-floor-plan")
def show_floor_plan(store: StoreId, as_json: AsJson = False) -> None:
    """Show the size of the floor plan of STORE, and its zones in percent of the image."""
    from master_dataset.registry.floor_plans import FloorPlanTables, no_floor_plan

    session, of = _registered(store)
    found = FloorPlanTables(session).read(of.tenant, of.id)
    if found is None:
        raise no_floor_plan(of.id)
    _print_floor_plan(of, found, as_json=as_json)


@app.command("remove-floor-plan")
def remove_floor_plan(store: StoreId, as_json: AsJson = False) -> None:
    """Remove the floor plan of STORE. What was counted in its zones stays."""
    from master_dataset.registry.floor_plans import FloorPlanTables

    session, of = _registered(store)
    FloorPlanTables(session).remove(of.tenant, of.id)
    if as_json:
        print_json({"store": of.id, "removed": True})
    else:
        print_message(f"  store {of.id} has no floor plan any more")


def _registered(id_: str) -> "tuple[Session, Store]":
    """The session, and the registered store of this id. UnknownNameError if there is none."""
    from deploy.cassandra import session_of
    from master_dataset.errors import UnknownNameError
    from master_dataset.registry.registry import Registry

    session = session_of(Settings().cassandra.address)
    stores = Registry(session).stores()
    if id_ not in stores:
        raise UnknownNameError("store", id_, stores)
    return session, stores[id_]


def _print_floor_plan(store: "Store", plan: "FloorPlan", *, as_json: bool) -> None:
    from master_dataset.registry.floor_plans_file import write_lines

    if as_json:
        zones = [{"zone": each.zone, "polygon": [list(corner) for corner in each.corners]} for each in plan.zones]
        said = {"media_type": plan.media_type, "bytes": plan.bytes, "width": plan.width, "height": plan.height}
        print_json({"store": store.id, "version": plan.version, **said, "zones": zones})
        return
    size = f"{plan.width:,} by {plan.height:,} pixels, {plan.bytes:,} bytes of {plan.media_type}"
    print_message(f"  store {store.id}: {size}; {len(plan.zones)} zones, in percent of the image")
    for line in write_lines(plan.zones).splitlines():
        print_message(f"  {line}")
