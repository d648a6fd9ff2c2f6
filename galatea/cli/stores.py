"""`galatea stores`: the registry of stores."""

from pathlib import Path
from typing import Annotated

import typer

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.options import AsJson

app = typer.Typer(no_args_is_help=True, help="Register and list stores.")


@app.command()
def load(
    file: Annotated[Path, typer.Argument(help="stores.yaml: a list `stores` of {id, timezone, ...}.")],
    is_lost: Annotated[bool, typer.Option("--restore", help="Restore lost stores; FILE says how they were.")] = False,
    as_json: AsJson = False,
) -> None:
    """Register the stores in FILE, or change registered ones."""
    from deploy.cassandra import session_of
    from master_dataset.registry.registration import register, restore
    from master_dataset.registry.stores_file import load as read

    settings = Settings()
    stores = read(file)
    save = restore if is_lost else register
    save(settings.paths.master_uri, session_of(settings.cassandra.address), stores)
    if as_json:
        print_json({"loaded": len(stores)})
    else:
        print_message(f"  {len(stores)} stores registered; every process has read them")


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
