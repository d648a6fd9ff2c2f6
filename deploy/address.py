"""Where Cassandra is."""

from typing import NamedTuple


class Address(NamedTuple):
    """Where Cassandra is, and Galatea's keyspace in it."""

    contact_points: tuple[str, ...]
    port: int
    keyspace: str | None
