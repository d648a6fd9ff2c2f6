"""The settings that bound what the REST interface takes from its callers."""

from dataclasses import fields

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from master_dataset.kafka.buffer_limits import CourierRoom
from serving_layer.api.limits import LIMITS, RANGES, Limits, Ranges
from serving_layer.http.connection_limits import ConnectionLimits

CONNECTION, COURIER = ConnectionLimits(), CourierRoom()


class LimitSettings(BaseSettings):
    """All are of one process. What an event itself may be is said by the parser, which is the same for every way in."""

    model_config = SettingsConfigDict(env_prefix="GALATEA_", frozen=True, extra="ignore", use_attribute_docstrings=True)

    header_bytes: int = Field(default=CONNECTION.header_bytes, ge=1024, le=262_144)
    """Bytes of a request's target and header fields together."""
    header_fields: int = Field(default=CONNECTION.header_fields, ge=20)
    """Header fields of a request."""
    receive_seconds: float = Field(default=CONNECTION.receive_seconds, gt=0)
    """Until a request is there as a whole."""
    idle_seconds: float = Field(default=CONNECTION.idle_seconds, ge=1)
    """How long a connection is kept between two requests, and one whose client takes nothing of its answer."""
    connections: int = Field(default=CONNECTION.connections, ge=16)
    """Connections that are open at once; one more ends the one that waits longest for a request."""
    unsent_bytes: int = Field(default=CONNECTION.unsent_bytes, ge=1_000_000)
    """Bytes of answers that wait for their clients, all together."""
    body_bytes: int = Field(default=LIMITS.body_bytes, ge=1024)
    """Bytes of a body with events, as it is sent."""
    unfolded_bytes: int = Field(default=LIMITS.unfolded_bytes, ge=1024)
    """Bytes of such a body when it is decompressed."""
    unfolding: int = Field(default=LIMITS.unfolding, ge=1)
    """How many times its size a body may become beyond `GALATEA_BODY_BYTES`."""
    request_events: int = Field(default=LIMITS.request_events, ge=1, le=10_000)
    """Events in a request."""
    question_bytes: int = Field(default=LIMITS.question_bytes, ge=1024)
    """Bytes of a body that brings no events."""
    bodies_bytes: int = Field(default=LIMITS.bodies_bytes, ge=1_000_000)
    """Bytes of all bodies that are arriving or worked on."""
    requests_in_flight: int = Field(default=LIMITS.requests_in_flight, ge=1)
    """Requests that are worked on at once."""
    ingests_in_flight: int = Field(default=LIMITS.ingests_in_flight, ge=1)
    """Requests with events that are worked on at once."""
    requests_per_key: int = Field(default=LIMITS.requests_per_key, ge=1)
    """Requests of one tenant's key that are under way at once."""
    live_followers: int = Field(default=LIMITS.live_followers, ge=1)
    """How many follow live answers at once."""
    live_followers_per_key: int = Field(default=LIMITS.live_followers_per_key, ge=1)
    """How many do so with one tenant's key."""
    courier_records: int = Field(default=COURIER.records, ge=1)
    """Events on their way to the broker."""
    courier_bytes: int = Field(default=COURIER.size, ge=1_000_000)
    """Their bytes."""
    range_fine_days: int = Field(default=RANGES.fine_days, ge=1)
    """Days that a question at 15 minutes or hours may be about; longer ones take as much more work and memory."""
    range_days: int = Field(default=RANGES.coarse_days, ge=1)
    """Days that a question at any other grain may be about."""
    disk_free_percent: float = Field(default=10.0, ge=0, lt=100)
    """How much of the home's disk has to be free for events to be taken, in percent; 0: no matter."""
    disk_free_mb: int = Field(default=1000, ge=0)
    """The same in MB; 0: no matter."""

    @property
    def limits(self) -> Limits:
        """What the app holds its callers to."""
        return Limits(**{each.name: getattr(self, each.name) for each in fields(Limits)})

    @property
    def ranges(self) -> Ranges:
        """How long a time may be asked for."""
        return Ranges(self.range_fine_days, self.range_days)

    @property
    def courier_room(self) -> CourierRoom:
        """How many events may be on their way."""
        return CourierRoom(self.courier_records, self.courier_bytes)

    @property
    def connection_limits(self) -> ConnectionLimits:
        """What each connection is held to before."""
        return ConnectionLimits(**{each.name: getattr(self, each.name) for each in fields(ConnectionLimits)})
