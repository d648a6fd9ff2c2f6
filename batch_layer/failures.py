"""What Cassandra, disks and Spark raise inside batch work, as errors that tell an operator what to do."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from deltalake.exceptions import DeltaError

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraAccessError, CassandraUnavailableError, DiskFullError, GalateaError
from master_dataset.kafka.client_errors import rejection_in

UNEXPECTED_DATA = (
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    OSError,
    msgspec.MsgspecError,
    DeltaError,
)
"""What rows and files raise that are not as this release expects: written by another release, or incomplete."""

_FROM_CASSANDRA = re.compile(
    r"cassandra\.\w|NoHostAvailable|OperationTimedOut|(?:Write|Read)Timeout|CassandraUnavailableError"
)
_NO_RIGHT = re.compile(r'code=2100 \[Unauthorized\] message="(?!Unable to perform authorization)([^"]*)"')
"""Not of a node that could not read the rights."""
_NO_SPACE = "No space left on device"


@contextmanager
def translated_failures(recompute_id: str) -> Iterator[None]:
    """Translate what drivers and Spark raise while a recompute is worked on; other exceptions pass unchanged.

    Spark reports the errors of its workers as text only, so their text is searched.

    Raises:
        BrokerAccessError: Kafka has rejected Spark's client.
        CassandraAccessError: A right is missing.
        CassandraUnavailableError: Cassandra did not answer in time.
        DiskFullError: A disk of the master dataset, or of Spark, is full.
    """
    do = f"galatea rebuild --id {recompute_id}"
    try:
        yield
    except GalateaError:
        raise
    except CASSANDRA_UNAVAILABLE as error:
        raise _cassandra_unavailable(error, do) from error
    except Exception as error:
        if _NO_SPACE in str(error) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
            message = "a disk is full; nothing was published"
            raise DiskFullError(message, do=f"free some space where GALATEA_HOME is, then: {do}") from error
        if (lacking := _NO_RIGHT.search(str(error))) is not None:
            message = f"Cassandra does not allow this: {lacking[1]}"
            raise CassandraAccessError(message, do=f"grant the right, then: {do}") from error
        if (rejected := rejection_in(str(error))) is not None:
            raise rejected from error
        if _FROM_CASSANDRA.search(str(error)):
            raise _cassandra_unavailable(error, do) from error
        raise


def _cassandra_unavailable(error: Exception, do: str) -> CassandraUnavailableError:
    what = type(error).__name__
    message = f"Cassandra did not respond ({what}); the published data is unchanged"
    return CassandraUnavailableError(message, do=f"galatea status, logs/cassandra.log; then: {do}")
