"""How clients connect to Cassandra, and what is said if it does not let them in."""

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra import AuthenticationFailed, ConsistencyLevel, Unauthorized, Unavailable
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, NoHostAvailable
from cassandra.policies import DCAwareRoundRobinPolicy, RoundRobinPolicy
from cassandra.query import named_tuple_factory

from deploy import cassandra
from deploy.cassandra import Address, Login, connect, refuse_wrong_clock
from deploy.schema import migrate
from galatea.cli.compact import compact
from galatea.cli.gc import gc
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraAccessError, CassandraUnavailableError, OperatorError
from master_dataset.tls import Tls
from tests.support.secured_servers import HOST, Authority, serving

CANARY = "canary-1f3a"
LOGIN = Login("galatea", CANARY)
REJECTED = AuthenticationFailed("Provided username galatea and/or password are incorrect")
UNREADABLE = AuthenticationFailed("Unable to perform authentication: Cannot achieve consistency level LOCAL_ONE")


class FakeSession:
    """Statements fail with `error`, if there is one."""

    error: Exception | None = None

    def prepare(self, query: str) -> str:
        return query

    def execute(self, query: str, *_: object, **__: object) -> str:
        if self.error is not None:
            raise self.error
        return query


class FakeCluster:
    """What the driver is made from. `errors`: of the nodes; None if it connects."""

    errors: Mapping[str, Exception] | None = None
    made: "FakeCluster"

    def __init__(self, contact_points: list[str], **options: Any) -> None:
        self.contact_points, self.options, self.is_shut_down = contact_points, options, False
        self.session = FakeSession()
        FakeCluster.made = self

    def connect(self, keyspace: str | None) -> FakeSession:
        self.keyspace = keyspace
        if self.errors is not None:
            raise NoHostAvailable("no host", self.errors)
        return self.session

    def shutdown(self) -> None:
        self.is_shut_down = True


@pytest.fixture(autouse=True)
def _fake_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cassandra, "Cluster", FakeCluster)
    monkeypatch.setattr(FakeCluster, "errors", None)


def refused(address: Address, errors: Mapping[str, Exception], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(FakeCluster, "errors", errors)
    with pytest.raises(CassandraUnavailableError) as found:
        connect(address)
    assert FakeCluster.made.is_shut_down
    assert CANARY not in f"{found.value} {found.value.do}"
    return found.value


def test_a_plain_connection_asks_every_node_for_a_quorum_and_settles_switches_in_all_data_centres() -> None:
    connect(Address(("127.0.0.1", "127.0.0.2"), 9042, "galatea"))
    made = FakeCluster.made
    profile = made.options["execution_profiles"][EXEC_PROFILE_DEFAULT]

    assert (made.contact_points, made.options["port"], made.keyspace) == (["127.0.0.1", "127.0.0.2"], 9042, "galatea")
    assert (made.options["auth_provider"], made.options["ssl_context"]) == (None, None)
    assert profile.consistency_level == ConsistencyLevel.QUORUM
    assert profile.serial_consistency_level == ConsistencyLevel.SERIAL
    assert type(profile.load_balancing_policy._child_policy) is RoundRobinPolicy  # noqa: SLF001 - the driver's own


def test_with_a_local_data_centre_only_its_nodes_are_asked_and_switches_are_still_settled_in_all() -> None:
    connect(Address((HOST,), 9042, "galatea", local_dc="dc1", consistency="LOCAL_QUORUM"))
    profile = FakeCluster.made.options["execution_profiles"][EXEC_PROFILE_DEFAULT]
    nodes = profile.load_balancing_policy._child_policy  # noqa: SLF001 - the driver's own

    assert isinstance(nodes, DCAwareRoundRobinPolicy)
    assert (nodes.local_dc, nodes.used_hosts_per_remote_dc) == ("dc1", 0)
    assert profile.consistency_level == ConsistencyLevel.LOCAL_QUORUM
    assert profile.serial_consistency_level == ConsistencyLevel.SERIAL


def test_a_secured_connection_logs_in_and_checks_certificate_and_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("client", password=CANARY)

    connect(Address((HOST,), 9042, "galatea", LOGIN, Tls(authority.file, issued.certificate, issued.key, CANARY)))
    login, context = FakeCluster.made.options["auth_provider"], FakeCluster.made.options["ssl_context"]

    assert (login.username, login.password) == ("galatea", CANARY)
    assert context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"
    assert len(context.get_ca_certs()) == 1


def test_an_address_shows_no_secret_and_equals_itself_after_pickling() -> None:
    address = Address((HOST,), 9042, "galatea", LOGIN, Tls("ca.pem", "client.pem", "client.key", CANARY))

    assert CANARY not in f"{address} {address!r} {[address]} {LOGIN}"
    assert {address, pickle.loads(pickle.dumps(address))} == {address}  # noqa: S301 - as Spark sends it
    assert replace(address, login=Login("galatea", "other")) != address


def test_a_rejected_login_names_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = {f"{HOST}:9042": ConnectionRefusedError(), "127.0.0.2:9042": REJECTED}

    error = refused(Address((HOST,), 9042, login=LOGIN), errors, monkeypatch)

    assert isinstance(error, CassandraAccessError)
    assert error.message.startswith(f"Cassandra at `{HOST}:9042` rejects the user `galatea`")
    assert error.do == "correct GALATEA_CASSANDRA_USER and GALATEA_CASSANDRA_PASSWORD, or its file"


def test_a_cluster_that_asks_for_a_login_names_the_settings_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(Address((HOST,), 9042), {HOST: AuthenticationFailed("Remote end requires it")}, monkeypatch)

    assert isinstance(error, CassandraAccessError)
    assert error.do == "set GALATEA_CASSANDRA_USER and GALATEA_CASSANDRA_PASSWORD_FILE"


@pytest.mark.parametrize("reason", [UNREADABLE, ConnectionRefusedError()], ids=["passwords unreadable", "away"])
def test_a_cluster_that_does_not_work_is_waited_for(reason: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(Address((HOST,), 9042, login=LOGIN), {HOST: reason}, monkeypatch)

    assert not isinstance(error, OperatorError)
    assert error.message == f"Cassandra does not answer at `{HOST}:9042`"


def test_a_data_centre_without_a_node_names_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(Address((HOST,), 9042, local_dc="dc7"), {}, monkeypatch)

    assert isinstance(error, CassandraAccessError)
    assert "no node in the data centre `dc7`" in error.message
    assert error.do == "correct GALATEA_CASSANDRA_LOCAL_DC"


@pytest.mark.parametrize(
    ("name", "lasts", "trusts", "message", "setting"),
    [
        (HOST, 1, "other", "is not signed by an authority in", "GALATEA_CASSANDRA_CA_FILE"),
        ("cassandra.example", 1, "ca", "is for another name", "GALATEA_CASSANDRA_CONTACT_POINTS"),
        (HOST, -1, "ca", "has expired", "renew it on the server"),
    ],
)
def test_a_certificate_that_cannot_be_trusted_says_why(  # noqa: PLR0913, PLR0917 - cases
    tmp_path: Path, name: str, lasts: int, trusts: str, message: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorities = {each: Authority(tmp_path, each) for each in ("ca", "other")}
    server = authorities["ca"].issue("node", name, timedelta(hours=lasts)).server()
    with serving(server) as port:
        address = Address((HOST,), port, tls=Tls(authorities[trusts].file))
        error = refused(address, {HOST: OSError("certificate verify failed")}, monkeypatch)

    assert isinstance(error, OperatorError) == (lasts > 0)
    assert message in error.message
    assert setting in error.do


def test_the_driver_itself_finds_a_certificate_that_it_cannot_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cassandra, "Cluster", Cluster)
    server, other = Authority(tmp_path).issue("node").server(), Authority(tmp_path, "other")

    with serving(server) as port, pytest.raises(CassandraAccessError, match="is not signed by an authority in"):
        connect(Address((HOST,), port, tls=Tls(other.file)))


def test_a_silent_node_is_busy_or_without_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can say which, so that it is worth trying again."""
    monkeypatch.setattr("master_dataset.tls.PROBE_SECONDS", 0.3)
    with serving() as port:
        error = refused(Address((HOST,), port, tls=Tls(Authority(tmp_path).file)), {HOST: OSError()}, monkeypatch)

    assert isinstance(error, CassandraUnavailableError)
    assert "does not answer a TLS handshake" in error.message
    assert "GALATEA_CASSANDRA_TLS" in error.do


def test_a_statement_without_the_right_for_it_names_the_user_and_the_next_step() -> None:
    session = connect(Address((HOST,), 9042, login=LOGIN))
    FakeCluster.made.session.error = Unauthorized("User galatea has no MODIFY permission on <table galatea.leases>")

    with pytest.raises(CassandraAccessError, match="no MODIFY permission on <table galatea") as found:
        session.execute("UPDATE leases")

    assert found.value.message.startswith("Cassandra does not allow this to the user `galatea`")
    assert found.value.do == "grant the right: docs/how-to/secured-clusters.md#rights-in-cassandra"


def test_rights_that_a_node_cannot_read_are_no_missing_right() -> None:
    session = connect(Address((HOST,), 9042, login=LOGIN))
    text = "Unable to perform authorization of super-user permission: Cannot achieve consistency level LOCAL_QUORUM"
    FakeCluster.made.session.error = Unauthorized(text)

    with pytest.raises(Unavailable, match="Cannot achieve consistency level") as found:
        session.execute("UPDATE leases")

    assert isinstance(found.value, CASSANDRA_UNAVAILABLE)


def test_other_errors_of_a_statement_stay_as_they_are() -> None:
    session = connect(Address((HOST,), 9042))
    assert session.execute("SELECT 1") == "SELECT 1"
    FakeCluster.made.session.error = ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        session.execute("SELECT 1")


class Applied(list[Any]):
    """No rows; of a compare-and-set, that it was applied."""

    applied = True

    def one(self) -> "Applied":
        return self


class Definitions:
    """Records statements, and knows no keyspace."""

    keyspaces: Mapping[str, object] = {}

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.cluster = self.metadata = self
        self.schema_metadata_enabled, self.max_schema_agreement_wait = True, 0

    def get_control_connection_host(self) -> str:
        return HOST

    def refresh_keyspace_metadata(self, _keyspace: str, _seconds: int) -> None:
        """All agree."""

    def refresh_table_metadata(self, _keyspace: str, _table: str, _seconds: int) -> None:
        """There is none."""

    def set_keyspace(self, _: str) -> None:
        """It exists."""

    def prepare(self, query: str) -> str:
        return query

    def execute(self, statement: str, *_: object, **__: object) -> Applied:
        self.statements.append(statement)
        return Applied()


@pytest.mark.parametrize(
    ("replication", "cql"),
    [
        (1, "{'class': 'SimpleStrategy', 'replication_factor': 1}"),
        ({"dc1": 3, "dc2": 2}, "{'class': 'NetworkTopologyStrategy', 'dc1': 3, 'dc2': 2}"),
    ],
)
def test_a_new_keyspace_has_the_copies_of_the_settings(replication: int | dict[str, int], cql: str) -> None:
    session = Definitions()

    migrate(session, "galatea", replication)

    assert session.statements[0] == f"CREATE KEYSPACE IF NOT EXISTS galatea WITH replication = {cql}"


def test_rows_have_the_names_of_their_columns_as_the_driver_gives_them() -> None:
    columns, rows = ["store", "system.count(*)", "writetime(block)"], [("7", 2, 3), ("8", None, 4)]

    named = cassandra.named_rows(columns, rows)

    assert named == rows
    assert [each._asdict() for each in named] == [each._asdict() for each in named_tuple_factory(columns, rows)]
    assert type(cassandra.named_rows(columns, rows)[0]) is type(named[0])  # no class is made again


@pytest.mark.parametrize(("seconds", "side"), [(-9.0, "ahead of"), (9.0, "behind")])
def test_a_wrong_clock_is_refused(seconds: float, side: str) -> None:
    """`seconds`: how far that of Cassandra is ahead of this machine's."""

    class Node:
        def execute(self, _query: str) -> Any:
            clock = datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=seconds)
            return SimpleNamespace(one=lambda: SimpleNamespace(clock=clock))

    node: Any = Node()
    refuse_wrong_clock(node, timedelta(seconds=10))

    with pytest.raises(OperatorError, match=f"the clock of this machine is 9.0 s {side} that of Cassandra"):
        refuse_wrong_clock(node, timedelta(seconds=8))


@pytest.mark.parametrize("command", [gc, compact])
def test_nothing_is_deleted_by_a_wrong_clock(
    command: Callable[[], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_: object, most: timedelta) -> None:
        raise OperatorError(f"the clock is more than {most} ahead", do="synchronise it")

    monkeypatch.setenv("GALATEA_HOME", str(tmp_path))
    monkeypatch.setattr("deploy.cassandra.session_of", lambda _: None)
    monkeypatch.setattr("deploy.cassandra.refuse_wrong_clock", refuse)

    with pytest.raises(OperatorError, match="the clock is more than 1:00:00 ahead"):
        command()
