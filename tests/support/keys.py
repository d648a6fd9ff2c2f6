"""Keys of a World: made as the command line makes them, kept in a list."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from serving_layer.keys.key import Key, Scope

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class WorldKeys:
    """KeyReader."""

    kept: list[Key] = field(default_factory=list)

    def make(self, tenant: str, *scopes: Scope) -> str:
        """A key that never ends."""
        text, key = Key.new(tenant, scopes or ("read",), "a test", BEGAN, None)
        self.kept.append(key)
        return text

    async def keys(self) -> Sequence[Key]:
        return self.kept
