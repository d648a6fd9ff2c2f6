"""Who asks: what a key opens, or what anybody may see who reaches this machine."""

from dataclasses import dataclass
from typing import Self

from master_dataset.registry.stores import Store
from serving_layer.keys.key import EVERY_TENANT, SCOPES, Key, Scope


@dataclass(frozen=True)
class Caller:
    """`name`: the key's id, or a word. `tenant`: whose stores; None for those of all tenants, registered or not."""

    name: str
    tenant: str | None
    scopes: frozenset[Scope]

    @classmethod
    def of(cls, key: Key) -> Self:
        """Whoever sends that key."""
        return cls(key.id, None if key.tenant == EVERY_TENANT else key.tenant, key.scopes)

    @property
    def sees_all(self) -> bool:
        """Whether stores of all tenants are shown, and those that nobody has registered."""
        return self.tenant is None

    @property
    def sight(self) -> str:
        """Whose stores are shown, as a name: what is remembered or tagged for one sight is never shown to another."""
        return EVERY_TENANT if self.tenant is None else self.tenant

    def sees(self, store: Store) -> bool:
        """Whether the store is theirs."""
        return self.tenant is None or store.tenant == self.tenant


OPERATOR = Caller("operator", None, frozenset(SCOPES))
"""Who holds the key of the stack itself."""
