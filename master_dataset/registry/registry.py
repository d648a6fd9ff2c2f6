"""The registered stores, in Cassandra, in versions.

A load writes all stores of a new version, and switches to it by compare-and-set: readers see all of it or nothing. The
version changes with every load, so a reader checks one small row per second and reads the stores only if they have
changed.

A load that changes how records are read does so for those that brokers receive from an announced instant on, which is
so far ahead that every reader knows the new version by then (ADR 0083):

    announce the instant -> switch to the version -> confirm the change, if there is enough time left

A reader that meets a record received at that instant or later, and finds the change not confirmed, rejects it. Whoever
is first decides, by compare-and-set, and all others follow. So a load that was too slow, or died, changes nothing.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from cassandra import ConsistencyLevel
from cassandra.concurrent import execute_concurrent_with_args

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError, RequestError, StoresChangedError
from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms
from master_dataset.registry.tenants import ALL_TENANTS
from master_dataset.registry.terms_history import FormerTerms, TermsHistory, TermsOf, TermsUntil, microseconds
from master_dataset.registry.versions import VersionedTables

if TYPE_CHECKING:
    from cassandra.cluster import Session

TenantOf = Callable[[str], str | None]
"""The tenant of a store, by its id; None if it is not registered."""

REFRESH_SECONDS = 1.0
"""How old a reader's copy may be before it checks the version again."""
ANSWER_SECONDS = 2.0
"""How long Cassandra may take to switch to a version that changes how records are read; then the load is tried again
with twice the time."""

SELECT_VERSION = f"SELECT version, count FROM store_sets WHERE tenant = '{ALL_TENANTS}'"  # noqa: S608 - our own name
SELECT_STORES = f"SELECT body FROM registered_stores WHERE tenant = '{ALL_TENANTS}' AND version = ?"  # noqa: S608 - likewise
SELECT_FORMER_VERSION = "SELECT version FROM registry_versions WHERE name = 'stores'"
SELECT_FORMER_STORES = "SELECT body FROM stores"
"""Where a release before versions has written them; they count until the first load of this one."""
_SELECT_CHANGE = "SELECT takes_effect_at, is_confirmed FROM registry_changes WHERE version = ?"
_DECIDE = (
    "UPDATE registry_changes SET is_confirmed = ? WHERE version = ? IF is_confirmed = null AND takes_effect_at = ?"
)
_TRIES = 3
"""A version can be removed while it is read, after two more loads."""
_IN_FLIGHT = 32
_ROUNDED = timedelta(milliseconds=1)
_REMEMBERED = timedelta(days=400)
"""For how long former terms are kept: longer than a topic keeps records that may be read again."""


class Change(NamedTuple):
    """A change of how records are read, by the version that announces it.

    `at`: for records received from then on. `is_confirmed`: None if that is not decided yet.
    """

    version: str
    at: datetime
    is_confirmed: bool | None = None


class Registered(NamedTuple):
    """What a version has registered.

    Attributes:
        version: Its name; empty if it is of a release before versions.
        stores: By id.
        former: How records were read before each change.
        change: The change that it announces; None: records are read as before.
    """

    version: str
    stores: Mapping[str, Store]
    former: Sequence[FormerTerms] = ()
    change: Change | None = None

    def history(self) -> TermsHistory:
        """How records are read, if the change that is not decided yet will be confirmed."""
        current = {store.id: store.terms for store in self.stores.values()}
        if self.change is None or self.change.is_confirmed is not False:
            return TermsHistory(current, self.former)
        rejected = {each.store: each.terms for each in self.former if each.until == self.change.at}
        return TermsHistory(current | rejected, [each for each in self.former if each.until != self.change.at])


class StoreTables(VersionedTables):
    """Loads stores. All methods raise CassandraUnavailableError."""

    kind, versions, counts = "stores", "store_sets", ("count", "former_terms")
    blocks, partition, changed = "registered_stores", ("tenant", "version"), StoresChangedError

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        super().__init__(session)
        prepare, of_version = session.prepare, "tenant = ? AND version = ?"
        self._stores = prepare(SELECT_STORES)
        self._write = prepare("INSERT INTO registered_stores (tenant, version, id, body) VALUES (?, ?, ?, ?)")
        self._write_terms = prepare(
            "INSERT INTO former_terms (tenant, version, store, until, terms) VALUES (?, ?, ?, ?, ?)"
        )
        self._terms = prepare(f"SELECT store, until, terms FROM former_terms WHERE {of_version}")  # noqa: S608 - our own
        self._announce = prepare("INSERT INTO registry_changes (version, takes_effect_at) VALUES (?, ?)")
        self._change = prepare(_SELECT_CHANGE)
        self._settled = prepare(f"{_SELECT_CHANGE} LIMIT 1")  # another text: the driver prepares each once per session
        self._settled.consistency_level = ConsistencyLevel.SERIAL
        self._decide = prepare(_DECIDE)
        self._removals = (
            prepare(f"DELETE FROM registered_stores WHERE {of_version}"),  # noqa: S608 - likewise
            prepare(f"DELETE FROM former_terms WHERE {of_version}"),  # noqa: S608 - likewise
        )
        self._remove_change = prepare("DELETE FROM registry_changes WHERE version = ?")

    def load(
        self,
        stores: Iterable[Store],
        removed: Collection[str] = (),
        *,
        takes_effect_at: datetime,
        are_lost: bool = False,
    ) -> Change | None:
        """Register stores, or change registered ones, and remove others: all of it or nothing.

        Args:
            stores: To register.
            removed: Ids of stores to remove.
            takes_effect_at: From when on received records are read in the new way, in whole milliseconds.
            are_lost: Records of stores that are not registered, and of which no change is known, were read like that.

        Returns:
            The change, which is to be confirmed with `decide`; None if records are read as before.

        Raises:
            StoresChangedError: Another load was faster.
        """
        announced: Change | None = None

        def stage(version: str, before: Any) -> Sequence[int]:  # noqa: ANN401 - a row of the driver
            nonlocal announced
            known = self._decided(self.of(before) if before else Registered("", self._before_versions()))
            wanted = {id_: store for id_, store in known.stores.items() if id_ not in removed}
            wanted |= {store.id: store for store in stores}
            history, oldest = known.history(), takes_effect_at - _REMEMBERED
            former = [each for each in history.former if each.until > oldest]
            never_lost = {each.store for each in former} | history.current.keys()
            changed = [
                FormerTerms(id_, takes_effect_at, was)
                for id_, was in _differing(history, wanted)
                if id_ in never_lost or not are_lost
            ]
            self._stage(version, wanted.values(), [*former, *changed])
            if changed:
                announced = Change(version, takes_effect_at)
                self._session.execute(self._announce, (version, takes_effect_at))
            return len(wanted), len(former) + len(changed)

        self.load_version(ALL_TENANTS, stage)
        return announced

    def _stage(self, version: str, stores: Iterable[Store], former: Iterable[FormerTerms]) -> None:
        rows = [(ALL_TENANTS, version, store.id, store.to_json()) for store in stores]
        execute_concurrent_with_args(self._session, self._write, rows, concurrency=_IN_FLIGHT)
        terms = [(ALL_TENANTS, version, each.store, each.until, _encode(each.terms)) for each in former]
        execute_concurrent_with_args(self._session, self._write_terms, terms, concurrency=_IN_FLIGHT)

    def decide(self, change: Change, *, confirm: bool) -> bool | None:
        """Confirm or reject a change, unless that is decided.

        Returns:
            Whether it counts; None if its version is no longer known, because there are two newer ones.

        Raises:
            CassandraUnavailableError: Whether it was written is unknown.
        """
        try:
            with suppress(*CASSANDRA_UNAVAILABLE):  # whether it was written is unknown; a serial read settles it
                self._session.execute(self._decide, (confirm, change.version, change.at))
            row = self._session.execute(self._settled, (change.version,)).one()
        except CASSANDRA_UNAVAILABLE as error:
            raise _undecided(type(error).__name__) from error
        if row is None:
            return None
        if row.is_confirmed is None:
            raise _undecided("nothing was written")
        return bool(row.is_confirmed)

    def _decided(self, known: Registered) -> Registered:
        """Reject a change that is not confirmed: the next version has to know what counts before it."""
        if known.change is None or known.change.is_confirmed is not None:
            return known
        is_confirmed = self.decide(known.change, confirm=False)
        if is_confirmed is None:
            raise self.overtaken(ALL_TENANTS)
        return known._replace(change=known.change._replace(is_confirmed=is_confirmed))

    def of(self, row: Any) -> Registered:  # noqa: ANN401 - a row of the driver
        """What a version has registered. CassandraUnavailableError if some of it is missing."""
        stores = _by_id(self._session.execute(self._stores, (row.version,)))
        former = [
            FormerTerms(each.store, each.until.replace(tzinfo=UTC), _decode(each.terms))
            for each in self._session.execute(self._terms, (ALL_TENANTS, row.version))
        ]
        expected = row.count + (row.former_terms or 0)
        if (found := len(stores) + len(former)) != expected:
            message = f"{found} of {expected} registered stores and former terms were read."
            raise CassandraUnavailableError(message, do="Try again; `galatea status` says what is wrong.")
        change = self._session.execute(self._change, (row.version,)).one()
        announced = (
            Change(row.version, change.takes_effect_at.replace(tzinfo=UTC), change.is_confirmed) if change else None
        )
        return Registered(row.version, stores, former, announced)

    def version(self) -> str:
        """The version that counts; of a release before versions, its number."""
        row = self.current(ALL_TENANTS)
        if row is not None:
            return str(row.version)
        former = self._session.execute(SELECT_FORMER_VERSION).one()
        return str(former.version if former else 0)

    def read(self) -> Registered:
        """What is registered."""
        for _ in range(_TRIES):
            row = self.current(ALL_TENANTS)
            if row is None:
                return Registered("", self._before_versions())
            try:
                return self.of(row)
            except CassandraUnavailableError as error:
                failed = error
        raise failed

    def remove_version(self, tenant: str, version: str) -> None:
        """Delete all rows of a version."""
        for removal in self._removals:
            self._session.execute(removal, (tenant, version))
        self._session.execute(self._remove_change, (version,))

    def overtaken(self, tenant: str) -> RequestError:  # noqa: ARG002 - there is one registry
        """See `VersionedTables`."""
        message = "Another load has changed the registered stores in the meantime."
        return self.changed(message, do="Load the stores again; nothing of this load was kept.")

    def _before_versions(self) -> Mapping[str, Store]:
        return _by_id(self._session.execute(SELECT_FORMER_STORES))


def _by_id(rows: Iterable[Any]) -> Mapping[str, Store]:
    return {store.id: store for store in (Store.from_json(row.body) for row in rows)}


def _differing(history: TermsHistory, wanted: Mapping[str, Store]) -> Iterator[tuple[str, Terms]]:
    """Each store whose records are to be read in another way than now, and the terms that it has now."""
    for id_ in sorted(history.current.keys() | wanted.keys()):
        store, was = wanted.get(id_), history.current.get(id_, DEFAULT_TERMS)
        if was != (store.terms if store else DEFAULT_TERMS):
            yield id_, was


def _undecided(why: str) -> CassandraUnavailableError:
    message = f"Cassandra did not say from when on stores are registered: {why}."
    return CassandraUnavailableError(message, do="Try again; `galatea status` says what is wrong.")


def _encode(terms: Terms) -> str:
    return msgspec.json.encode(terms).decode()


def _decode(terms: str) -> Terms:
    return msgspec.json.decode(terms, type=Terms)


def _in(ahead: timedelta) -> datetime:
    """An instant ahead, in whole milliseconds, as Cassandra keeps it."""
    at = datetime.now(UTC) + ahead
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


class Registry:
    """The registered stores, at most REFRESH_SECONDS old."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._tables = StoreTables(session)
        self._checked_at = float("-inf")
        self._version = ""
        self._found = Registered("", {})
        self._history = TermsHistory()

    def stores(self) -> Mapping[str, Store]:
        """Return id to store.

        Raises:
            Exception: Any error of the driver. An old copy is never used instead: a currency in it may be wrong.
        """
        if time.monotonic() - self._checked_at >= REFRESH_SECONDS:
            began = time.monotonic()
            version = self._tables.version()
            if version != self._version:
                self._use(self._tables.read())
                self._version = version
            self._checked_at = began
        return self._found.stores

    def terms_until(self, received_us: int) -> TermsHistory:
        """Return how records are read, as of the last `stores()`.

        Args:
            received_us: When the last of the records was received, in microseconds since 1970. They were known of
                before that `stores()`, so that every change that counts for them was announced before it.

        Raises:
            Exception: Any error of the driver.
        """
        change = self._found.change
        if change and change.is_confirmed is None and received_us >= microseconds(change.at):
            is_confirmed = self._tables.decide(change, confirm=False)
            if is_confirmed is None:
                self._use(self._tables.read())
                return self.terms_until(received_us)
            self._use(self._found._replace(change=change._replace(is_confirmed=is_confirmed)))
        return self._history

    def _use(self, found: Registered) -> None:
        self._found, self._history = found, found.history()

    def terms_now(self) -> TermsOf:
        """Return how records are read from now on, apart from a change that is announced just now."""
        self.stores()
        now = microseconds(datetime.now(UTC))
        return self.terms_until(now).at(now)

    def tenant_of(self, store: str) -> str | None:
        """Return the tenant of a store as of the last `stores()`; None if it is not registered."""
        known = self._found.stores.get(store)
        return known.tenant if known else None

    def save(
        self,
        stores: Iterable[Store],
        *,
        removed: Collection[str] = (),
        skew: timedelta = timedelta(0),
        are_lost: bool = False,
    ) -> datetime | None:
        """Register stores and remove others, all or none. Returns when every reader knows, and the change has begun.

        Args:
            stores: To register.
            removed: Ids of stores to remove.
            skew: How far the clocks of brokers and of this machine may differ.
            are_lost: See `StoreTables.load`.

        Returns:
            Records that are received from then on are read in the new way; None: none are read in another way.

        Raises:
            StoresChangedError: Another load was faster.
            CassandraUnavailableError: Records are read as before, because Cassandra was too slow.
        """
        wanted = list(stores)
        for patience in (1, 2, 4):
            began, answered = time.monotonic(), timedelta(seconds=patience * ANSWER_SECONDS)
            at = _in(skew + answered + timedelta(seconds=REFRESH_SECONDS) + _ROUNDED)
            change = self._tables.load(wanted, removed, takes_effect_at=at, are_lost=are_lost)
            in_time = time.monotonic() - began <= answered.total_seconds()
            if change is None or self._tables.decide(change, confirm=in_time):
                return self._begun(skew)
        message = f"Cassandra took more than {answered.total_seconds():g} s to switch to the registered stores."
        do = "Load the stores again when `galatea status` is good; until then, records are read as before."
        raise CassandraUnavailableError(message, do=do)

    def _begun(self, skew: timedelta) -> datetime | None:
        """Wait until every reader knows, and until changes that lie ahead have begun. Returns when the last one did."""
        now = datetime.now(UTC)
        begins_at = max((each.until for each in self._tables.read().former if each.until > now), default=None)
        ahead = (begins_at + skew - now).total_seconds() if begins_at else 0.0
        time.sleep(max(ahead, 2 * REFRESH_SECONDS))
        return begins_at


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
