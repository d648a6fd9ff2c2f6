"""Floor plans of stores: read, saved and removed, for REST and pages. Who may do so is decided before."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from master_dataset.registry.floor_plans import DrawnZone, FloorPlan, PlanImage, no_floor_plan
from master_dataset.registry.stores import Store


class FloorPlanStorage(Protocol):
    """Where floor plans are kept. Every method blocks, and raises as `FloorPlanTables` does."""

    def read(self, tenant: str, store: str) -> FloorPlan | None:
        """The floor plan of a store; None if it has none."""

    def image(self, tenant: str, store: str) -> PlanImage | None:
        """Its image; None if it has none."""

    def save(
        self,
        tenant: str,
        store: str,
        *,
        image: PlanImage | None = None,
        zones: tuple[DrawnZone, ...] | None = None,
        seen: str | None = None,
    ) -> FloorPlan:
        """Save an image, zones, or both. `seen`: the version that its author has seen; None: whatever there is."""

    def remove(self, tenant: str, store: str, *, seen: str | None = None) -> None:
        """Remove the floor plan of a store."""


@dataclass(frozen=True)
class FloorPlanService:
    """The floor plans of registered stores. Methods run in threads, and raise as `FloorPlanTables` does."""

    storage: FloorPlanStorage

    async def find(self, store: Store) -> FloorPlan | None:
        """The floor plan of a store; None if it has none."""
        return await asyncio.to_thread(self.storage.read, store.tenant, store.id)

    async def read(self, store: Store) -> FloorPlan:
        """The floor plan of a store. UnknownNameError if it has none."""
        found = await self.find(store)
        if found is None:
            raise no_floor_plan(store.id)
        return found

    async def image(self, store: Store) -> PlanImage:
        """The image of a floor plan. UnknownNameError if there is none."""
        found = await asyncio.to_thread(self.storage.image, store.tenant, store.id)
        if found is None:
            raise no_floor_plan(store.id)
        return found

    async def save(
        self,
        store: Store,
        *,
        image: PlanImage | None = None,
        zones: tuple[DrawnZone, ...] | None = None,
        seen: str | None = None,
    ) -> FloorPlan:
        """Save an image, zones, or both. `seen`: the version that its author has seen; None: whatever there is."""
        save = self.storage.save
        return await asyncio.to_thread(save, store.tenant, store.id, image=image, zones=zones, seen=seen)

    async def remove(self, store: Store, *, seen: str | None = None) -> None:
        """Remove the floor plan of a store. `seen`: as above."""
        await asyncio.to_thread(self.storage.remove, store.tenant, store.id, seen=seen)
