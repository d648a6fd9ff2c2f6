"""Checks of a Cassandra cluster: nodes, clocks, copies, tables, rights of roles, and the releases that write to it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from cassandra import DriverException, InvalidRequest
from cassandra.metadata import NetworkTopologyStrategy, SimpleStrategy

from deploy.cassandra import connect
from deploy.checks.finding import Finding, failed, fault, good
from deploy.clusters import KEYSPACE
from deploy.local.nodes import THREE
from deploy.local.rights import Rights, table_permissions
from deploy.process import installed_release
from deploy.schema import pending, running_migration
from master_dataset.errors import CassandraAccessError, CassandraUnavailableError, OperatorError
from master_dataset.tls import GUIDE

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.cassandra import Address
    from deploy.settings import Settings

CASSANDRA_RIGHTS = f"{GUIDE}#rights-in-cassandra"
ALTER = f"ALTER KEYSPACE {KEYSPACE} WITH replication = ..., then nodetool repair {KEYSPACE}"
OLDEST_RELEASE = (4, 1)
"""The first release with `ALTER TABLE ... ADD IF NOT EXISTS`, which migrations need to be repeatable."""
HEARD = timedelta(minutes=1)
"""A process that has written its lag within this time is running."""


class NodeClock(NamedTuple):
    """Bounds of how far the clock of a node is ahead of this machine's, in seconds; negative: behind."""

    least: float
    most: float


@dataclass(frozen=True)
class Copies:
    """The copies of each row of a keyspace.

    Attributes:
        of_each: Data centre to copies; empty if one number is for the whole cluster.
        total: Of all data centres together.
    """

    of_each: Mapping[str, int]
    total: int

    @property
    def shown(self) -> str:
        """As a finding shows them."""
        listed = ", ".join(f"{number} in {name}" for name, number in self.of_each.items())
        return f"copies: {listed or f'{self.total} anywhere'}"


def cassandra_findings(
    settings: "Settings", users: Mapping[str, tuple["Settings", Rights]], now: datetime | None = None
) -> Iterator[Finding]:
    """Check the cluster.

    Args:
        settings: The settings.
        users: Name of a process, or of all, to the settings with its login, and what it has to be able to do.
        now: The time; by default that of this machine.
    """
    try:
        address = replace(settings.cassandra.address, keyspace=None)
    except OperatorError as error:
        yield failed("files of GALATEA_CASSANDRA", error)
        return
    points = [contact_finding(address, point) for point in address.contact_points]
    reached = any(each.ok for each in points)
    yield from (each._replace(blocks=not (each.ok or reached)) for each in points)
    if not reached:
        return
    try:
        session = connect(address)
    except CassandraUnavailableError as error:
        yield failed("cluster", error)
        return
    try:
        yield from _cluster_findings(settings, session, now or datetime.now(UTC))
    finally:
        session.cluster.shutdown()
    for name, (own, rights) in users.items():
        yield rights_finding(name, own, rights)


def contact_finding(address: "Address", point: str) -> Finding:
    """Check that one of the contact points lets this process in."""
    check, alone = f"contact point {point}", replace(address, contact_points=(point,))
    try:
        connect(alone).cluster.shutdown()
    except CassandraAccessError as error:
        return failed(check, error)
    except CassandraUnavailableError as error:
        names = "GALATEA_CASSANDRA_CONTACT_POINTS, GALATEA_CASSANDRA_PORT or GALATEA_CASSANDRA_TLS"
        do = f"start the node, or correct {names}"
        return failed(check, error, error.do if error.do != "galatea status" else do)
    return good(check, f"lets {f'the user `{address.login.user}`' if address.login else 'clients without a login'} in")


def _cluster_findings(settings: "Settings", session: "Session", now: datetime) -> Iterator[Finding]:
    checks = (
        ("nodes", lambda: node_findings(settings, session)),
        ("copies", lambda: copies_findings(settings, session)),
        ("tables", lambda: [tables_finding(session)]),
        ("releases", lambda: [releases_finding(session, now)]),
    )
    for name, look in checks:
        try:
            yield from look()
        except CassandraAccessError as error:  # whether it should be allowed is among the rights
            yield good(name, f"not known: {error.message}")
        except (CassandraUnavailableError, OperatorError) as error:
            yield failed(name, error)
        except DriverException as error:
            do = "look at the nodes with nodetool status, then try again"
            yield fault(name, f"Cassandra did not answer: {type(error).__name__}", do)


def node_findings(settings: "Settings", session: "Session") -> Iterator[Finding]:
    """Check that every node is up, new enough, has the same tables, and a clock within the skew."""
    local_dc, versions = settings.cassandra.local_dc, set()
    for host in session.cluster.metadata.all_hosts():
        check = f"node {host.address}"
        if host.is_up is False:
            yield fault(check, "is down", "start it: nodetool status shows its state", blocks=False)
            continue
        if local_dc and host.datacenter != local_dc:
            yield good(check, f"in the data centre {host.datacenter}, which processes here do not use")
            continue
        started = datetime.now(UTC)
        query = "SELECT release_version, schema_version, toTimestamp(now()) AS clock FROM system.local"
        row = session.execute(query, host=host).one()
        ended = datetime.now(UTC)
        versions.add(row.schema_version)
        yield version_finding(check, row.release_version, host.datacenter)
        stamp = row.clock.replace(tzinfo=UTC)
        clock = NodeClock((stamp - ended).total_seconds(), (stamp - started).total_seconds())
        yield clock_finding(f"clock of node {host.address}", clock, settings.layers.skew)
    if len(versions) > 1:
        do = "nodetool describecluster names the nodes; restart those that differ"
        yield fault("schema", f"nodes do not agree on the tables: {len(versions)} versions", do)


def version_finding(check: str, release: str, data_centre: str) -> Finding:
    """Check the release of a node."""
    found = f"Cassandra {release} in the data centre {data_centre}"
    if tuple(map(int, re.findall(r"\d+", release)[:2])) < OLDEST_RELEASE:
        oldest = ".".join(map(str, OLDEST_RELEASE))
        return fault(check, f"{found} is too old", f"upgrade it to Cassandra {oldest} or newer")
    return good(check, found)


def clock_finding(check: str, clock: NodeClock, skew: timedelta) -> Finding:
    """Check that the clock of a node differs from this machine's by at most the skew."""
    allowed, middle = skew.total_seconds(), (clock.least + clock.most) / 2
    found = f"{abs(middle):.1f} s {'ahead of' if middle > 0 else 'behind'} this machine"
    if clock.least > allowed or clock.most < -allowed:
        do = "synchronise the clocks (NTP) of the node and this machine, or raise GALATEA_SKEW_SECONDS"
        return fault(check, f"{found}, and GALATEA_SKEW_SECONDS={allowed:g}", do)
    return good(check, found)


def copies_of(session: "Session", keyspace: str) -> Copies | None:
    """Return the copies of a keyspace; None if it does not exist, or has another strategy."""
    found = session.cluster.metadata.keyspaces.get(keyspace)
    strategy = found.replication_strategy if found else None
    if isinstance(strategy, NetworkTopologyStrategy):
        return Copies(dict(strategy.dc_replication_factors), sum(strategy.dc_replication_factors.values()))
    return Copies({}, strategy.replication_factor) if isinstance(strategy, SimpleStrategy) else None


def copies_findings(settings: "Settings", session: "Session") -> Iterator[Finding]:
    """Check the copies of Galatea's rows, and of roles if there are logins."""
    nodes: dict[str, int] = {}
    for host in session.cluster.metadata.all_hosts():
        nodes[host.datacenter] = nodes.get(host.datacenter, 0) + 1
    found = copies_of(session, KEYSPACE)
    if found is None:
        yield fault("copies", f"there is no keyspace `{KEYSPACE}` yet", "galatea migrate")
        return
    level = settings.cassandra.address.consistency
    yield copies_finding(found, nodes, settings.cassandra.local_dc, level, settings.cassandra.replication)
    roles = copies_of(session, "system_auth")
    if settings.cassandra.user and roles is not None and roles.total < min(THREE, sum(nodes.values())):
        do = "ALTER KEYSPACE system_auth WITH replication = ... with three copies, then nodetool repair system_auth"
        text = f"{roles.total} copies of `system_auth`: nobody can log in when its node is down"
        yield fault("copies of roles", text, do, blocks=False)


def copies_finding(
    copies: Copies, nodes: Mapping[str, int], local_dc: str, level: str, wanted: Mapping[str, int]
) -> Finding:
    """Check the copies of Galatea's keyspace.

    Args:
        copies: As they are.
        nodes: Data centre to nodes.
        local_dc: Of the settings; may be empty.
        level: Consistency of reads and writes.
        wanted: Copies by data centre, of the settings; may be empty.
    """
    shown = copies.shown
    if (wrong := _misplaced(copies, nodes, local_dc, level)) is not None:
        return wrong
    if copies.of_each and wanted and dict(wanted) != dict(copies.of_each):
        do = f"correct GALATEA_CASSANDRA_REPLICATION, or {ALTER}"
        return fault("copies", f"{shown}, and GALATEA_CASSANDRA_REPLICATION differs", do, blocks=False)
    fewest, most = min(copies.of_each.values(), default=copies.total), sum(nodes.values())
    if fewest < min(THREE, most):
        found = f"{shown} on {most} nodes: no node may fail"
        return fault("copies", found, f"have three copies, which survive the loss of a node: {ALTER}", blocks=False)
    return good("copies", f"{shown}; reads and writes with {level}")


def _misplaced(copies: Copies, nodes: Mapping[str, int], local_dc: str, level: str) -> Finding | None:
    """What keeps processes from reading and writing a quorum, if anything."""
    if local_dc and local_dc not in nodes:
        do = f"set GALATEA_CASSANDRA_LOCAL_DC to one of {', '.join(sorted(nodes))}"
        return fault("copies", f"there is no node in `{local_dc}` of GALATEA_CASSANDRA_LOCAL_DC", do)
    if not copies.of_each and (level != "QUORUM" or len(nodes) > 1):
        found = f"{copies.shown} (SimpleStrategy), with {level} and {len(nodes)} data centres"
        return fault("copies", found, f"use NetworkTopologyStrategy: {ALTER}", blocks=level != "QUORUM")
    if copies.of_each and local_dc and not copies.of_each.get(local_dc):
        return fault("copies", f"no copy in `{local_dc}` of GALATEA_CASSANDRA_LOCAL_DC ({copies.shown})", ALTER)
    for name, number in copies.of_each.items():
        if number > nodes.get(name, 0):
            found = f"{number} copies in `{name}`, which has {nodes.get(name, 0)} nodes: a quorum may not be found"
            return fault("copies", found, ALTER)
    return None


def tables_finding(session: "Session") -> Finding:
    """Check that the tables are those of this release. OperatorError if a newer release has changed them."""
    check = "tables"
    try:
        files = pending(session, KEYSPACE)
    except OperatorError as error:
        return failed(check, error)
    keyspace = session.cluster.metadata.keyspaces.get(KEYSPACE)
    if keyspace is None or "migrations" not in keyspace.tables:
        return fault(check, "there are none yet", "galatea migrate")
    running = running_migration(session, KEYSPACE)
    if running is not None:
        found = f"`{running.holder}` (host, process) is changing them, or was killed while it did"
        return fault(check, found, f"wait for it; if it was killed: galatea migrate, after {running.seconds} s at most")
    if files:
        names = ", ".join(f"`{file.name}`" for file in files)
        return fault(
            check, f"a migration is missing, or ended half-way: {names}", "galatea migrate; it is safe to repeat"
        )
    return good(check, "as this release needs them")


def releases_finding(session: "Session", now: datetime) -> Finding:
    """Check that the processes that run are of this release. CassandraUnavailableError."""
    keyspace = session.cluster.metadata.keyspaces.get(KEYSPACE)
    if keyspace is None or "lag" not in keyspace.tables or "release" not in keyspace.tables["lag"].columns:
        return good("releases", "not known before galatea migrate")
    rows = session.execute(f"SELECT reader, release, measured_at FROM {KEYSPACE}.lag")  # noqa: S608 - our own name
    heard = [
        (row.reader, row.release or "one that does not say it")
        for row in rows
        if now - row.measured_at.replace(tzinfo=UTC) < HEARD
    ]
    if "process_releases" in keyspace.tables:
        rows = session.execute(f"SELECT component, release FROM {KEYSPACE}.process_releases")  # noqa: S608 - likewise
        heard += [(row.component, row.release) for row in rows]
    return same_release(set(heard), installed_release())


def same_release(heard: Iterable[tuple[str, str]], own: str) -> Finding:
    """Check that processes are of one release. `heard`: names of processes with their releases."""
    heard = sorted(heard)
    if not heard:
        return good("releases", f"{own} here; no process has been heard within a minute")
    shown = ", ".join(f"{name}: {release}" for name, release in heard)
    if any(release != own for _, release in heard):
        do = "finish the upgrade, or the rollback: restart what has another release with the one that is wanted"
        return fault("releases", f"several at once: {shown}; this command: {own}", do, blocks=False)
    return good("releases", f"{shown}; this command: {own}")


def rights_finding(name: str, settings: "Settings", rights: Rights) -> Finding:
    """Check what the role of a process may do with its tables, without reading or writing one."""
    check = f"rights of {name}"
    try:
        address = settings.cassandra.address
        if address.login is None:
            return good(check, "no login is set")
        session = connect(replace(address, keyspace=None))
    except (CassandraUnavailableError, OperatorError) as error:
        return failed(check, error)
    try:
        granted = granted_to(session, address.login.user)
    except CassandraUnavailableError as error:
        return failed(check, error)
    except DriverException as error:
        return fault(check, f"its rights could not be read: {type(error).__name__}", "nodetool status, then try again")
    finally:
        session.cluster.shutdown()
    if granted is None:
        return good(check, f"`{address.login.user}` may do everything")
    return missing_rights(check, address.login.user, granted, rights)


def granted_to(session: "Session", role: str) -> Mapping[str, frozenset[str]] | None:
    """Return resource to permissions of the session's own role, roles that it has included; None if it may do all.

    Resources are as Cassandra writes them: `<table galatea.stores>`, `<keyspace galatea>`, `<all keyspaces>`.
    """
    quoted = role.replace('"', '""')
    try:
        if any(row.super for row in session.execute(f'LIST ROLES OF "{quoted}"')):
            return None
        rows = session.execute(f'LIST ALL PERMISSIONS OF "{quoted}"')
    except InvalidRequest:  # the cluster has no authorizer, or none with permissions
        return None
    granted: dict[str, frozenset[str]] = {}
    for row in rows:
        granted[row.resource] = granted.get(row.resource, frozenset()) | {row.permission}
    return granted


def missing_rights(check: str, role: str, granted: Mapping[str, frozenset[str]], rights: Rights) -> Finding:
    """Check the permissions of a role against what its process does."""
    everywhere = granted.get("<all keyspaces>", frozenset()) | granted.get(f"<keyspace {KEYSPACE}>", frozenset())
    everywhere |= granted.get(f"<all tables in {KEYSPACE}>", frozenset())
    lacking: dict[str, list[str]] = {}
    for table, needed in table_permissions(rights):
        for permission in needed - everywhere - granted.get(f"<table {KEYSPACE}.{table}>", frozenset()):
            lacking.setdefault(permission, []).append(f"`{table}`")
    if lacking:
        shown = "; ".join(f"{permission} on {_few(sorted(tables))}" for permission, tables in sorted(lacking.items()))
        return fault(check, f"the role `{role}` lacks {shown}", f"grant the rights: {CASSANDRA_RIGHTS}")
    return good(check, f"the role `{role}` may do what it has to")


def _few(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more tables"
