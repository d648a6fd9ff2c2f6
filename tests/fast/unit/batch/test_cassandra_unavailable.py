"""Which exceptions of the driver mean that Cassandra is unavailable, and which show a bug of ours."""

import pytest
from cassandra import (
    AlreadyExists,
    InvalidRequest,
    OperationTimedOut,
    ReadFailure,
    Unauthorized,
    Unavailable,
    UnsupportedOperation,
    WriteFailure,
    WriteTimeout,
)
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import (
    IsBootstrappingErrorMessage,
    OverloadedErrorMessage,
    ServerError,
    SyntaxException,
    TruncateError,
)

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE


@pytest.mark.parametrize(
    "error",
    [
        OperationTimedOut(),
        NoHostAvailable("none is left", {}),
        Unavailable("two of three nodes are down"),
        WriteTimeout("no answer", write_type=0),
        ReadFailure("a replica failed"),
        WriteFailure("a replica failed"),
        OverloadedErrorMessage(0x1001, "overloaded", None),
        IsBootstrappingErrorMessage(0x1002, "bootstrapping", None),
        TruncateError(0x1003, "not truncated", None),
        ServerError(0x0000, "an exception in the node", None),
    ],
)
def test_a_node_that_fails_or_does_not_answer_is_unavailable(error: Exception) -> None:
    assert isinstance(error, CASSANDRA_UNAVAILABLE)


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("Undefined column name blok"),
        SyntaxException(0x2000, "no viable alternative at input SELEC", None),
        Unauthorized("no permission"),
        AlreadyExists("galatea", "stores"),
        UnsupportedOperation("not in this protocol"),
    ],
)
def test_a_rejected_request_is_a_bug(error: Exception) -> None:
    assert not isinstance(error, CASSANDRA_UNAVAILABLE)
