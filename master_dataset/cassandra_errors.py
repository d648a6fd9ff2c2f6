"""What the driver of Cassandra raises when a store is away: two of the three are no DriverException."""

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ErrorMessage

AWAY = (DriverException, NoHostAvailable, ErrorMessage)
"""Nobody answers, or too few do, or none says what became of a request: it may have been done."""
