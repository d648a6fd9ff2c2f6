"""The registered stores, as processes use them: read again when they have changed, and saved so that all know.

The version changes with every load, so a reader checks one small row per second and reads the stores only if they have
changed. `save` returns once every reader has seen the stores, and later records are read by them.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from master_dataset.errors import CassandraUnavailableError, StoresChangedError
from master_dataset.registry.store_tables import Change, Edit, Registered, StoreTables
from master_dataset.registry.stores import Store
from master_dataset.registry.terms_history import TermsHistory, TermsOf, TermsUntil, microseconds

if TYPE_CHECKING:
    from cassandra.cluster import Session

TenantOf = Callable[[str], str | None]
"""The tenant of a store, by its id; None if it is not registered."""

REFRESH_SECONDS = 1.0
"""How old a reader's copy may be before it checks the version again."""
ANSWER_SECONDS = 2.0
"""How long Cassandra may take to switch to a version that changes how records are read; then the load is tried again
with twice the time."""
_ROUNDED = timedelta(milliseconds=1)
_STEP_SECONDS = 0.1
"""More than clocks are slewed during a load."""


class Registry:
    """The registered stores, at most REFRESH_SECONDS old."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._tables = StoreTables(session)
        self._checked_at = float("-inf"), float("-inf")
        self._version = ""
        self._use(Registered("", {}))

    def stores(self) -> Mapping[str, Store]:
        """Return id to store.

        Raises:
            Exception: Any error of the driver. An old copy is never used instead: a currency in it may be wrong.
        """
        began = _clocks()
        # Also by the wall clock: the other one stands still while a machine sleeps.
        if not all(0 <= now - then < REFRESH_SECONDS for now, then in zip(began, self._checked_at, strict=True)):
            version = self._tables.version()
            if version != self._version:
                self._use(self._tables.read())
                self._version = version
            self._checked_at = began
        return self._stores

    def terms_until(self, received_us: int) -> TermsHistory:
        """Return how records are read, as of the last `stores()`.

        Args:
            received_us: When the last of the records was received, in microseconds since 1970. They were known of
                before that `stores()`, so that every change that counts for them was announced before it.

        Raises:
            Exception: Any error of the driver.
        """
        found = self._found
        change = found.change
        if change and change.is_confirmed is None and received_us >= microseconds(change.at):
            is_confirmed = self._tables.decide(change, confirm=False)
            if is_confirmed is None:
                self._use(self._tables.read())
                return self.terms_until(received_us)
            self._use(found.decided(is_confirmed=is_confirmed))
        return self._history

    def terms_now(self) -> TermsOf:
        """Return how records are read that are received now."""
        self.stores()
        now = microseconds(datetime.now(UTC))
        return self.terms_until(now).at(now)

    def tenant_of(self, store: str) -> str | None:
        """Return the tenant of a store as of the last `stores()`; None if it is not registered."""
        known = self._stores.get(store)
        return known.tenant if known else None

    def settled(self) -> Mapping[str, Store]:
        """As `stores()`, for a load that is to follow. StoresChangedError if another one has not decided yet."""
        self.stores()
        self._use(self._tables.settled(self._found))
        return self._stores

    def _use(self, found: Registered) -> None:
        self._found, self._stores, self._history = found, found.stores(), found.history()

    @property
    def version(self) -> str:
        """The version that `settled` has read."""
        return self._found.version

    def save(self, edit: Edit, skew: timedelta, on: str | None = None) -> datetime | None:
        """Register stores and remove others, all or none. Returns when every reader knows, and the change has begun.

        Args:
            edit: What to change.
            skew: How far the clocks of brokers and of this machine may differ.
            on: The version that is to be changed; None: whatever is registered.

        Returns:
            Records that are received from then on are read in the new way; None: all are read as before.

        Raises:
            StoresChangedError: Another load was faster, or is not complete.
            CassandraUnavailableError: It was too slow, so that nothing was changed; or it did not answer, and whether
                anything was changed is unknown.
        """
        change = self.switch(edit, skew, on)
        wait_for(change, skew)
        return change.at if change else None

    def switch(self, edit: Edit, skew: timedelta, on: str | None = None) -> Change | None:
        """As `save`, but return as soon as the change is confirmed; None: records are read as before."""
        replaceable = None if on is None else {on}
        margin = skew + timedelta(seconds=REFRESH_SECONDS)
        for patience in (1, 2, 4):
            answered = timedelta(seconds=patience * ANSWER_SECONDS)
            change = self._tables.load(edit, margin + answered + _ROUNDED, _in_time(margin), replaceable)
            if change is None or change.is_confirmed:
                return change
            replaceable = {change.version}
        with suppress(StoresChangedError, CassandraUnavailableError):
            self._tables.load(Edit(), margin, on=replaceable)  # readers that know no changes see what counts, too
        message = f"Cassandra took more than {answered.total_seconds():g} s to switch to the registered stores."
        raise CassandraUnavailableError(message, do="Load them again when `galatea status` is good. Nothing changed.")


def wait_for(change: Change | None, skew: timedelta) -> None:
    """Wait until every reader knows what was loaded, and until the change has begun on every broker."""
    ahead = (change.at + skew - datetime.now(UTC)).total_seconds() if change else 2 * REFRESH_SECONDS
    time.sleep(max(0.0, ahead))


def _clocks() -> tuple[float, float]:
    return time.monotonic(), time.time()


def _in_time(margin: timedelta) -> Callable[[Change], bool]:
    """Whether a change that is announced from now on begins more than `margin` ahead."""
    began = _clocks()
    return lambda change: datetime.now(UTC) < change.at - margin and not _stepped_back(began)


def _stepped_back(began: tuple[float, float]) -> bool:
    """Whether the wall clock was set back since."""
    now = _clocks()
    return (now[0] - began[0]) - (now[1] - began[1]) > _STEP_SECONDS


_registries: dict["Session", Registry] = {}
"""By session, of which a process has one. Never by the callable that Spark unpickles for each task: no two are equal,
so that each task would keep another registry."""


def store_terms(connect: "Callable[[], Session]") -> TermsUntil:
    """Return how the records of a task are read, for a Spark worker that begins with it.

    Args:
        connect: Returns the one session of this process, the same one at each call; it is pickled with the task.

    Returns:
        See `Registry.terms_until`: which records a task reads is planned before it begins.
    """
    return _fresh(connect).terms_until


def store_tenants(connect: "Callable[[], Session]") -> TenantOf:
    """Return the tenants of stores as of now, for a Spark worker; otherwise as `store_terms`."""
    return _fresh(connect).tenant_of


def _fresh(connect: "Callable[[], Session]") -> Registry:
    session = connect()
    registry = _registries.get(session)
    if registry is None:
        registry = _registries[session] = Registry(session)
    registry.stores()
    return registry
