"""Names of tenants: which there can be, and which have stores."""

from typing import TYPE_CHECKING, Protocol

from master_dataset.errors import RequestError, UnknownNameError
from master_dataset.fields import ID_BYTES
from master_dataset.registry.hidden_characters import hidden_character

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL_TENANTS = "*"
"""In place of a tenant: all of them, registered or not. No tenant has this name."""


class HasTenant(Protocol):
    """A store, as far as its tenant."""

    @property
    def tenant(self) -> str | None:
        """Whose it is; None if that is not known."""


def wrong_tenant(name: str) -> str | None:
    """Say why a name cannot be that of a tenant, to follow the name of its field; None if it can."""
    if not name:
        return "is empty"
    if name == ALL_TENANTS:
        return f"is `{ALL_TENANTS}`, which means all tenants"
    if hidden := hidden_character(name):
        return f"has a character that is not visible, {hidden}: leave it out"
    return f"is longer than {ID_BYTES} bytes" if len(name.encode()) > ID_BYTES else None


def checked_tenant(name: str) -> str:
    """Return the name of a tenant unless it cannot be one.

    Raises:
        RequestError: The name is empty, `*` or too long, or has a character that nobody sees.
    """
    if wrong := wrong_tenant(name):
        raise RequestError(f"The tenant {wrong}.", do="Name one tenant, as its stores do: galatea stores list")
    return name


def require_tenant(tenant: str, stores: "Iterable[HasTenant]") -> None:
    """Refuse a tenant that has no store: its name is probably misspelt, and nobody would ever read its data.

    Args:
        tenant: its name.
        stores: the stores of all tenants.

    Raises:
        UnknownNameError: names the tenant that was probably meant, or all.
    """
    known = {store.tenant for store in stores if store.tenant}
    if tenant not in known:
        raise UnknownNameError("tenant", tenant, known, do="Register its stores first: galatea stores load FILE")
