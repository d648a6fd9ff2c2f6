"""Data of tenants: what was loaded from their files, and a warning for tenants without stores."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from deploy.console import print_json, print_message, print_table
from master_dataset.errors import OperatorError, UnknownNameError
from master_dataset.registry.tenants import ALL_TENANTS, require_tenant

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings
    from master_dataset.registry.products import ProductMaster
    from master_dataset.registry.stores import Store
    from master_dataset.registry.targets import TargetSet
    from master_dataset.registry.tenants import HasTenant


def registered_stores(settings: "Settings") -> "list[Store]":
    """The stores of all tenants."""
    from deploy.cassandra import session_of
    from master_dataset.registry.registry import Registry

    return list(Registry(session_of(settings.cassandra.address)).stores().values())


def session_for_loads(settings: "Settings") -> "Session":
    """The session for a command that changes what is registered.

    Raises:
        OperatorError: The tables are not those of this release, so that something would be missing in them; or a
            backup is being restored.
    """
    from deploy.backup.mark import refuse_unfinished_restore
    from deploy.cassandra import session_of
    from deploy.clusters import KEYSPACE
    from deploy.schema import pending

    session = session_of(settings.cassandra.address)
    if files := pending(session, KEYSPACE):
        message = f"the tables are older than this release, which needs `{files[-1].name}`"
        raise OperatorError(message, do="galatea migrate")
    refuse_unfinished_restore(session)
    return session


def was_just_restored(session: "Session") -> bool:
    """Whether a backup is what was published last, and neither an archive nor a speed layer has run within a minute."""
    from deploy.services.releases import are_records_read
    from views.control.publication import PointerRow

    pointer = PointerRow(session)
    published = pointer.publication(pointer.read().publication)
    return published is not None and published.is_restored and not are_records_read(session)


def warn_of_unknown_tenants(tenants: Iterable[str], stores: "Iterable[HasTenant]") -> list[str]:
    """Print one line on stderr for each tenant that has no store, and return them.

    A tenant may be set up before its stores.
    """
    known, unknown = list(stores), []
    for tenant in dict.fromkeys(tenants):
        try:
            if tenant != ALL_TENANTS:
                require_tenant(tenant, known)
        except UnknownNameError as error:
            unknown.append(tenant)
            print_message(f"  Warning: no store has the tenant `{tenant}` yet. {error.do}")
    return unknown


def print_loaded(kind: str, loaded: int, current: "ProductMaster | TargetSet", *, as_json: bool) -> None:
    """Print what a load has made of the data of a tenant. `kind`: such as `products`; `loaded`: lines of the file."""
    if as_json:
        print_json({"tenant": current.tenant, "loaded": loaded, "count": current.count, "version": current.version})
    else:
        print_message(f"  {loaded:,} {kind} loaded; tenant {current.tenant} has {current.count:,}")


def print_listed(  # noqa: PLR0913 - the parts of a list
    kind: str, tenant: str, count: int, names: Sequence[str], rows: Sequence[Mapping[str, str]], *, as_json: bool
) -> None:
    """Print some of the data of a tenant. `count`: of all that there is; `names`: of the columns in a table."""
    if as_json:
        print_json({"tenant": tenant, "count": count, kind: list(rows)})
        return
    print_table(names, [list(row.values()) for row in rows])
    print_message(f"  {len(rows):,} of {count:,} {kind} of tenant {tenant}")
