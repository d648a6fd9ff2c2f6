"""What goes wrong under a recompute, as an operator can use it: a neighbour that is down, a disk that is full."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from deltalake.exceptions import DeltaError

from deploy.cassandra import FAILURES
from master_dataset.errors import DiskFull, GalateaError, StoreUnavailable

_OF_CASSANDRA = re.compile(r"cassandra\.\w|NoHostAvailable|OperationTimedOut|(?:Write|Read)Timeout|StoreUnavailable")
_OF_THE_DISK = "No space left on device"
ODD = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, OSError, msgspec.MsgspecError, DeltaError)
"""What rows and files lead to that are not as this release expects them: of another release, or half gone."""


@contextmanager
def naming_failures(id_: str) -> Iterator[None]:
    """StoreUnavailable or DiskFull instead of what drivers and Spark raise inside, where it is one of these.

    Spark tells of its workers' errors in text only.
    """
    do = f"galatea rebuild --id {id_}"
    try:
        yield
    except GalateaError:
        raise
    except FAILURES as error:
        raise _store(error, do) from error
    except Exception as error:
        if _OF_THE_DISK in str(error) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
            message = "a disk is full; nothing was published"
            raise DiskFull(message, do=f"free some space where GALATEA_HOME is, then: {do}") from error
        if _OF_CASSANDRA.search(str(error)):
            raise _store(error, do) from error
        raise


def _store(error: Exception, do: str) -> StoreUnavailable:
    what = type(error).__name__
    message = f"Cassandra did not take or give rows ({what}); what is published is as it was"
    return StoreUnavailable(message, do=f"galatea status, logs/cassandra.log; then: {do}")
