"""Whatever bytes a client sends, only its own connection ends, and nothing is raised out of the server."""

import struct
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serving_layer.sql.protocol import ProtocolError, read_message, read_opening
from tests.support.examples import examples
from tests.support.sql_server import RunningServer, fields, message, running_server, startup

KINDS = b"QPBDECSHXpFdcf"
NAMES = st.sampled_from([b"", b"a", b"b", b"\xff"])
ANSWERS = b"RSKZTDCEIn123stvN"


@pytest.fixture(scope="module")
def shared() -> Iterator[RunningServer]:
    with running_server() as running:
        yield running


@st.composite
def plausible(draw: st.DrawFn) -> bytes:
    """A message that is nearly right: its fields may be wrong, missing or too many."""
    numbers = st.lists(st.integers(-2, 3), max_size=3)
    name, other = draw(NAMES) + b"\0", draw(NAMES) + b"\0"
    shorts = struct.pack("!h", draw(st.integers(-1, 3))) + b"".join(struct.pack("!h", n) for n in draw(numbers))
    sql = draw(st.sampled_from([b"series 2", b"echo $1 $2", b"fail", b"crash", b"begin", b"", b";;", b"types"])) + b"\0"
    kind = draw(st.sampled_from([bytes([each]) for each in KINDS]))
    body = {
        b"Q": sql,
        b"P": name + sql + shorts,
        b"B": name + other + shorts + shorts + shorts,
        b"D": draw(st.sampled_from([b"S", b"P", b"x"])) + name,
        b"E": name + struct.pack("!i", draw(st.integers(-1, 5))),
        b"C": draw(st.sampled_from([b"S", b"P", b"x"])) + name,
    }.get(kind, draw(st.sampled_from([b"", b"x\0"])))
    cut = draw(st.integers(0, len(body)))
    return message(kind, draw(st.sampled_from([body, body, body, body[:cut], body + b"\0"])))


@given(st.sampled_from([bytes([each]) for each in KINDS + b"?\0"]), st.binary(max_size=100))
def test_a_message_is_read_or_refused(kind: bytes, body: bytes) -> None:
    for read in (lambda: read_message(kind, body), lambda: read_opening(body)):
        code = "08P01"
        try:
            read()
        except ProtocolError as error:
            code = error.code
        assert code == "08P01"


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(plausible() | st.binary(max_size=30), max_size=12), st.booleans())
def test_only_the_connection_of_the_broken_bytes_ends(
    shared: RunningServer,
    sent: list[bytes],
    is_logged_in: bool,  # noqa: FBT001 - drawn
) -> None:
    with shared.raw() as client:
        if is_logged_in:
            client.log_in(shared.keys.make("acme"))
        try:
            client.send(b"".join(sent) + message(b"X"))
            client.socket.shutdown(1)
        except OSError:
            pass
        found = client.until(b"")
    assert all(kind in ANSWERS for kind, _ in found if kind)
    with shared.connect() as other:
        assert other.execute("series 1").rowcount == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        message(b"", struct.pack("!i", 131072)),
        message(b"", struct.pack("!i", 196608) + b"user"),
        b"\0\0\0\0",
        startup() + b"p\0\0\0\1",
        startup() + message(b"Q", b"series 1\0"),
    ],
)
def test_broken_bytes_before_the_login_are_answered_with_their_reason(shared: RunningServer, sent: bytes) -> None:
    with shared.raw() as client:
        client.send(sent)
        found = client.until(b"")

    assert found[-2][0] == b"E"
    assert fields(found[-2][1])["C"] == "08P01"
    assert fields(found[-2][1])["S"] == "FATAL"


def test_broken_bytes_after_the_login_are_answered_with_their_reason(shared: RunningServer) -> None:
    with shared.raw() as client:
        client.log_in(shared.keys.make("acme"))
        client.send(message(b"Q", b"series 1\0") + message(b"?", b"x") + message(b"Q", b"series 1\0"))
        found = client.until(b"")

    assert [kind for kind, _ in found] == [b"T", b"D", b"C", b"Z", b"E", b""]
    assert fields(found[-2][1])["C"] == "08P01"
