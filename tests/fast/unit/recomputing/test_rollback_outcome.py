"""Whether a rollback has happened after the driver raised: the history decides, but only where it can."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from cassandra import InvalidRequest, OperationTimedOut

from batch_layer.recompute.rollback import Rollback
from views.control.publication import Pointer, PointerRow, Publication, RunStats

AT = datetime(2026, 3, 2, tzinfo=UTC)
SEEN = Pointer(7, AT, "run", 3, {})
NEW = Publication(8, AT, "older", 3, AT, "me", "wrong prices", stats=RunStats(restores=5, rollback="mine"))


class FailingPointer:
    """Its switch raises; its history has `found`."""

    def __init__(self, failure: Exception, found: Publication | None) -> None:
        self.failure, self.found = failure, found

    def restore(self, *_: Any) -> bool:
        raise self.failure

    def publication(self, _: int) -> Publication | None:
        return self.found


def restored(failure: Exception, found: Publication | None) -> bool:
    return Rollback._restored(cast("PointerRow", FailingPointer(failure, found)), SEEN, NEW, 5)  # noqa: SLF001


def test_a_timeout_is_settled_by_the_history() -> None:
    assert restored(OperationTimedOut(), NEW)
    assert not restored(OperationTimedOut(), None)


def test_a_request_that_cassandra_refuses_is_raised_and_not_taken_for_another_publication() -> None:
    with pytest.raises(InvalidRequest):
        restored(InvalidRequest("Undefined column name rolled_back"), None)
