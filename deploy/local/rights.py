"""What each process of a secured stack may do: the tables it reads and writes, and its topics, groups and transactions.

One table says it for Cassandra and Kafka. A process that writes a table may also read it: compare-and-set needs both.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

from master_dataset.errors import BrokerUnavailableError, CassandraAccessError, OperatorError
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC, PROCESSOR_GROUP

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from confluent_kafka.admin import AclBinding, AclOperation, ResourceType

    from deploy.cassandra import Address, Login
    from master_dataset.kafka.connection import KafkaConnection

SOURCES = "*sources"
"""Stands for the topics of all registered sources."""
RELEASES = "process_releases"
"""Every process that runs writes its row."""
_SECONDS = 30
_SCRAM_ITERATIONS = 8192
_TABLE = 2
"""Slashes in Cassandra's name of a table: `data/galatea/stores`."""
_ALERT_HISTORY = (
    "alert_days",
    "alert_open_hours",
    "alert_records",
    "alerts_kept",
    "alerts_open_by_hour",
    "alerts_open_moved",
    "alerts_told",
)
_WEBHOOKS = ("webhook_endpoints", "webhook_skips", "webhook_states")
_PUBLISHED = ("batch_cells", "corrections", "day_cells", "ledgers", "manifests", "publications", "run_days")
_PRODUCTS = ("product_blocks", "product_masters", "seen_titles", "target_blocks", "target_sets")
_REGISTRY = (
    "former_terms",
    "registered_stores",
    "registry_changes",
    "registry_versions",
    "replaced_stores",
    "store_sets",
    "stores",
)
_SPEED = (
    "generations",
    "raw_pos_transactions",
    "receipt_blocks",
    "speed_cells",
    "speed_cells_by_store",
    "speed_positions",
    "speed_stores",
)
_FIRST_DELIVERIES = ("first_deliveries", "first_deliveries_by_bucket")
_SECRETS = ("secrets_key", "signed_alerts")
"""Which key is that of the deployment, and which alerts it signs. The key itself is a file."""
_PARTITIONS = ("generations", "partition_growths")
"""What says which partitions may be read."""
_SAVED = ("annotations", "saved_views", "share_digests", "share_links")
_ANSWERED = (*_PUBLISHED, *_PRODUCTS, *_REGISTRY, *_SPEED, "archive_positions", "partition_growths")


@dataclass(frozen=True)
class Rights:
    """What one process may do.

    Attributes:
        reads: Tables.
        writes: Tables that it reads, too.
        consumes: Topics that it reads.
        produces: Topics that it writes to.
        groups: Prefixes of its consumer groups.
        transactions: Prefixes of its transactional ids.
    """

    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    consumes: Sequence[str] = ()
    produces: Sequence[str] = ()
    groups: Sequence[str] = ()
    transactions: Sequence[str] = ()


RIGHTS: Mapping[str, Rights] = {
    "archive": Rights(
        reads=(*_REGISTRY, *_PARTITIONS, "publications"),
        writes=("alarms", "archive_positions", "lag", "leases", "registry_changes", RELEASES),
        consumes=(SOURCES,),
        groups=("spark-kafka-source", "galatea.archive", "galatea.lag"),
    ),
    "speed": Rights(
        reads=(*_REGISTRY, *_PARTITIONS, "archive_positions"),
        writes=(
            *(*_SPEED, *_FIRST_DELIVERIES),
            *("alarms", "lag", "leases", "publications", "registry_changes", "seen_titles"),
            RELEASES,
        ),
        consumes=(SOURCES,),
        groups=("spark-kafka-source", "galatea.speed", "galatea.lag"),
    ),
    "alerts": Rights(
        reads=(*_REGISTRY, *_PUBLISHED, *_PARTITIONS, "alerts_open", "leases", "secrets_key"),
        writes=(*_ALERT_HISTORY, "alarms", "alert_audits", "alert_versions", "signed_alerts", RELEASES),
        consumes=(SOURCES, ALERTS_TOPIC, CORRECTIONS_TOPIC),
        produces=(ALERTS_TOPIC, CORRECTIONS_TOPIC, SOURCES),  # ticks, by which time passes where nothing arrives
        groups=(PROCESSOR_GROUP, "galatea.alert-history"),
        transactions=("galatea.alerts.",),
    ),
    "dispatcher": Rights(
        reads=_SECRETS,
        writes=(*_WEBHOOKS, "alarms", "leases", RELEASES),
        consumes=(ALERTS_TOPIC,),
        groups=("galatea.webhook.",),
    ),
    "api": Rights(  # rebuilds that it starts need those of `batch`, on a secured local stack as that user
        reads=(
            *_ANSWERED,
            *_ALERT_HISTORY,
            "alert_audits",
            "alerts_open",
            *_FIRST_DELIVERIES,
            "lag",
            "migrations",
            "running_recomputes",
            "secrets_key",
        ),
        writes=(
            *_REGISTRY,
            *_PRODUCTS,
            *_WEBHOOKS,
            *_SAVED,
            "alarms",
            "alert_versions",
            "api_keys",
            "api_rates",
            "floor_plans",
            "leases",
            "page_sessions",
            "page_sessions_of_keys",
            "publications",
            "recomputes",
            RELEASES,
        ),
        produces=(SOURCES,),
    ),
    "sql": Rights(
        reads=(
            *_ANSWERED,
            *_ALERT_HISTORY,
            "alerts_open",
            "alert_versions",
            "api_keys",
            "alert_audits",
            "lag",
            "leases",
            "secrets_key",
        ),
        writes=(RELEASES,),
    ),
    "batch": Rights(
        reads=(
            *(*_REGISTRY, *_SPEED, *_PRODUCTS, *_ALERT_HISTORY, *_PARTITIONS),
            *("alert_versions", "archive_positions", "lag", "secrets_key"),
        ),
        writes=(
            *_PUBLISHED,
            "alarms",
            "alert_audits",
            "generations",
            "leases",
            "recomputes",
            "running_recomputes",
            "seen_titles",
            "signed_alerts",
        ),
        consumes=(ALERTS_TOPIC, CORRECTIONS_TOPIC),
        produces=(SOURCES, CORRECTIONS_TOPIC),
        groups=(PROCESSOR_GROUP, "galatea.alert-audit"),
    ),
}
_FOREIGN_ROLES = (
    "in a new home, galatea down, delete its folders of Cassandra, and start again; in another one, as `operator` with "
    "cqlsh, drop `cassandra` and the roles that you did not make"
)


def all_rights() -> Rights:
    """Return the rights of one user for all processes."""
    every = RIGHTS.values()
    written = {table for each in every for table in each.writes}
    read = {table for each in every for table in each.reads}
    return Rights(
        reads=sorted(read - written),
        writes=sorted(written),
        consumes=sorted({topic for each in every for topic in each.consumes}),
        produces=sorted({topic for each in every for topic in each.produces}),
        groups=sorted({group for each in every for group in each.groups}),
        transactions=sorted({prefix for each in every for prefix in each.transactions}),
    )


_PRINCIPALS = frozenset(f"User:{user}" for user in RIGHTS)
CACHED_SECONDS = 3.0
"""Cassandra goes by what it has read of a role for two seconds (`roles_validity`)."""


def create_operator(address: "Address", delivered: "Login", nodes: int) -> None:
    """Make the operator of a new ring, and remove the user that Cassandra is delivered with.

    Until then, every user of the machine can log in as that user, so roles that somebody else has made end the start. A
    start that was interrupted in between is made up for by the next one.

    Args:
        address: As the operator.
        delivered: Login of the user that Cassandra is delivered with.
        nodes: Copies of users and rights.

    Raises:
        CassandraUnavailableError: The ring cannot do it now.
        OperatorError: There are roles of somebody else.
    """
    from deploy.cassandra import Login

    operator = address.login or Login("", "")
    if not _is_let_in(address):
        # Roles that exist have no further copies yet. A read of all nodes finds them, and makes the copies.
        address = replace(address, consistency="ALL")
        with _session(replace(address, login=delivered)) as session:
            _refuse_roles_beside(session, {delivered.user})
            session.execute(
                "ALTER KEYSPACE system_auth WITH replication = {'class': 'SimpleStrategy', 'replication_factor': %s}",
                (nodes,),
            )
            session.execute(
                f"CREATE ROLE {operator.user} WITH PASSWORD = %s AND LOGIN = true AND SUPERUSER = true",
                (operator.password,),
            )
    with _session(address) as session:
        roles = "SELECT can_login, is_superuser FROM system_auth.roles WHERE role = %s"
        found = session.execute(roles, (delivered.user,)).one()
        is_there = found is not None and (found.can_login or found.is_superuser)
    if is_there:
        with _session(replace(address, consistency="ALL")) as session:
            lock = f"ALTER ROLE {delivered.user} WITH PASSWORD = %s AND SUPERUSER = false"
            session.execute(lock, (token_urlsafe(32),))
            time.sleep(CACHED_SECONDS)  # connections that are open stay open, and are the superuser's until then
            _refuse_roles_beside(session, {operator.user, delivered.user, *RIGHTS})
            for role in RIGHTS:  # `create_roles` makes them anew, whatever they were allowed to do
                session.execute(f'DROP ROLE IF EXISTS "{role}"')
            # Locked alone, it could still change the operator's password: who makes a role may alter it.
            session.execute(f"DROP ROLE {delivered.user}")


def _refuse_roles_beside(session: "Session", known: Collection[str]) -> None:
    """Refuse other roles than these, and roles that are part of others: Galatea has none."""
    found = [row.role for row in session.execute("SELECT role FROM system_auth.roles") if row.role not in known]
    members = session.execute("SELECT role, member FROM system_auth.role_members")
    if found := [*found, *(f"{row.member} in {row.role}" for row in members)]:
        names = ", ".join(f"`{each}`" for each in sorted(found))
        message = f"while Cassandra still let everybody in, somebody else may have made these roles: {names}"
        raise OperatorError(message, do=_FOREIGN_ROLES)


def _is_let_in(address: "Address") -> bool:
    try:
        with _session(address):
            return True
    except CassandraAccessError:
        return False


@contextmanager
def _session(address: "Address") -> Iterator["Session"]:
    from deploy.cassandra import connect

    session = connect(address)
    try:
        yield session
    finally:
        session.cluster.shutdown()


def create_roles(session: "Session", keyspace: str, passwords: Mapping[str, str]) -> None:
    """Give each process its role, with its password and its rights, in Cassandra.

    Args:
        session: Of the operator.
        keyspace: Galatea's.
        passwords: By role.
    """
    for role, password in passwords.items():
        session.execute(f'CREATE ROLE IF NOT EXISTS "{role}" WITH PASSWORD = %s AND LOGIN = true', (password,))
    grant_tables(session, keyspace)


def grant_tables(session: "Session", keyspace: str) -> None:
    """Give each role exactly its rights to tables, and no others: what it had before and should not have ends.

    Args:
        session: Of a role that may do so.
        keyspace: Galatea's.
    """
    had: dict[tuple[str, str], frozenset[str]] = {
        (row.role, row.resource): frozenset(row.permissions or ())
        for row in session.execute("SELECT role, resource, permissions FROM system_auth.role_permissions")
    }
    for role, rights in RIGHTS.items():
        wanted = {f"data/{keyspace}/{table}": may for table, may in table_permissions(rights)}
        own = {
            resource: found for (name, resource), found in had.items() if name == role and resource.count("/") == _TABLE
        }
        for resource in wanted.keys() | own.keys():
            before, after = own.get(resource, frozenset()), wanted.get(resource, frozenset())
            on = f"ON TABLE {'.'.join(resource.split('/')[1:])}"
            for permission in sorted(after - before):
                session.execute(f'GRANT {permission} {on} TO "{role}"')
            for permission in sorted(before - after):
                session.execute(f'REVOKE {permission} {on} FROM "{role}"')


def table_permissions(rights: Rights) -> Iterator[tuple[str, frozenset[str]]]:
    """Return the permissions to each table. What a process writes, it reads, too."""
    yield from ((table, frozenset({"SELECT"})) for table in rights.reads)
    yield from ((table, frozenset({"SELECT", "MODIFY"})) for table in rights.writes)


def create_kafka_users(kafka: "KafkaConnection", passwords: Mapping[str, str], sources: Sequence[str]) -> None:
    """Give each process its user, with its password and exactly its rights, in Kafka.

    Args:
        kafka: As a user who may do so.
        passwords: By user.
        sources: Topics of the registered sources.

    Raises:
        BrokerUnavailableError: The brokers cannot do it now.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialAlteration,
        UserScramCredentialUpsertion,
    )

    admin = AdminClient({**kafka.client(), "log_level": 0})
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _SCRAM_ITERATIONS)
    users: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, how, password.encode()) for user, password in passwords.items()
    ]
    rules = {rule for user, rights in RIGHTS.items() for rule in kafka_rules(rights, user, sources)}
    anybody, anything = (None, None), (ResourceType.ANY, None, ResourcePatternType.ANY)
    every = AclBindingFilter(*anything, *anybody, AclOperation.ANY, AclPermissionType.ANY)  # type: ignore[arg-type]  # None is any
    try:
        known = {each for each in admin.describe_acls(every).result(_SECONDS) if each.principal in _PRINCIPALS}
        former = [AclBindingFilter(*_parts(each)) for each in known - rules]
        for futures in (
            admin.alter_user_scram_credentials(users),
            admin.create_acls(list(rules - known)) if rules - known else {},
            admin.delete_acls(former) if former else {},
        ):
            for future in futures.values():
                future.result(_SECONDS)
    except KafkaException as error:
        raise BrokerUnavailableError(f"the users could not be created: {error}", do="galatea status") from error


def _parts(rule: "AclBinding") -> tuple[Any, ...]:
    """What a rule is made of, in the order of its constructor."""
    place = rule.restype, rule.name, rule.resource_pattern_type
    return *place, rule.principal, rule.host, rule.operation, rule.permission_type


def kafka_rules(rights: Rights, user: str, sources: Sequence[str]) -> Sequence["AclBinding"]:
    """Return the access control of one user. Reading and writing a topic include describing it."""
    from confluent_kafka.admin import AclOperation, ResourceType

    wanted = [
        (ResourceType.TOPIC, name, AclOperation[operation])
        for name, operations in topic_operations(rights, sources).items()
        for operation in operations
    ]
    prefixed = [
        *((ResourceType.GROUP, name, AclOperation.READ) for name in rights.groups),
        *((ResourceType.TRANSACTIONAL_ID, name, AclOperation.WRITE) for name in rights.transactions),
    ]
    return [
        *(_rule(kind, name, operation, user, prefix=False) for kind, name, operation in wanted),
        *(_rule(kind, name, operation, user, prefix=True) for kind, name, operation in prefixed),
    ]


def topic_operations(rights: Rights, sources: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return what a process does with each topic, in Kafka's words."""
    found: dict[str, list[str]] = {}
    for names, operations in ((rights.consumes, ("READ", "DESCRIBE_CONFIGS")), (rights.produces, ("WRITE",))):
        for name in names:
            for topic in sources if name == SOURCES else (name,):
                found.setdefault(topic, []).extend(operations)
    return found


def _rule(kind: "ResourceType", name: str, operation: "AclOperation", user: str, *, prefix: bool) -> "AclBinding":
    from confluent_kafka.admin import AclBinding, AclPermissionType, ResourcePatternType

    pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
