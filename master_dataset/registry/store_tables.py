"""The tables of registered stores, in versions, and of the changes that they announce.

A load writes all stores of a new version, and switches to it by compare-and-set: readers see all of it or nothing.

A load that changes how records are read does so for those that brokers receive from an announced instant on, which is
so far ahead that every reader knows the new version by then (ADR 0083):

    stage the stores -> announce the instant -> switch to the version -> confirm the change, if it was in time

A reader that meets a record received at that instant or later, and finds the change not confirmed, rejects it. Whoever
is first decides, by compare-and-set, and all others follow. After a rejection, the stores count as they were before:
the version has kept them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from cassandra import ConsistencyLevel
from cassandra.concurrent import execute_concurrent_with_args

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError, OperatorError, RequestError, StoresChangedError
from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms
from master_dataset.registry.tenants import ALL_TENANTS
from master_dataset.registry.terms_history import FormerTerms, TermsHistory
from master_dataset.registry.versions import VersionedTables

if TYPE_CHECKING:
    from cassandra.cluster import Session

SELECT_VERSION = f"SELECT version, count FROM store_sets WHERE tenant = '{ALL_TENANTS}'"  # noqa: S608 - our own name
SELECT_STORES = f"SELECT body FROM registered_stores WHERE tenant = '{ALL_TENANTS}' AND version = ?"  # noqa: S608 - likewise
SELECT_FORMER_VERSION = "SELECT version FROM registry_versions WHERE name = 'stores'"
SELECT_FORMER_STORES = "SELECT body FROM stores"
"""Where a release before versions has written them; they count until the first load of this one."""
_SELECT_CHANGE = (
    "SELECT former_terms, replaced_stores, takes_effect_at, is_confirmed FROM registry_changes WHERE version = ?"
)
_DECIDE = (
    "UPDATE registry_changes SET is_confirmed = ? WHERE version = ? IF is_confirmed = null AND takes_effect_at = ?"
)
_TRIES = 3
"""A version can be removed while it is read, after two more loads."""
_IN_FLIGHT = 32
_REMEMBERED = timedelta(days=400)
"""For how long former terms are kept: longer than a topic keeps records that may be read again."""
_MILLISECOND = timedelta(milliseconds=1)
_FAR = timedelta(minutes=1)
"""More than the time that loads get differs."""


class Change(NamedTuple):
    """A change of how records are read, which a version announces.

    Attributes:
        version: The version.
        at: For records that are received from then on.
        is_confirmed: Whether it counts; None: that is not decided yet.
        replaced: The stores that it changes, as they were before; None: one was not registered.
    """

    version: str
    at: datetime
    is_confirmed: bool | None = None
    replaced: Mapping[str, Store | None] = {}

    @property
    def is_rejected(self) -> bool:
        """Whether it does not count."""
        return self.is_confirmed is False

    def former_terms(self) -> Iterable[FormerTerms]:
        """How records of these stores are read that were received before."""
        return (FormerTerms(id_, self.at, _terms(store)) for id_, store in self.replaced.items())


class Registered(NamedTuple):
    """What a version has registered.

    Attributes:
        version: Its name; empty if it is of a release before versions.
        loaded: The stores by id, if the change counts.
        former: How records were read before earlier changes.
        change: The change that it announces; None: records are read as before.
    """

    version: str
    loaded: Mapping[str, Store]
    former: Sequence[FormerTerms] = ()
    change: Change | None = None

    def stores(self) -> Mapping[str, Store]:
        """The stores that count, by id. If it is not decided whether the change does: those of the version."""
        if self.change is None or not self.change.is_rejected:
            return self.loaded
        kept = {id_: store for id_, store in self.loaded.items() if id_ not in self.change.replaced}
        return kept | {id_: store for id_, store in self.change.replaced.items() if store}

    def history(self) -> TermsHistory:
        """How records are read, likewise."""
        current = {store.id: store.terms for store in self.stores().values()}
        own = () if self.change is None or self.change.is_rejected else self.change.former_terms()
        return TermsHistory(current, [*self.former, *own])

    def decided(self, *, is_confirmed: bool) -> "Registered":
        """The same, when it is decided about the change."""
        return self._replace(change=self.change and self.change._replace(is_confirmed=is_confirmed))


class Edit(NamedTuple):
    """What a load changes.

    Attributes:
        stores: Stores to register, or to change.
        removed: Ids of stores to remove.
        are_lost: Records of these stores were always read like that, if no change of them is known.
    """

    stores: Sequence[Store] = ()
    removed: Collection[str] = ()
    are_lost: bool = False


class StoreTables(VersionedTables):
    """Loads and reads stores. Methods that write raise CassandraUnavailableError, others the driver's errors."""

    kind, versions, counts = "stores", "store_sets", ("count",)
    blocks, partition, changed = "registered_stores", ("tenant", "version"), StoresChangedError

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        super().__init__(session)
        prepare = session.prepare
        self._stores = prepare(SELECT_STORES)
        self._write = prepare("INSERT INTO registered_stores (tenant, version, id, body) VALUES (?, ?, ?, ?)")
        self._replaced = prepare("SELECT id, body FROM replaced_stores WHERE tenant = ? AND version = ?")
        self._write_replaced = prepare("INSERT INTO replaced_stores (tenant, version, id, body) VALUES (?, ?, ?, ?)")
        self._terms = prepare("SELECT store, until, terms FROM former_terms WHERE tenant = ? AND version = ?")
        self._write_terms = prepare(
            "INSERT INTO former_terms (tenant, version, store, until, terms) VALUES (?, ?, ?, ?, ?)"
        )
        self._change = prepare(_SELECT_CHANGE)
        self._settled = prepare(f"{_SELECT_CHANGE} LIMIT 1")  # another text: the driver prepares each once per session
        self._settled.consistency_level = ConsistencyLevel.SERIAL
        self._announce = prepare(
            "INSERT INTO registry_changes (version, former_terms, replaced_stores, takes_effect_at) VALUES (?, ?, ?, ?)"
        )
        self._decide = prepare(_DECIDE)
        self._remove = [
            prepare(f"DELETE FROM {table} WHERE tenant = ? AND version = ?")  # noqa: S608 - names of our own
            for table in (self.blocks, "replaced_stores", "former_terms")
        ]
        self._remove_change = prepare("DELETE FROM registry_changes WHERE version = ?")

    def load(
        self,
        edit: Edit,
        lead: timedelta,
        in_time: Callable[[Change], bool] | None = None,
        on: Collection[str] | None = None,
    ) -> Change | None:
        """Register stores, or change registered ones, and remove others: all of it or nothing.

        Args:
            edit: What to change.
            lead: After how long records are read in the new way, counted from when everything is staged.
            in_time: Whether a change may still be confirmed; None: the caller decides about it.
            on: The versions that the new one may replace; None: any.

        Returns:
            The change, and what is decided about it; None if records are read as before.

        Raises:
            StoresChangedError: Another load was faster, or has not decided yet.
            OperatorError: A change begins so late that the clock of its load was wrong.
        """
        announced: Change | None = None

        def stage(version: str, before: Any) -> Sequence[int]:  # noqa: ANN401 - a row of the driver
            nonlocal announced
            known = self.settled(self.of(before) if before else Registered("", self._before_versions()))
            if on is not None and known.version not in on:
                raise self.overtaken(ALL_TENANTS)
            registered, history = known.stores(), known.history()
            wanted = {id_: store for id_, store in registered.items() if id_ not in edit.removed}
            wanted |= {store.id: store for store in edit.stores}
            changed = [
                id_
                for id_ in sorted(registered.keys() | wanted.keys())
                if _terms(registered.get(id_)) != _terms(wanted.get(id_))
                if not edit.are_lost or history.knows(id_)
            ]
            replaced = {id_: registered.get(id_) for id_ in changed}
            former = _remembered(history.former)
            _refuse_late(former, lead)
            self._stage(version, wanted.values(), replaced, former)
            newest = max((each.until for each in former), default=datetime.min.replace(tzinfo=UTC))
            at = max(_whole(datetime.now(UTC) + lead), newest + _MILLISECOND) if changed else None
            self._session.execute(self._announce, (version, len(former), len(replaced), at))
            announced = Change(version, at, replaced=replaced) if at else None
            return (len(wanted),)

        loaded = self.switch_version(ALL_TENANTS, stage)
        if announced is not None and in_time is not None:
            is_confirmed = self.decide(announced, confirm=in_time(announced))
            announced = announced._replace(is_confirmed=bool(is_confirmed))
        self.remove_old(ALL_TENANTS, loaded)
        return announced

    def _stage(
        self,
        version: str,
        stores: Iterable[Store],
        replaced: Mapping[str, Store | None],
        former: Iterable[FormerTerms],
    ) -> None:
        of = (ALL_TENANTS, version)
        for statement, rows in (
            (self._write, [(*of, store.id, store.to_json()) for store in stores]),
            (self._write_replaced, [(*of, id_, store and store.to_json()) for id_, store in replaced.items()]),
            (self._write_terms, [(*of, each.store, each.until, _encode(each.terms)) for each in former]),
        ):
            execute_concurrent_with_args(self._session, statement, rows, concurrency=_IN_FLIGHT)

    def decide(self, change: Change, *, confirm: bool) -> bool | None:
        """Confirm or reject a change, unless that is decided.

        Returns:
            Whether it counts; None if its version is no longer known, because there are two newer ones.

        Raises:
            CassandraUnavailableError: Whether it was written is unknown.
        """
        with suppress(*CASSANDRA_UNAVAILABLE):  # whether it was written is unknown; a serial read settles it
            self._session.execute(self._decide, (confirm, change.version, change.at))
        row = self._decision(change)
        if row is not None and row.is_confirmed is None:
            raise _undecided()
        return None if row is None else bool(row.is_confirmed)

    def _decision(self, change: Change) -> Any:  # noqa: ANN401 - a row of the driver
        """What is decided about a change; whatever was being written is complete."""
        try:
            return self._session.execute(self._settled, (change.version,)).one()
        except CASSANDRA_UNAVAILABLE as error:
            raise _undecided() from error

    def settled(self, known: Registered) -> Registered:
        """Reject a change that was not confirmed in time: the next version has to know what counts before it.

        StoresChangedError if its load may still confirm it.
        """
        change = known.change
        if change is None or change.is_confirmed is not None:
            return known
        row = self._decision(change)
        is_confirmed = row and row.is_confirmed
        if is_confirmed is None and change.at <= datetime.now(UTC):
            is_confirmed = self.decide(change, confirm=False)
        if is_confirmed is None:
            message = "Another load of stores is not complete."
            raise self.changed(message, do=f"Load the stores again after {change.at:%H:%M:%S} UTC.")
        return known.decided(is_confirmed=is_confirmed)

    def of(self, row: Any) -> Registered:  # noqa: ANN401 - a row of the driver
        """What a version has registered. CassandraUnavailableError if some of it is missing."""
        version = row.version
        said = self._session.execute(self._change, (version,)).one()  # None: a release before changes has loaded it
        loaded = _by_id(self._session.execute(self._stores, (version,)))
        replaced = {
            each.id: Store.from_json(each.body) if each.body else None
            for each in self._session.execute(self._replaced, (ALL_TENANTS, version))
        }
        former = [
            FormerTerms(each.store, each.until.replace(tzinfo=UTC), msgspec.json.decode(each.terms, type=Terms))
            for each in self._session.execute(self._terms, (ALL_TENANTS, version))
        ]
        found = len(loaded) + len(replaced) + len(former)
        expected = row.count + ((said.replaced_stores or 0) + (said.former_terms or 0) if said else 0)
        if found != expected:
            message = f"{found} of {expected} rows about registered stores were read."
            raise CassandraUnavailableError(message, do="Try again; `galatea status` says what is wrong.")
        if said is None or said.takes_effect_at is None:
            return Registered(version, loaded, former)
        at = said.takes_effect_at.replace(tzinfo=UTC)
        return Registered(version, loaded, former, Change(version, at, said.is_confirmed, replaced))

    def version(self) -> str:
        """The version that counts; of a release before versions, its number."""
        row = self.current(ALL_TENANTS)
        if row is not None:
            return str(row.version)
        former = self._session.execute(SELECT_FORMER_VERSION).one()
        return str(former.version if former else 0)

    def read(self) -> Registered:
        """What is registered."""
        failed = CassandraUnavailableError("Stores are being loaded all the time.", do="Try again.")
        for _ in range(_TRIES):
            row = self.current(ALL_TENANTS)
            if row is None:
                return Registered("", self._before_versions())
            try:
                found = self.of(row)
            except CassandraUnavailableError as error:
                failed = error
            else:
                if self.version() == found.version:  # nothing of it was removed while it was read
                    return found
        raise failed

    def remove_version(self, tenant: str, version: str) -> None:
        """Delete all rows of a version."""
        for removal in self._remove:
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


def _terms(store: Store | None) -> Terms:
    return store.terms if store else DEFAULT_TERMS


def _remembered(former: Sequence[FormerTerms]) -> Sequence[FormerTerms]:
    """Those that may still be needed, and the newest of each store, by which a store is known; in their order."""
    newest, oldest = {each.store: each.until for each in former}, datetime.now(UTC) - _REMEMBERED
    return [each for each in former if each.until > oldest or each.until == newest[each.store]]


def _refuse_late(former: Sequence[FormerTerms], lead: timedelta) -> None:
    """Raise OperatorError if a change lies so far ahead that all later ones would have to wait for it."""
    newest = max((each.until for each in former), default=None)
    if newest and newest > datetime.now(UTC) + lead + _FAR:
        message = f"a change of the registered stores begins only at {newest:%Y-%m-%d %H:%M:%S} UTC"
        raise OperatorError(message, do="a clock was wrong when it was loaded; load the stores again after that time")


def _whole(at: datetime) -> datetime:
    """In whole milliseconds, as Cassandra keeps it."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def _undecided() -> CassandraUnavailableError:
    message = "Cassandra did not answer whether a change of the registered stores counts."
    return CassandraUnavailableError(message, do="Try again; `galatea status` says what is wrong.")


def _encode(terms: Terms) -> str:
    return msgspec.json.encode(terms).decode()
