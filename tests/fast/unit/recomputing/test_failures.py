"""What a library raises inside a recompute reaches the operator as what has happened, and what to do."""

import errno
import os

import pytest
from cassandra import InvalidRequest, OperationTimedOut, Unauthorized, WriteTimeout
from cassandra.cluster import NoHostAvailable

from batch_layer.failures import translated_failures
from master_dataset.errors import (
    BrokerAccessError,
    CassandraAccessError,
    CassandraUnavailableError,
    CutNotReachedError,
    DiskFullError,
    GalateaError,
)

NO_RIGHT = (
    'Error from server: code=2100 [Unauthorized] message="User me has no MODIFY permission on <table galatea.runs>"'
)
UNREAD = 'Error from server: code=2100 [Unauthorized] message="Unable to perform authorization: no replica"'
AS_SPARK_SAYS = "Job aborted due to stage failure: Task 3 in stage 12.0 failed 4 times: {}"


class Py4JJavaError(Exception):
    """As Spark raises: all that happened in a worker is text."""


@pytest.mark.parametrize(
    "failure",
    [
        OperationTimedOut(),
        NoHostAvailable("none", {}),
        WriteTimeout("late", write_type=0),
        Py4JJavaError(AS_SPARK_SAYS.format("cassandra.cluster.NoHostAvailable: ('Unable to connect', {})")),
        Py4JJavaError(AS_SPARK_SAYS.format("cassandra.OperationTimedOut: errors={}")),
        Py4JJavaError(AS_SPARK_SAYS.format(f"cassandra.Unavailable: {UNREAD}")),
    ],
)
def test_a_store_that_is_lost_is_named_with_the_command_that_goes_on(failure: Exception) -> None:
    with pytest.raises(CassandraUnavailableError) as said, translated_failures("mine"):
        raise failure

    assert said.value.do.endswith("galatea rebuild --id mine")
    assert said.value.__cause__ is failure


@pytest.mark.parametrize(
    "failure",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        Py4JJavaError(AS_SPARK_SAYS.format("java.io.IOException: No space left on device")),
    ],
)
def test_a_full_disk_is_named_with_the_command_that_goes_on(failure: Exception) -> None:
    with pytest.raises(DiskFullError) as said, translated_failures("mine"):
        raise failure

    assert said.value.do.endswith("galatea rebuild --id mine")


@pytest.mark.parametrize("failure", [Unauthorized(NO_RIGHT), Py4JJavaError(AS_SPARK_SAYS.format(NO_RIGHT))])
def test_a_right_that_cassandra_has_not_granted_is_named(failure: Exception) -> None:
    with pytest.raises(CassandraAccessError, match="User me has no MODIFY") as said, translated_failures("mine"):
        raise failure

    assert said.value.do == "grant the right, then: galatea rebuild --id mine"


def test_what_kafka_rejects_in_spark_is_named() -> None:
    java = "org.apache.kafka.common.errors.GroupAuthorizationException: Not authorized to access group: spark-kafka-1"

    with pytest.raises(BrokerAccessError, match="Not authorized to access group") as said, translated_failures("mine"):
        raise Py4JJavaError(AS_SPARK_SAYS.format(java))

    assert said.value.do == "grant the right: docs/how-to/secured-clusters.md#rights-in-kafka"


@pytest.mark.parametrize(
    "failure",
    [
        CutNotReachedError("not yet", do="galatea lag"),
        ValueError("a bug"),
        OSError(errno.EPERM, "no"),
        InvalidRequest("Undefined column name blok"),
        Unauthorized("no permission"),
    ],
)
def test_what_is_something_else_stays_as_it_is(failure: Exception) -> None:
    with pytest.raises(type(failure)) as said, translated_failures("mine"):
        raise failure

    assert said.value is failure
    assert not isinstance(said.value, GalateaError) or said.value.do == "galatea lag"
