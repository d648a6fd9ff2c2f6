"""A recompute that is asked for over REST: written down first, then handed to whoever does it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from cassandra import DriverException

from batch_layer.recompute.recompute import Recompute, State, new_id
from deploy.cassandra import FAILURES
from master_dataset.errors import GalateaError, StoreUnavailable
from views.control.recompute_request import RecomputeRequest


class Kept(Protocol):
    """Where recomputes are written down; `batch_layer.recompute.recompute.Recomputes` is it."""

    def create(self, recompute: Recompute) -> None:
        """Write it down before anything is done."""

    def find(self, id_: str) -> Recompute:
        """UnknownName if there is none of that id."""

    def update(self, id_: str, state: State, **values: Any) -> None:  # noqa: ANN401 - JSON, by column
        """Say how it is now."""


class Trigger(Protocol):
    """Whoever does recomputes: a scheduler, or this process's own runner."""

    def trigger(self, recompute_id: str, request: RecomputeRequest, reason: str) -> None:
        """See that it is done. Unavailable if nobody takes it now."""


@dataclass(frozen=True)
class Launch:
    """Recomputing of the REST interface."""

    recomputes: Kept
    trigger: Trigger

    def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        """Its id can be looked at from the first moment. One that nobody takes is `failed`, and says why."""
        id_ = new_id()
        with answering():
            self.recomputes.create(Recompute(id_, request, by, reason, datetime.now(UTC), "asked"))
        try:
            self.trigger.trigger(id_, request, reason)
        except GalateaError as error:
            with answering():
                self.recomputes.update(id_, "failed", problem=problem_of(error))
            raise
        return id_


def problem_of(error: GalateaError) -> dict[str, str]:
    """As a record keeps it."""
    return {"code": error.code, "message": error.message, "do": error.do}


@contextmanager
def answering() -> Iterator[None]:
    """StoreUnavailable instead of what the driver raises."""
    try:
        yield
    except (DriverException, *FAILURES) as error:
        message = f"Cassandra did not answer: {type(error).__name__}."
        raise StoreUnavailable(message, do="Ask again; `galatea status` says what is wrong.") from error
