"""How fast a stream was read: in events a second, and by what a processor has to do for an event."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """`events` in `seconds` on the clock, with `cpu_seconds` of processor time over all processes that did the work."""

    events: int
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        """Events a second."""
        return self.events / self.seconds

    @property
    def per_core_second(self) -> float:
        """Events for a second of one core."""
        return self.events / self.cpu_seconds
