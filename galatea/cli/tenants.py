"""A warning for tenants without stores, whose names may be misspelt."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from deploy.console import print_message
from master_dataset.errors import UnknownNameError
from master_dataset.registry.tenants import ALL_TENANTS, require_tenant

if TYPE_CHECKING:
    from deploy.settings import Settings
    from master_dataset.registry.stores import Store
    from master_dataset.registry.tenants import HasTenant


def registered_stores(settings: "Settings") -> "list[Store]":
    """The stores of all tenants."""
    from deploy.cassandra import session_of
    from master_dataset.registry.registry import Registry

    return list(Registry(session_of(settings.cassandra.address)).stores().values())


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
