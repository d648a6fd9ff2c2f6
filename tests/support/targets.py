"""Targets in memory, with the same blocks as in Cassandra."""

from collections.abc import Callable
from datetime import datetime

from master_dataset.registry.targets import Targets, TargetSet, encode_block


class WorldTargets:
    """TargetBlocks. A load replaces all targets of the tenant; `reads`: the stores whose blocks were read."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.sets: dict[str, TargetSet] = {}
        self.blocks: dict[tuple[str, str, str], bytes] = {}
        self.reads: list[str] = []

    def load(self, tenant: str, targets: Targets) -> TargetSet:
        version = str(len(self.blocks))
        for store, own in targets.items():
            self.blocks[tenant, version, store] = encode_block(own)
        count = sum(len(days) for own in targets.values() for days in own.values())
        self.sets[tenant] = TargetSet(tenant, version, count, self._now())
        return self.sets[tenant]

    async def current(self, tenant: str) -> TargetSet | None:
        return self.sets.get(tenant)

    async def block(self, tenant: str, version: str, store: str) -> bytes | None:
        self.reads.append(store)
        return self.blocks.get((tenant, version, store))
