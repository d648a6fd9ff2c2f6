"""`galatea annotations`: promotions, campaigns, holidays and outages."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from deploy.console import print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from master_dataset.errors import RequestError
from master_dataset.registry.file_rows import plain_date
from serving_layer.saved.annotations import FIRST_DAY, LAST_DAY, Annotations
from serving_layer.saved.annotations_file import read_annotations

app = typer.Typer(no_args_is_help=True, help="Load and list annotations: promotions, campaigns, holidays, outages.")
Tenant = Annotated[str, typer.Option("--tenant", help="Tenant that owns the annotations.")]
MADE_BY = "command"
Found = TypeVar("Found")


@app.command()
def load(
    file: Annotated[Path, typer.Argument(help="YAML, CSV or JSON Lines: first_day, last_day, kind, text, stores.")],
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Add the annotations in FILE, if all are valid. Loading a file again adds nothing twice."""
    from deploy.cassandra import session_of
    from master_dataset.registry.registry import Registry
    from master_dataset.registry.tenants import require_tenant

    stores = Registry(session_of(Settings().cassandra.address)).stores()
    require_tenant(tenant, stores.values())
    wanted = read_annotations(file)

    async def add(annotations: Annotations) -> tuple[int, int]:
        made = await annotations.add(tenant, wanted, stores, (MADE_BY, datetime.now(UTC)))
        return len(made), await annotations.count(tenant)

    loaded, count = _with(add)
    if as_json:
        print_json({"tenant": tenant, "loaded": loaded, "count": count})
    else:
        print_message(f"  {loaded:,} annotations loaded; tenant {tenant} has {count:,}")


@app.command("list")
def list_annotations(
    tenant: Tenant = "default",
    store: Annotated[str, typer.Option("--store", help="Only those about this store, or about all.")] = "",
    first: Annotated[str, typer.Option("--from", help="Only those that touch this day or a later one.")] = "",
    last: Annotated[str, typer.Option("--to", help="Only those that touch this day or an earlier one.")] = "",
    as_json: AsJson = False,
) -> None:
    """List the tenant's annotations by first day."""
    days = _day("--from", first) if first else FIRST_DAY, _day("--to", last) if last else LAST_DAY
    found = _with(lambda annotations: annotations.annotations_between(tenant, [store] if store else None, *days))
    if as_json:
        from serving_layer.responses.encoding import fields_of

        print_json({"tenant": tenant, "annotations": [fields_of(each.response()) for each in found]})
        return
    rows = [
        [each.id, str(each.first_day), str(each.last_day), each.kind, ", ".join(each.stores) or "all", each.text]
        for each in found
    ]
    print_table(("id", "first day", "last day", "kind", "stores", "text"), rows)


@app.command()
def remove(
    id_: Annotated[str, typer.Argument(metavar="ID", help="Id as shown by `annotations list`.")],
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Remove an annotation."""
    _with(lambda annotations: annotations.remove(tenant, id_))
    if as_json:
        print_json({"tenant": tenant, "id": id_, "removed": True})
    else:
        print_message(f"  annotation {id_} removed")


def _day(option: str, text: str) -> date:
    try:
        return plain_date(text)
    except ValueError as error:
        raise RequestError(
            f"`{option}` is not a valid date: `{text[:100]}`.", do="Write one such as `2026-11-21`."
        ) from error


def _with(act: Callable[[Annotations], Awaitable[Found]]) -> Found:
    from deploy.cassandra import session_of
    from serving_layer.tables import AnnotationTables, AsyncSession

    tables = AnnotationTables(AsyncSession(session_of(Settings().cassandra.address)))

    async def run() -> Found:
        return await act(Annotations(tables))

    return asyncio.run(run())
