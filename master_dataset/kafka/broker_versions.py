"""What one broker can do: its answer to Kafka's ApiVersions request, which every client sends before it logs in.

librdkafka asks for it too, and keeps it to itself. The request is answered without a login, and changes nothing.
"""

import socket
import struct
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.client_errors import NAMES

if TYPE_CHECKING:
    from master_dataset.tls import Tls

METADATA_VERSION = "metadata.version"
LIST_OFFSETS, OFFSET_FETCH, INCREMENTAL_ALTER_CONFIGS = 2, 9, 44
NEEDED: Mapping[int, int] = {OFFSET_FETCH: 7, INCREMENTAL_ALTER_CONFIGS: 0}
"""Requests, by Kafka's number, with the version that a broker has to know: exactly-once alerts, and `migrate`."""
OLDEST_RELEASE = "2.5"
"""The first release of Kafka with all of them."""
_SECONDS = 5.0
_API_VERSIONS, _VERSION, _CORRELATION = 18, 3, 1
_UNSUPPORTED_VERSION = 35
_LONGEST = 1_000_000
_FIRST_LEVELS = (1, 2, 3, 4, 8, 9, 12, 15, 20, 21, 22, 26, 28, 30, 31)
_RELEASES = ("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.4")
"""Releases of Kafka, and the first level of `metadata.version` of each."""


@dataclass(frozen=True)
class BrokerVersions:
    """What a broker knows.

    Attributes:
        requests: Newest version of each request, by Kafka's number of the request.
        metadata_version: Highest level of `metadata.version` that it supports; 0 if it does not say it.
    """

    requests: Mapping[int, int]
    metadata_version: int = 0

    @property
    def is_enough(self) -> bool:
        """Whether it knows every request that Galatea's clients need."""
        return all(self.requests.get(request, -1) >= version for request, version in NEEDED.items())

    @property
    def release(self) -> str:
        """The release of Kafka, as far as its features show it, as in `4.3`."""
        if not self.metadata_version:
            return f"at least {OLDEST_RELEASE}" if self.is_enough else f"older than {OLDEST_RELEASE}"
        newer = "" if self.metadata_version <= _FIRST_LEVELS[-1] else " or newer"
        return f"{_RELEASES[max(bisect_right(_FIRST_LEVELS, self.metadata_version) - 1, 0)]}{newer}"


def broker_versions(host: str, port: int, tls: "Tls | None") -> BrokerVersions:
    """Ask one broker.

    Args:
        host: Where it listens.
        port: Its port.
        tls: None for an unencrypted connection.

    Raises:
        BrokerUnavailableError: It cannot be reached, or does not speak Kafka's protocol.
    """
    place = f"`{host}:{port}`"
    try:
        with socket.create_connection((host, port), _SECONDS) as plain:
            if tls is None:
                return parse_versions(_exchange(plain))
            with tls.context().wrap_socket(plain, server_hostname=host) as encrypted:
                return parse_versions(_exchange(encrypted))
    except OSError as error:
        problem = tls.problem(host, port, NAMES) if tls else None
        if problem is not None:
            raise BrokerUnavailableError(f"the broker cannot be reached: {problem.message}", do=problem.do) from error
        do = "start it, or open its port for this machine; clients use the address in its advertised.listeners"
        raise BrokerUnavailableError(f"the broker at {place} does not respond", do=do) from error
    except (struct.error, IndexError, EOFError) as error:
        do = f"correct {NAMES.hosts} or {NAMES.switch}"
        raise BrokerUnavailableError(f"{place} does not answer as a Kafka broker", do=do) from error


def _exchange(connection: socket.socket) -> bytes:
    """Send the request; return the response without its size."""
    header = struct.pack(">hhih", _API_VERSIONS, _VERSION, _CORRELATION, -1) + b"\0"
    body = header + _compact(b"galatea") + _compact(b"1") + b"\0"
    connection.sendall(struct.pack(">i", len(body)) + body)
    [size] = struct.unpack(">i", _read(connection, 4))
    if not 0 < size <= _LONGEST:
        raise EOFError
    return _read(connection, size)


def _compact(text: bytes) -> bytes:
    return bytes([len(text) + 1]) + text


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def parse_versions(response: bytes) -> BrokerVersions:
    """Parse a response of version 3, or of version 0, in which brokers answer that do not know the newer one.

    Raises:
        IndexError: It is too short. So is `struct.error`.
    """
    reader = _Reader(response)
    reader.number(">i")  # the number of the request
    if reader.number(">h") == _UNSUPPORTED_VERSION:
        count = reader.number(">i") if reader.left else 0
        listed = [(reader.number(">h"), reader.number(">h"), reader.number(">h")) for _ in range(count)]
        return BrokerVersions({request: newest for request, _, newest in listed})
    requests = {}
    for _ in range(reader.varint() - 1):
        request, _oldest, newest = reader.number(">h"), reader.number(">h"), reader.number(">h")
        reader.skip_tags()
        requests[request] = newest
    reader.number(">i")  # the throttle time
    return BrokerVersions(requests, _metadata_version(reader.tags().get(0, b"")))


def _metadata_version(supported: bytes) -> int:
    """Find the level in the tag of supported features."""
    reader = _Reader(supported)
    for _ in range(reader.varint() - 1 if supported else 0):
        name = reader.text()
        reader.number(">h")  # the lowest level
        highest = reader.number(">h")
        reader.skip_tags()
        if name == METADATA_VERSION:
            return highest
    return 0


class _Reader:
    """Reads Kafka's wire format."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return len(self._data) - self._at

    def number(self, form: str) -> int:
        [found] = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return int(found)

    def varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
                return found
            shift += 7

    def text(self) -> str:
        return self._bytes(self.varint() - 1).decode()

    def tags(self) -> Mapping[int, bytes]:
        return {self.varint(): self._bytes(self.varint()) for _ in range(self.varint())}

    def skip_tags(self) -> None:
        self.tags()

    def _bytes(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        self._at += size
        return found
