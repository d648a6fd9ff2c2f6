"""Every error, by who has to act. docs/reference/errors.md lists all of them with their codes.

- DefinitionError: the author of a view or source; raised at import.
- RequestError: the caller; 4xx, exit code 2.
- OperatorError: the operator; exit code 1; `do` is the next command.
- DependencyUnavailableError: nobody yet; the request is retried, then answered with 503 and Retry-After.

Errors that also derive from OperatorError, such as BrokerAccessError, need the operator after all. A record that is not
an event raises nothing: it becomes a `DeadLetter`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import ClassVar, Literal

Fires = Literal["never", "always"]
MOST_NAMED = 50
"""Names that an error about an unknown name lists: a chain has thousands of stores."""
MOST_COMPARED = 1_000
"""Names that an unknown one is compared with, in about 10 ms."""


class GalateaError(Exception):
    """One sentence on what happened (`str(error)`), and what to do next (`do`).

    `code` is stable, and the same in the API, docs and logs. `status` is the HTTP status, `exit_code` that of the
    command.
    """

    exit_code: ClassVar[int] = 1
    status: ClassVar[int] = 500
    code: str = "galatea_error"

    def __init_subclass__(cls) -> None:
        """Derive the code from the class name: `CutNotReachedError` has the code `cut_not_reached`."""
        super().__init_subclass__()
        if "code" not in vars(cls):
            cls.code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__.removesuffix("Error")).lower()

    def __init__(self, message: str, *, do: str) -> None:
        """`message` is one sentence with values in backquotes; `do` is the next step, a command where there is one."""
        super().__init__(message)
        self.message = message
        self.do = do

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle `do` too: errors come back from Spark workers and child processes."""
        return (_rebuilt, (type(self), self.message, self.do), self.__dict__)


def _rebuilt(kind: type[GalateaError], message: str, do: str) -> GalateaError:
    error = kind.__new__(kind, message)
    GalateaError.__init__(error, message, do=do)
    return error


class DefinitionError(GalateaError):
    """The definition of a view or source is invalid. Raised at import, so it never reaches a reader."""

    code = "definition_error"


class RequestError(GalateaError):
    """The request cannot be answered as it is."""

    code = "request_error"
    exit_code = 2
    status = 400


class UnknownNameError(RequestError):
    """There is no source, view, metric or store of that name."""

    status = 404

    def __init__(self, kind: str, name: str, known: Iterable[str], *, do: str = "") -> None:
        """Suggest the nearest name.

        Args:
            kind: What was looked up, in the word of the API: `source`, `view`, `metric`.
            name: The unknown name.
            known: Every name that exists.
            do: The next step if no known name is near.
        """
        names = sorted(known)
        nearest = get_close_matches(name, _neighbours(name, names), n=1, cutoff=0.5)
        if nearest:
            do = f"Did you mean `{nearest[0]}`?"
        elif names:
            more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
            do = f"Use one of: {', '.join(f'`{each}`' for each in names[:MOST_NAMED])}{more}."
        super().__init__(f"There is no {kind} `{name}`.", do=do or f"No {kind} is registered yet.")


def _neighbours(name: str, names: Sequence[str]) -> Sequence[str]:
    """All names in order; of very many, those sorted next to `name`, because comparing it with each takes too long."""
    at = bisect_left(names, name)
    return names[max(at - MOST_COMPARED // 2, 0) : at + MOST_COMPARED // 2] if len(names) > MOST_COMPARED else names


class RangeTooLongError(RequestError):
    """The range has more points than a response may hold; `do` names the grain that fits."""

    status = 422


class NothingArchivedError(RequestError):
    """There are no events for the days or stores to recompute."""

    status = 404


class MixedCurrenciesError(RequestError):
    """A store has amounts in several currencies, which cannot be added up."""

    status = 409


class BadFileError(RequestError):
    """A file cannot be used as it is; none of it was applied."""

    status = 422

    def __init__(self, message: str, *, do: str, code: str = "bad_file") -> None:
        """`code` says what is wrong with the file, such as `offset_not_15min`."""
        super().__init__(message, do=do)
        self.code = code


class ProductsChangedError(RequestError):
    """Another load changed the tenant's products first."""

    status = 409


class StoresChangedError(RequestError):
    """Another load changed the registered stores first."""

    status = 409


class TargetsChangedError(RequestError):
    """Another load changed the tenant's targets first."""

    status = 409


class BadRuleError(RequestError):
    """An alert rule is invalid, can never fire, or would always fire; nothing was changed."""

    status = 422

    def __init__(self, field: str, message: str, *, do: str, fires: "Fires | None" = None) -> None:
        """`field`: the one to change, as its author wrote it; empty if it is more than one.

        `fires`: how often the rule would fire, if that is what is wrong; else None.
        """
        super().__init__(message, do=do)
        self.field, self.fires = field, fires


class BadEndpointError(RequestError):
    """A webhook endpoint cannot be called under this URL; nothing was changed."""

    status = 422

    def __init__(self, field: str, message: str, *, do: str) -> None:
        """`field`: the one of the endpoint to change."""
        super().__init__(message, do=do)
        self.field = field


class BadFloorPlanError(RequestError):
    """The image or the zones of a floor plan cannot be used; nothing was changed."""

    status = 422

    def __init__(self, field: str, message: str, *, do: str) -> None:
        """`field`: what to change, such as `image` or `zones[2].zone`."""
        super().__init__(message, do=do)
        self.field = field


class FloorPlanChangedError(RequestError):
    """The floor plan was changed in the meantime; nothing was changed by this request."""

    status = 412


class OperatorError(GalateaError):
    """The system works, and an operator has to decide. `do` is the next command."""

    code = "operator_error"
    status = 409


class CutNotReachedError(OperatorError):
    """The archive has not passed the markers of the cut in every partition; nothing was changed."""


class RecomputeNotSmallError(OperatorError):
    """Late events have started a small rebuild, and it would not be small any more; nothing was changed."""


class PublicationMovedError(OperatorError):
    """Another publication came first; this one would have overwritten it."""


class CheckpointOutOfStepError(OperatorError):
    """Speed rows and checkpoint belong to different micro-batches: one is older, or a second process is running."""


class GenerationReplacedError(OperatorError):
    """Another generation of the speed layer has taken over; this one must no longer write (R9)."""


class MicroBatchTooLargeError(OperatorError):
    """The events of a micro-batch need more memory than the speed layer may take; none of them is counted."""


class CheckpointInUseError(OperatorError):
    """Another process commits micro-batches of the same query: it was suspended, or a checkpoint was put back."""


class ProcessReplacedError(OperatorError):
    """Another process does the work of this one, whose lease had expired: it has to start again and stand by."""


class PartitionsOpenedError(OperatorError):
    """Partitions were added that this process does not read yet: it has to start again (R3)."""


class NothingPublishedError(OperatorError):
    """There is no publication yet to base this on."""


class DefinitionNotCoveredError(OperatorError):
    """The definitions differ from the published ones, and two hashes are never merged (R12)."""


class RecomputeRunningError(OperatorError):
    """Another process works on this recompute, or on the same views and days; only one could publish."""


class RollbackTooFarError(OperatorError):
    """Readers cannot go back to that publication: its speed rows cannot be rebuilt, or its cells were deleted."""


class DiskFullError(OperatorError):
    """The disk is full. Published data has not changed."""


class CurrencyFixedError(OperatorError):
    """A store with events keeps its currency, because its amounts are stored in minor units of it."""


class DayFixedError(OperatorError):
    """A store with sightings keeps its time zone and start of day, because its visits end there."""


class MasterFileLostError(OperatorError):
    """A data file of the master dataset is missing, truncated or unreadable; continuing would leave out its events."""


class LeaseHeldError(OperatorError):
    """Another process does the same maintenance, such as a compaction or an export, or was killed a short time ago."""

    code = "upkeep_runs"


class SpeedExpiredError(OperatorError):
    """The published cut is older than speed rows are kept; the merged answer would miss events (R10)."""

    status = 503


class LinesNotSentError(OperatorError):
    """An ingest ended before the broker acknowledged every line; `do` says from which line to resume."""


class MailNotSentError(OperatorError):
    """The mail server refuses the sender, the recipient or the mail; others may have got theirs."""


class PdfNotMadeError(OperatorError):
    """Chromium failed, or took too long, to make a PDF; nothing was sent."""


class DependencyUnavailableError(GalateaError):
    """A system that this process depends on does not respond. The request is retried first; nobody has to act yet."""

    code = "unavailable"
    status = 503


class BrokerUnavailableError(DependencyUnavailableError):
    """Kafka did not respond in time."""


class BrokerAccessError(BrokerUnavailableError, OperatorError):
    """Kafka rejects the login, certificate or rights of this process, or shows a certificate that cannot be trusted.

    A process that is starting stops. One that is running tries again.
    """


class CassandraUnavailableError(DependencyUnavailableError):
    """Cassandra did not respond in time."""

    code = "store_unavailable"


class CassandraAccessError(CassandraUnavailableError, OperatorError):
    """Cassandra rejects the login, certificate or rights of this process, or shows one that cannot be trusted."""


class ObjectStoreUnavailableError(DependencyUnavailableError):
    """The object store of the master dataset did not respond in time, or asked for fewer requests."""


class ObjectStoreAccessError(ObjectStoreUnavailableError, OperatorError):
    """The object store rejects this process, has no such bucket, or lacks conditional PUT, which commits need."""


class SpeedUnavailableError(DependencyUnavailableError):
    """The speed rows cannot be read; `partial=true` answers from batch alone, labelled as such."""


class DeadLetterNotStoredError(DependencyUnavailableError):
    """A dead letter could not be written. What led to it waits, and is tried again."""


class MailServerUnavailableError(DependencyUnavailableError):
    """The mail server did not respond in time, or asked to try again later."""


class AirflowUnavailableError(DependencyUnavailableError):
    """Airflow did not respond in time, or does not know the DAG (yet)."""
