"""Floor plans in memory, and small images to make them of."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from master_dataset.registry.floor_plans import DrawnZone, FloorPlan, PlanImage, changed, no_floor_plan

Shelf = tuple[int, int, int, int]
"""Left, top, right and bottom of a grey block, in pixels."""


class WorldFloorPlans:
    """FloorPlanStorage."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now, self._number = now, 0
        self.plans: dict[tuple[str, str], FloorPlan] = {}
        self.images: dict[tuple[str, str], PlanImage] = {}

    def read(self, tenant: str, store: str) -> FloorPlan | None:
        return self.plans.get((tenant, store))

    def image(self, tenant: str, store: str) -> PlanImage | None:
        return self.images.get((tenant, store))

    def save(
        self,
        tenant: str,
        store: str,
        *,
        image: PlanImage | None = None,
        zones: tuple[DrawnZone, ...] | None = None,
        seen: str | None = None,
    ) -> FloorPlan:
        key = tenant, store
        before = self.plans.get(key)
        self._require(before, seen)
        if image is not None:
            self.images[key] = image
        if key not in self.images:
            raise no_floor_plan(store)
        self._number += 1
        kept = self.images[key]
        now = FloorPlan(
            f"{self._number:013d}-a",
            self._now(),
            kept.media_type,
            len(kept.content),
            kept.width,
            kept.height,
            before.zones if before else (),
        )
        self.plans[key] = now if zones is None else replace(now, zones=zones)
        return self.plans[key]

    def remove(self, tenant: str, store: str, *, seen: str | None = None) -> None:
        before = self.plans.get((tenant, store))
        self._require(before, seen)
        if before is None:
            raise no_floor_plan(store)
        del self.plans[tenant, store], self.images[tenant, store]

    @staticmethod
    def _require(before: FloorPlan | None, seen: str | None) -> None:
        if seen is not None and seen != (before.version if before else ""):
            raise changed()


def png(width: int = 80, height: int = 60, shelves: tuple[Shelf, ...] = ()) -> bytes:
    """A white image with a dark border and grey blocks, as a valid PNG."""
    edge = max(1, width // 200)
    side = b"\x28" * min(edge, width)
    rows = [bytearray((side + b"\xff" * max(0, width - 2 * edge) + side)[:width]) for _ in range(height)]
    for y in (*range(min(edge, height)), *range(max(0, height - edge), height)):
        rows[y][:] = b"\x28" * width
    for left, top, right, bottom in shelves:
        for y in range(top, bottom):
            rows[y][left:right] = b"\xc4" * (right - left)
    lines = b"".join(b"\0" + row for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(kind, data) for kind, data in parts)


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
