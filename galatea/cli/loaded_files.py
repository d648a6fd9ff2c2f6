"""What commands print of data that tenants load from files, in versions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Option

from deploy.console import print_json, print_message, print_table

if TYPE_CHECKING:
    from master_dataset.registry.products import ProductMaster
    from master_dataset.registry.targets import TargetSet

Tenant = Annotated[str, Option("--tenant", help="Tenant that owns the products or targets.")]


def print_loaded(kind: str, loaded: int, current: "ProductMaster | TargetSet", *, as_json: bool) -> None:
    """Print what a load has made of the data of a tenant. `kind`: such as `products`; `loaded`: lines of the file."""
    if as_json:
        print_json({"tenant": current.tenant, "loaded": loaded, "count": current.count, "version": current.version})
    else:
        print_message(f"  {loaded:,} {kind} loaded; tenant {current.tenant} has {current.count:,}")


def print_listed(  # noqa: PLR0913 - what a list says
    kind: str, tenant: str, count: int, names: Sequence[str], rows: Sequence[Mapping[str, str]], *, as_json: bool
) -> None:
    """Print some of the data of a tenant. `count`: of all that there is; `names`: of the columns in a table."""
    if as_json:
        print_json({"tenant": tenant, "count": count, kind: list(rows)})
        return
    print_table(names, [list(row.values()) for row in rows])
    print_message(f"  {len(rows):,} of {count:,} {kind} of tenant {tenant}")
