"""A simulation request. It is validated before anything is generated."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from lab.simulation.simulation import Simulation
from lab.simulation.store_day import store_day, to_milliseconds
from lab.simulation.stores import equipped, invented_stores
from master_dataset.errors import RequestError
from master_dataset.registry.stores import Store
from master_dataset.registry.stores_file import load
from master_dataset.sources import registered_sources, source_named

MOST_STORES = 100
"""A day of each store is in memory at once: about 10 MB."""
MOST_DAYS = 366
MOST_STORE_DAYS = 2_000
MOST_SEED = 64
FIRST_DAY, LAST_DAY = date(1990, 1, 1), date(2099, 12, 31)


@dataclass(frozen=True)
class SimulationRequest:
    """Either `stores`, a number of invented ones, or `stores_file`. `sources`: comma-separated names; empty: all."""

    stores: int | None
    stores_file: Path | None
    first: date
    last: date
    seed: str
    sources: str = ""
    faults: bool = True

    def simulation(self) -> Simulation:
        """Return the simulation. Raises RequestError, UnknownNameError, BadFileError."""
        self._check_days()
        if not 0 < len(self.seed.encode()) <= MOST_SEED or not self.seed.isprintable():
            raise RequestError(
                f"The seed must hold 1 to {MOST_SEED} bytes of text.", do="Use a shorter word or number."
            )
        topics, stores = _topics(self.sources), self._stores()
        days = (self.last - self.first).days + 1
        if len(stores) * days > MOST_STORE_DAYS:
            message = f"{len(stores):,} stores on {days:,} days are more than {MOST_STORE_DAYS:,} days of a store."
            raise RequestError(message, do="Ask for fewer stores or days; another run can go on with the next days.")
        return Simulation(stores, self.first, self.last, self.seed, topics, faults=self.faults)

    def _check_days(self) -> None:
        if not FIRST_DAY <= self.first <= LAST_DAY or not FIRST_DAY <= self.last <= LAST_DAY:
            raise RequestError(f"A day must lie between {FIRST_DAY} and {LAST_DAY}.", do="Correct --from or --to.")
        if self.first > self.last:
            raise RequestError(f"`{self.first}` is after `{self.last}`.", do="Give --from a day before --to.")
        if (self.last - self.first).days >= MOST_DAYS:
            raise RequestError(f"More than {MOST_DAYS} days were requested.", do="Ask for fewer days.")

    def _stores(self) -> Sequence[Store]:
        if (self.stores is None) == (self.stores_file is None):
            raise RequestError("Either a number of stores or a file of them is needed.", do="--stores or --stores-file")
        found = (
            invented_stores(self.stores or 0)
            if self.stores_file is None
            else list(map(equipped, load(self.stores_file)))
        )
        if not 0 < len(found) <= MOST_STORES:
            raise RequestError(f"{len(found):,} stores were requested.", do=f"Ask for 1 to {MOST_STORES}.")
        return found


def check_past(simulation: Simulation, speed: float | None, now: datetime | None = None) -> None:
    """RequestError if a record would be sent before it could have happened: such ones would become dead letters."""
    now_ms = to_milliseconds(now or datetime.now(UTC))
    days = [store_day(store, day, "") for store in simulation.stores for day in (simulation.first, simulation.last)]
    ends, begins = max(day.ends for day in days), min(day.begins for day in days)
    is_as_fast_as_time = speed is not None and speed <= 1
    if (begins if is_as_fast_as_time else ends) > now_ms:
        raise RequestError("Days that are not over cannot be sent.", do="Give --to a day before today, or use --out.")


def _topics(sources: str) -> Collection[str]:
    named = [each.strip() for each in sources.split(",") if each.strip()]
    return {source_named(name).topic for name in named} or set(registered_sources())
