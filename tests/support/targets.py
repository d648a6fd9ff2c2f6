"""Targets in memory, with the same blocks as in Cassandra."""

from collections.abc import Callable
from datetime import date, datetime

from master_dataset.registry.targets import Targets, TargetSet, decode_block, encode_block


class WorldTargets:
    """TargetBlocks and TargetLoader. `reads`: the stores whose blocks were read."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.sets: dict[str, TargetSet] = {}
        self.blocks: dict[tuple[str, str, str], bytes] = {}
        self.reads: list[str] = []

    def load(self, tenant: str, targets: Targets, *, replace: bool = True) -> TargetSet:
        version, before = str(len(self.blocks)), self.sets.get(tenant)
        merged: dict[str, dict[str, dict[date, int]]] = {}
        if before and not replace:
            for (of, number, store), block in self.blocks.items():
                if (of, number) == (tenant, before.version):
                    merged[store] = {metric: dict(days) for metric, days in decode_block(block).items()}
        for store, own in targets.items():
            for metric, days in own.items():
                merged.setdefault(store, {}).setdefault(metric, {}).update(days)
        for store, of_store in merged.items():
            self.blocks[tenant, version, store] = encode_block(of_store)
        count = sum(len(days) for of_store in merged.values() for days in of_store.values())
        self.sets[tenant] = TargetSet(tenant, version, count, self._now())
        return self.sets[tenant]

    async def current(self, tenant: str) -> TargetSet | None:
        return self.sets.get(tenant)

    async def block(self, tenant: str, version: str, store: str) -> bytes | None:
        self.reads.append(store)
        return self.blocks.get((tenant, version, store))
