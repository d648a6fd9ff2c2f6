"""The server speaks with unmodified clients, keeps tenants and keys apart, and holds its limits."""

import asyncio
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import psycopg
import pytest
from psycopg import errors

from serving_layer.keys.throttle import network_of
from serving_layer.sql.conversation import PIECE_BYTES, ConversationLimits
from serving_layer.sql.server import PENDING, Connection, ServerLimits, SqlServer
from serving_layer.sql.statements import AS_CSV
from tests.support.sql_server import (
    EVERY_TYPE,
    HOST,
    OPERATOR_KEY,
    PATIENCE_SECONDS,
    PSQL,
    RunningServer,
    fields,
    message,
    running_server,
    startup,
)

ENCRYPTION_WANTED = message(b"", struct.pack("!i", 80877103))


@pytest.fixture(scope="module")
def shared() -> Iterator[RunningServer]:
    with running_server() as running:
        yield running


# --- clients ---


@pytest.mark.parametrize("is_binary", [False, True])
def test_psycopg_reads_every_type_in_text_and_in_binary(shared: RunningServer, is_binary: bool) -> None:  # noqa: FBT001
    with shared.connect() as connection:
        cursor = connection.cursor(binary=is_binary).execute("types")
        row = cursor.fetchone()

    assert row == tuple(EVERY_TYPE.values())
    assert [each.name for each in cursor.description or ()] == [each.name for each in EVERY_TYPE]
    assert cursor.description is not None
    assert (cursor.description[6].precision, cursor.description[6].scale) == (18, 2)


def test_parameters_come_back_as_they_were_sent(shared: RunningServer) -> None:
    sent = (True, 7, 2**40, -0.5, Decimal("1.20"), "x", b"\0y", datetime(2026, 1, 2, tzinfo=UTC), None)
    marks = " ".join(["%s"] * len(sent))
    with shared.connect() as connection:
        for is_binary in (False, True):
            found = connection.cursor(binary=is_binary).execute(f"echo {marks}", sent, prepare=True).fetchone()
            assert found is not None
            assert [str(each) for each in found[:5]] == [str(each) for each in sent[:5]]
            assert found[5:8] == sent[5:8]
            assert found[8] is None


def test_psql_writes_csv_as_the_hint_of_copy_says(shared: RunningServer) -> None:
    environment = {"PGPASSWORD": shared.keys.make("acme"), "LC_ALL": "C.UTF-8"}
    command = [
        str(PSQL),
        "-X",
        "-h",
        HOST,
        "-p",
        str(shared.port),
        "-U",
        "acme",
        "-d",
        "galatea",
        "--csv",
        "-c",
        "series 2",
    ]

    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )

    assert "psql --csv -c" in AS_CSV
    assert done.stdout.splitlines()[:2] == ["n,name,net_sales", "0,name 0,0.00"]


def test_psql_shows_results_and_errors_with_hints(shared: RunningServer) -> None:
    environment = {"PGPASSWORD": shared.keys.make("acme"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [PSQL, "-X", "-h", HOST, "-p", str(shared.port), "-U", "acme", "-d", "galatea", "-c", "series 2", "-c", "fail"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )

    assert "1 | name 1 |      1.37" in done.stdout
    assert "ERROR:  There is no table `nothing`." in done.stderr
    assert "HINT:  Did you mean `notes`?" in done.stderr


def test_a_large_result_arrives_whole(shared: RunningServer) -> None:
    with shared.connect() as connection:
        rows = connection.execute("series 30000").fetchall()

    assert len(rows) == 30000
    assert rows[-1] == (29999, "name 29999", Decimal("41098.63"))


def test_a_row_that_is_larger_than_a_piece_arrives_whole_and_in_pieces(
    shared: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two pieces, other connections get a turn."""
    sizes: list[int] = []
    send = Connection._flush_piece  # noqa: SLF001

    async def noted(connection: Connection) -> None:
        before = len(connection._outgoing)  # noqa: SLF001
        await send(connection)
        sizes.append(before - len(connection._outgoing))  # noqa: SLF001

    monkeypatch.setattr(Connection, "_flush_piece", noted)
    text = "".join(map(str, range(100_000)))
    with shared.connect() as connection:
        found = connection.execute("echo %s", (text,)).fetchone()

    assert found == (text,)
    assert max(sizes) == PIECE_BYTES


def test_a_server_side_cursor_fetches_rows_in_parts(shared: RunningServer) -> None:
    with shared.raw() as client:
        client.log_in(shared.keys.make("acme"))
        client.send(
            message(b"Q", b"begin\0")
            + message(b"P", b"\0series 5\0\0\0")
            + message(b"B", b"c\0\0" + struct.pack("!hhh", 0, 0, 0))
            + message(b"E", b"c\0" + struct.pack("!i", 2))
            + message(b"S")
        )
        client.until(b"Z")
        first = client.until(b"Z")
        client.send((message(b"E", b"c\0" + struct.pack("!i", 2)) + message(b"S")) * 2)
        second, third = client.until(b"Z"), client.until(b"Z")

    assert [kind for kind, _ in first] == [b"1", b"2", b"D", b"D", b"s", b"Z"]
    assert [kind for kind, _ in second] == [b"D", b"D", b"s", b"Z"]
    assert [kind for kind, _ in third] == [b"D", b"C", b"Z"]
    assert third[1] == (b"C", b"SELECT 1\0")


def test_several_statements_of_one_query_are_answered_until_one_fails(shared: RunningServer) -> None:
    with shared.raw() as client:
        client.log_in(shared.keys.make("acme"))
        client.send(message(b"Q", b"series 1; begin; fail; series 1\0") + message(b"Q", b" ; \0"))
        found, empty = client.until(b"Z"), client.until(b"Z")

    assert [kind for kind, _ in found] == [b"T", b"D", b"C", b"C", b"E", b"Z"]
    assert found[-1] == (b"Z", b"E")  # in a transaction that has failed
    assert [kind for kind, _ in empty] == [b"I", b"Z"]


def test_the_status_of_the_transaction_is_told(shared: RunningServer) -> None:
    with shared.connect(autocommit=False) as connection:
        states = [connection.info.transaction_status.name]
        connection.execute("series 1")
        states.append(connection.info.transaction_status.name)
        with pytest.raises(errors.UndefinedTable):
            connection.execute("fail")
        states.append(connection.info.transaction_status.name)
        with pytest.raises(errors.InFailedSqlTransaction):
            connection.execute("series 1")
        connection.rollback()
        states.append(connection.info.transaction_status.name)

    assert states == ["IDLE", "INTRANS", "INERROR", "IDLE"]


def _pipelined(connection: "psycopg.Connection[object]", *statements: str) -> None:
    with connection.pipeline() as pipeline:
        for each in statements:
            connection.execute(each)
        pipeline.sync()


def test_an_error_in_a_pipeline_skips_to_its_end_and_the_connection_goes_on(shared: RunningServer) -> None:
    with shared.connect() as connection:
        with pytest.raises(errors.UndefinedTable):
            _pipelined(connection, "fail", "series 1")
        assert connection.execute("series 1").fetchall() == [(0, "name 0", Decimal("0.00"))]


def test_a_failure_of_ours_is_an_error_and_not_the_end(shared: RunningServer) -> None:
    with shared.connect() as connection:
        with pytest.raises(errors.InternalError) as failed:
            connection.execute("crash")
        assert connection.execute("series 1").rowcount == 1

    assert failed.value.sqlstate == "XX000"
    assert "crash" not in str(failed.value)


# --- cancelling ---


def test_a_cancel_request_ends_the_statement_and_not_the_connection(shared: RunningServer) -> None:
    with shared.connect() as connection:
        session = shared.scripted()

        def cancel() -> None:
            session.sleeping.wait(PATIENCE_SECONDS)
            connection.cancel_safe(timeout=PATIENCE_SECONDS)

        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(errors.QueryCanceled):
            connection.execute("sleep")
        canceller.join()
        assert connection.execute("series 1").rowcount == 1


def test_a_cancel_request_with_a_wrong_secret_does_nothing(shared: RunningServer) -> None:
    with shared.connect() as connection, shared.raw() as other:
        other.send(message(b"", struct.pack("!iiI", 80877102, connection.info.backend_pid, 12345)))
        assert other.receive() == (b"", b"")
        assert connection.execute("series 1").rowcount == 1


def test_a_client_that_goes_away_ends_its_statement(shared: RunningServer) -> None:
    with shared.raw() as client:
        client.log_in(shared.keys.make("acme"))
        session = shared.scripted()
        client.send(message(b"Q", b"sleep\0"))
        assert session.sleeping.wait(PATIENCE_SECONDS)
        client.socket.close()
        client._file.close()  # noqa: SLF001 - the last holder of the socket
        closed = threading.Event()
        for _ in range(1000):
            if session.is_closed:
                break
            closed.wait(0.01)

    assert session.is_closed


# --- logging in ---


def login_error(running: RunningServer, user: str = "acme", password: str = "a guess", **more: str) -> tuple[str, str]:  # noqa: S107 - wrong
    """SQLSTATE and text of a login that fails."""
    with running.raw() as client:
        client.send(startup(user, **more) + message(b"p", password.encode() + b"\0"))
        found = client.until(b"Z")
    assert found[-2][0] == b"E"
    assert found[-1] == (b"", b"")
    error = fields(found[-2][1])
    assert error["S"] == "FATAL"
    return error["C"], f"{error['M']} {error.get('H', '')}"


def test_a_key_opens_its_own_tenant_only(shared: RunningServer) -> None:
    with shared.connect("acme"):
        assert shared.scripted().caller.tenant == "acme"

    code, text = login_error(shared, "beta", shared.keys.make("acme"))
    assert code == "28000"
    assert "beta" in text


def test_a_key_for_all_tenants_opens_one_that_has_stores_and_sees_only_that(shared: RunningServer) -> None:
    for key in (OPERATOR_KEY, shared.keys.make("*")):
        with shared.connect("beta", key):
            assert shared.scripted().caller.tenant == "beta"
    with shared.connect("default", OPERATOR_KEY):
        assert not shared.scripted().caller.sees_all

    assert login_error(shared, "nobody", OPERATOR_KEY)[0] == "28000"
    assert login_error(shared, "*", OPERATOR_KEY)[0] == "28000"


def test_a_key_needs_the_scope_to_read(shared: RunningServer) -> None:
    code, text = login_error(shared, "acme", shared.keys.make("acme", "ingest"))

    assert code == "28000"
    assert "read" in text


def test_wrong_passwords_are_refused_then_throttled_and_never_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with running_server() as running:
        answers = [login_error(running, password=f"a guess {n}") for n in range(12)]
        locked = login_error(running, password=running.keys.make("acme"))
        with running.connect("beta"):
            pass

    assert {code for code, _ in answers} == {"28P01"}
    assert "galatea keys create" in answers[0][1]
    assert "Too many" not in answers[9][1]
    assert "Too many" in answers[10][1]
    assert "Too many" in locked[1]
    written = capsys.readouterr()
    assert "a guess" not in written.out + written.err + "".join(text for _, text in answers)


def test_a_connection_ends_with_its_key() -> None:
    with running_server() as running, running.connect() as connection:
        connection.execute("series 1")
        running.keys.kept.clear()
        with pytest.raises(errors.InvalidPassword):
            connection.execute("series 1")
        assert connection.closed


def test_another_database_is_refused_with_the_name_of_the_right_one(shared: RunningServer) -> None:
    code, text = login_error(shared, password=shared.keys.make("acme"), database="postgres")

    assert code == "3D000"
    assert "galatea" in text


def test_settings_of_the_first_message_are_applied(shared: RunningServer) -> None:
    with shared.connect(options="-csearch_path=public -c statement_timeout=90000", application_name="it's"):
        ran = shared.scripted().ran

    assert "SET search_path TO 'public'" in ran
    assert "SET statement_timeout TO '90000'" in ran
    assert "SET application_name TO 'it''s'" in ran


def test_what_clients_expect_is_told_at_the_login(shared: RunningServer) -> None:
    with shared.connect() as connection:
        info = connection.info
        assert info.server_version == 160000
        assert info.parameter_status("client_encoding") == "UTF8"
        assert info.parameter_status("standard_conforming_strings") == "on"
        assert info.parameter_status("integer_datetimes") == "on"
        assert info.parameter_status("TimeZone") == "UTC"
        assert info.encoding == "utf-8"


def test_instants_are_shown_in_the_time_zone_of_the_session(shared: RunningServer) -> None:
    with shared.connect(options="-c timezone=Asia/Kolkata") as connection:
        zones = [connection.info.parameter_status("TimeZone")]
        text = connection.pgconn.exec_(b"types").get_value(0, 10)
        connection.execute("set timezone to 'America/New_York'")
        zones.append(connection.info.parameter_status("TimeZone"))
        other = connection.pgconn.exec_(b"types").get_value(0, 10)

    assert zones == ["Asia/Kolkata", "America/New_York"]
    assert text == b"2026-01-02 08:34:05+05:30"
    assert other == b"2026-01-01 22:04:05-05"


def test_encryption_is_refused_so_that_clients_go_on_without(shared: RunningServer) -> None:
    with shared.raw() as client:
        for code in (80877103, 80877104):
            client.send(message(b"", struct.pack("!i", code)))
            assert client.byte() == b"N"
        assert client.log_in(shared.keys.make("acme"))[-1][0] == b"Z"
    with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
        shared.connect(sslmode="require")


def test_a_newer_minor_version_is_negotiated_down(shared: RunningServer) -> None:
    body = struct.pack("!i", 196610) + b"user\0acme\0database\0galatea\0_pq_.new\0x\0\0"
    with shared.raw() as client:
        client.send(message(b"", body) + message(b"p", shared.keys.make("acme").encode() + b"\0"))
        found = client.until(b"Z")

    assert found[0] == (b"v", struct.pack("!ii", 0, 1) + b"_pq_.new\0")
    assert found[-1][0] == b"Z"


# --- limits ---


def test_connections_are_limited_in_all_and_per_tenant() -> None:
    limits = ServerLimits(connections=3, connections_per_tenant=2)
    with running_server(limits) as running:
        held = [running.connect("acme"), running.connect("acme")]
        assert login_error(running, "acme", running.keys.make("acme"))[0] == "53300"
        held.append(running.connect("beta"))
        code, text = login_error(running, "beta", running.keys.make("beta"))
        assert code == "53300"
        assert "3 connections" in text
        held.pop().close()
        held.pop().close()
        for _ in range(1000):
            if running.server.connections == 1:
                break
            threading.Event().wait(0.01)
        running.connect("acme").close()
        held.pop().close()


def test_where_all_places_are_taken_a_new_connection_ends_the_oldest_without_a_login() -> None:
    with running_server(ServerLimits(connections=2)) as running, ExitStack() as clients:
        held = running.connect("acme")
        silent = [clients.enter_context(running.raw()) for _ in range(PENDING + 1)]
        for client in silent:  # the server has accepted it
            client.send(ENCRYPTION_WANTED)
            assert client.byte() == b"N"
        other = running.connect("beta")

        assert silent[0].receive() == (b"", b"")
        silent[1].send(ENCRYPTION_WANTED)
        assert silent[1].byte() == b"N"
        assert other.execute("series 1").fetchall()
        assert held.execute("series 1").fetchall()
        for each in (held, other):
            each.close()


def test_the_network_with_most_connections_without_a_login_loses_one() -> None:
    async def crowd() -> list[int]:
        server = SqlServer(None, None, ServerLimits(connections=1))  # type: ignore[arg-type]  # nobody logs in
        aborted: list[int] = []
        of = ["192.0.2.1", *["2001:db8::1", "2001:db8::2"] * (PENDING // 2), "192.0.2.2", "192.0.2.3"]
        for number, network in enumerate(map(network_of, of)):
            each = SimpleNamespace(network=network, abort=lambda _, number=number: aborted.append(number))
            server.enter(each)  # type: ignore[arg-type]
        return aborted

    assert asyncio.run(crowd()) == [1, 2]


def test_encryption_is_asked_for_twice_at_most(shared: RunningServer) -> None:
    with shared.raw() as client:
        client.send(ENCRYPTION_WANTED * 3)

        assert client.byte() + client.byte() + client.byte() == b"NNN"
        kind, body = client.receive()

    assert (kind, fields(body)["C"]) == (b"E", "08P01")


def test_few_messages_are_kept_of_whoever_has_not_logged_in() -> None:
    async def pauses() -> int:
        server = SqlServer(None, None)  # type: ignore[arg-type]  # nobody logs in
        transport = SimpleNamespace(
            set_write_buffer_limits=lambda **_: None,
            get_extra_info=lambda _: ("192.0.2.1", 1),
            pause_reading=lambda: paused.append(True),
            is_closing=lambda: False,
            close=lambda: None,
            abort=lambda: None,
        )
        paused: list[bool] = []
        connection = Connection(server)
        connection.connection_made(transport)  # type: ignore[arg-type]  # what it needs of one
        connection.data_received(startup() + message(b"H") * 300)
        connection.abort("the test is over")
        await connection._task  # noqa: SLF001 - ends now
        return len(paused)

    assert asyncio.run(pauses()) == 1


def test_a_login_that_does_not_come_ends() -> None:
    with running_server(ServerLimits(startup_seconds=0.05)) as running, running.raw() as client:
        client.send(startup())
        found = client.until(b"Z")

    assert fields(found[-2][1])["C"] == "57014"


def test_an_idle_connection_ends_with_a_reason() -> None:
    with running_server(ServerLimits(idle_seconds=0.05)) as running, running.raw() as client:
        client.log_in(running.keys.make("acme"))
        found = client.until(b"Z")

    assert fields(found[0][1])["C"] == "57P05"
    assert found[-1] == (b"", b"")


def test_a_message_above_the_limit_ends_its_connection(shared: RunningServer) -> None:
    with shared.raw() as client:
        client.log_in(shared.keys.make("acme"))
        client.send(b"Q" + struct.pack("!i", 1_000_001))
        found = client.until(b"Z")

    assert fields(found[0][1])["C"] == "08P01"
    assert "1,000,000" in fields(found[0][1])["M"]


def test_statements_and_portals_of_a_connection_are_limited() -> None:
    limits = ServerLimits(conversation=ConversationLimits(statements=3, statement_bytes=100))
    with running_server(limits) as running, running.raw() as client:
        client.log_in(running.keys.make("acme"))
        for n in range(4):
            client.send(message(b"P", f"s{n}\0series 1\0\0\0".encode()) + message(b"S"))
        answers = [client.until(b"Z")[0] for _ in range(4)]
        client.send(message(b"C", b"Ss0\0") + message(b"P", b"s9\0" + b"x" * 100 + b"\0\0\0") + message(b"S"))
        too_long = client.until(b"Z")
        client.send(message(b"Q", b"begin\0"))
        client.until(b"Z")
        for n in range(4):
            client.send(message(b"B", f"p{n}\0s1\0".encode() + struct.pack("!hhh", 0, 0, 0)) + message(b"S"))
        portals = [client.until(b"Z")[0] for _ in range(4)]

    assert [kind for kind, _ in answers] == [b"1", b"1", b"1", b"E"]
    assert fields(answers[3][1])["C"] == "54000"
    assert [kind for kind, _ in too_long] == [b"3", b"E", b"Z"]
    assert [kind for kind, _ in portals] == [b"2", b"2", b"2", b"E"]


@pytest.mark.parametrize("statement", ["deallocate all", "DISCARD ALL", 'deallocate prepare "s2"; deallocate S1'])
def test_deallocated_statements_are_forgotten(shared: RunningServer, statement: str) -> None:
    with shared.raw() as client:
        client.log_in(shared.keys.make("acme"))
        for name in (b"s1", b"s2"):
            client.send(message(b"P", name + b"\0series 1\0\0\0") + message(b"D", b"S" + name + b"\0") + message(b"S"))
            assert [kind for kind, _ in client.until(b"Z")] == [b"1", b"t", b"T", b"Z"]
        client.send(message(b"Q", statement.encode() + b"\0"))
        client.until(b"Z")
        for name in (b"s1", b"s2"):
            client.send(message(b"D", b"S" + name + b"\0") + message(b"S"))
            assert fields(client.until(b"Z")[0][1])["C"] == "26000"


def test_a_result_above_its_limit_ends_with_a_named_error() -> None:
    limits = ServerLimits(conversation=ConversationLimits(result_bytes=10_000))
    with running_server(limits) as running, running.connect() as connection:
        with pytest.raises(errors.ProgramLimitExceeded, match="10,000 bytes"):
            connection.execute("series 1000")
        assert connection.execute("series 3").rowcount == 3


def test_a_shutdown_ends_statements_and_tells_the_clients() -> None:
    with running_server() as running, running.raw() as waiting, running.raw() as working:
        waiting.log_in(running.keys.make("acme"))
        working.log_in(running.keys.make("acme"))
        session = running.scripted()
        working.send(message(b"Q", b"sleep\0"))
        assert session.sleeping.wait(PATIENCE_SECONDS)
        running.close()
        idle, busy = waiting.until(b""), working.until(b"")

    assert fields(idle[0][1])["C"] == "57P01"
    assert [fields(body)["C"] for kind, body in busy if kind == b"E"] == ["57014", "57P01"]


def test_two_hundred_idle_connections_need_no_thread_each(shared: RunningServer) -> None:
    before = threading.active_count()
    key = shared.keys.make("acme")
    held = [shared.connect("acme", key) for _ in range(200)]
    try:
        assert threading.active_count() <= before
        assert held[-1].execute("series 1").rowcount == 1
    finally:
        for each in held:
            each.close()
