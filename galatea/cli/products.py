"""`galatea products`: what SKUs are called, and which categories they are in."""

import asyncio
import time
from pathlib import Path
from typing import Annotated

import typer

from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from galatea.cli.common.tenants import print_listed, print_loaded, session_for_loads

Tenant = Annotated[str, typer.Option("--tenant", help="Tenant that owns the products.")]
app = typer.Typer(no_args_is_help=True, help="Load and list products.")


@app.command()
def load(
    file: Annotated[Path, typer.Argument(help="CSV or JSON Lines: sku, title, brand, category, gtin, valid_from.")],
    tenant: Tenant = "default",
    replace: Annotated[bool, typer.Option("--replace", help="Remove SKUs that are not in FILE.")] = False,
    as_json: AsJson = False,
) -> None:
    """Load the products in FILE, all or none. Earlier versions of these SKUs are replaced; other SKUs stay."""
    from master_dataset.registry.products import ProductSpool, ProductTables
    from master_dataset.registry.products_file import read_products
    from master_dataset.registry.registry import Registry
    from master_dataset.registry.tenants import require_tenant

    session = session_for_loads(Settings())
    require_tenant(tenant, Registry(session).stores().values())
    with ProductSpool() as spool:
        read_products(file, spool)
        master = ProductTables(session).load(tenant, spool, replace=replace)
        loaded = spool.count
    print_loaded("products", loaded, master, as_json=as_json)


@app.command("list")
def list_products(
    tenant: Tenant = "default",
    category: Annotated[str, typer.Option("--category", help="Only this category, such as `Food/Dairy`.")] = "",
    search: Annotated[str, typer.Option("--search", help="Part of the SKU, title, brand or GTIN.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="List at most this many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the tenant's products, one row per version."""
    from deploy.cassandra import session_of
    from master_dataset.registry.products import Product
    from master_dataset.registry.registry import Registry
    from master_dataset.registry.tenants import require_tenant
    from serving_layer.products.reader import ProductFilter, ProductReader
    from serving_layer.tables import AsyncSession
    from serving_layer.tables.registry import ProductBlockTables

    session = session_of(Settings().cassandra.address)
    require_tenant(tenant, Registry(session).stores().values())
    blocks = ProductBlockTables(AsyncSession(session))
    chosen = ProductFilter(tuple(filter(None, category.split("/"))), search)

    async def read() -> tuple[int, list[Product]]:
        reader = ProductReader(blocks, time.monotonic)
        page = await reader.page(tenant, chosen, limit)
        found = list(page.products)
        while page.following and len(found) < limit:
            page = await reader.page(tenant, chosen, limit - len(found), page.following)
            found += page.products
        return page.master.count if page.master else 0, found[:limit]

    count, products = asyncio.run(read())
    rows = [
        {
            "sku": each.sku,
            "title": each.title,
            "brand": each.brand,
            "category": "/".join(each.category),
            "gtin": each.gtin,
            "valid_from": each.valid_from.isoformat() if each.valid_from else "",
        }
        for each in products
    ]
    names = ("sku", "title", "brand", "category", "gtin", "valid from")
    print_listed("products", tenant, count, names, rows, as_json=as_json)
