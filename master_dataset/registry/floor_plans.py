"""The floor plan of a store: an image, and the zones drawn on it; its table in Cassandra.

What an operator sends is read and checked by `floor_plans_file`. Nothing can compute a floor plan again.
"""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from cassandra import ConsistencyLevel

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError, FloorPlanChangedError, UnknownNameError

if TYPE_CHECKING:
    from cassandra.cluster import Session

_TRIES = 5
"""How often a save that expects no particular version follows others that come first."""
_DESCRIPTION = "version, saved_at, media_type, bytes, width, height, zones"


class Corner(NamedTuple):
    """A point of the image: 0 to 1 from its left edge, and from its top edge."""

    x: float
    y: float


class Rectangle(NamedTuple):
    """Its upper left corner and its size, as fractions of the image."""

    x: float
    y: float
    width: float
    height: float

    @property
    def corners(self) -> tuple[Corner, ...]:
        """Clockwise from the upper left."""
        right, bottom = round(self.x + self.width, 6), round(self.y + self.height, 6)
        return Corner(self.x, self.y), Corner(right, self.y), Corner(right, bottom), Corner(self.x, bottom)


@dataclass(frozen=True)
class DrawnZone:
    """A zone as a polygon on the image."""

    zone: str
    corners: tuple[Corner, ...]

    @property
    def rectangle(self) -> Rectangle | None:
        """The same as a rectangle with upright sides; None if it is another polygon."""
        xs, ys = ({corner[axis] for corner in self.corners} for axis in (0, 1))
        found = Rectangle(min(xs), min(ys), round(max(xs) - min(xs), 6), round(max(ys) - min(ys), 6))
        return found if self.corners == found.corners else None


@dataclass(frozen=True)
class PlanImage:
    """An image that was accepted. `width`, `height`: in pixels, as browsers show it."""

    media_type: str
    width: int
    height: int
    content: bytes


@dataclass(frozen=True)
class FloorPlan:
    """A floor plan without the content of its image. `version`: changes with every save."""

    version: str
    saved_at: datetime
    media_type: str
    bytes: int
    width: int
    height: int
    zones: tuple[DrawnZone, ...] = ()


_ZONES = msgspec.json.Decoder(tuple[DrawnZone, ...])


class FloorPlanTables:
    """The table `floor_plans`. All methods raise CassandraUnavailableError."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        of = "FROM floor_plans WHERE tenant = ? AND store = ?"
        self._read = session.prepare(f"SELECT {_DESCRIPTION} {of}")
        self._settle = session.prepare(f"SELECT version {of}")
        self._settle.consistency_level = ConsistencyLevel.SERIAL
        self._image = session.prepare(f"SELECT media_type, width, height, image {of}")
        self._remove = session.prepare("DELETE FROM floor_plans WHERE tenant = ? AND store = ? IF version = ?")

    def read(self, tenant: str, store: str) -> FloorPlan | None:
        """Return the floor plan of a store; None if it has none."""
        row = self._execute(self._read, (tenant, store))
        if row is None:
            return None
        saved_at, zones = row.saved_at.replace(tzinfo=UTC), _ZONES.decode(row.zones)
        return FloorPlan(row.version, saved_at, row.media_type, row.bytes, row.width, row.height, zones)

    def image(self, tenant: str, store: str) -> PlanImage | None:
        """Return its image; None if it has none."""
        row = self._execute(self._image, (tenant, store))
        return None if row is None else PlanImage(row.media_type, row.width, row.height, row.image)

    def save(
        self,
        tenant: str,
        store: str,
        *,
        image: PlanImage | None = None,
        zones: tuple[DrawnZone, ...] | None = None,
        seen: str | None = None,
    ) -> FloorPlan:
        """Save an image, zones, or both; what is None stays as it is.

        Args:
            tenant: Of the store.
            store: Its id.
            image: Replaces the image.
            zones: Replace all zones.
            seen: The version that the author has seen, empty if there was none; None: whatever there is.

        Returns:
            The floor plan as it is now.

        Raises:
            UnknownNameError: The store has no image yet, and none was given.
            FloorPlanChangedError: There is another version than `seen`.
        """
        fields: dict[str, object] = {}
        if image:
            fields |= {"media_type": image.media_type, "bytes": len(image.content), "image": image.content}
            fields |= {"width": image.width, "height": image.height}
        if zones is not None:
            fields["zones"] = msgspec.json.encode(zones).decode()
        for _ in range(_TRIES):
            before = self.read(tenant, store)
            _require(before, seen)
            if before is None and image is None:
                raise no_floor_plan(store)
            version = f"{time.time_ns() // 10**6:013d}-{uuid.uuid4().hex}"
            stamped = {"version": version, "saved_at": datetime.now(UTC), **fields}
            if self._put(tenant, store, stamped, before) and (saved := self.read(tenant, store)):
                return saved
            if seen is not None:
                break
        raise changed()

    def remove(self, tenant: str, store: str, *, seen: str | None = None) -> None:
        """Remove the floor plan of a store.

        Raises:
            UnknownNameError: The store has none.
            FloorPlanChangedError: There is another version than `seen`.
        """
        before = self.read(tenant, store)
        _require(before, seen)
        if before is None:
            raise no_floor_plan(store)
        if not self._execute(self._remove, (tenant, store, before.version)).applied:
            raise changed()

    def _put(self, tenant: str, store: str, fields: Mapping[str, object], before: FloorPlan | None) -> bool:
        """Write fields if the floor plan is still the one before. Whether they were written."""
        if before is None:
            row = {"tenant": tenant, "store": store, "zones": "[]", **fields}
            cql = f"INSERT INTO floor_plans ({', '.join(row)}) VALUES ({', '.join('?' * len(row))}) IF NOT EXISTS"  # noqa: S608 - our own columns
            values: tuple[object, ...] = tuple(row.values())
        else:
            changes = ", ".join(f"{name} = ?" for name in fields)
            cql = f"UPDATE floor_plans SET {changes} WHERE tenant = ? AND store = ? IF version = ?"  # noqa: S608 - our own columns
            values = (*fields.values(), tenant, store, before.version)
        try:
            return bool(self._session.execute(self._session.prepare(cql), values).one().applied)
        except CASSANDRA_UNAVAILABLE:  # whether it was written is unknown; a serial read settles it
            found = self._execute(self._settle, (tenant, store))
            return found is not None and found.version == fields["version"]

    def _execute(self, statement: Any, values: tuple[object, ...]) -> Any:  # noqa: ANN401 - a row of the driver
        try:
            return self._session.execute(statement, values).one()
        except CASSANDRA_UNAVAILABLE as error:
            message = f"Cassandra did not answer: {type(error).__name__}."
            raise CassandraUnavailableError(message, do="Send it again; it is safe to repeat.") from error


def no_floor_plan(store: str) -> UnknownNameError:
    """The error of a store without a floor plan."""
    return UnknownNameError("floor plan of store", store, (), do="Upload its image first.")


def changed() -> FloorPlanChangedError:
    """The error of an author who has not seen what is there now."""
    message = "The floor plan was changed in the meantime."
    return FloorPlanChangedError(message, do="Read it again, and change what it is now.")


def _require(before: FloorPlan | None, seen: str | None) -> None:
    if seen is not None and seen != (before.version if before else ""):
        raise changed()
