"""Every error, sorted by who acts. A record that cannot become an event is no exception but a DeadLetter.

GalateaError
|-- DefinitionError        the author of a view or source; at import; says what does exist
|-- RequestError           the caller; 4xx, exit 2
|   |-- UnknownNameError        404, with the nearest name
|   |-- RangeTooLongError       422, with the grain that fits
|   |-- NothingArchivedError    404, no events on the days that were asked for
|   |-- MixedCurrenciesError    409, money of two currencies has no sum
|   |-- BadFileError            422, a file of the caller's that cannot be used; names the field
|   |-- BadEndpointError        422, an address that webhooks cannot call; names the field
|   `-- BadRuleError            422, a rule of alerts without sense; names the field
|-- OperatorError          the operator; exit 1; `do` is the next command
|   |-- CutNotReachedError      the archive has not passed the cut in every partition
|   |-- PublicationMovedError   somebody published in between
|   |-- CheckpointOutOfStepError  the speed layer's rows and its checkpoint tell of different micro-batches
|   |-- GenerationReplacedError   a generation of the speed layer that may write nothing more
|   |-- NothingPublishedError     there is no publication yet that a part could be based on
|   |-- DefinitionNotCoveredError  views were changed and no speed layer runs with the new definitions yet
|   |-- RecomputeRunningError   another process works on the same
|   |-- RollbackTooFarError     no speed rows can be had for the cut of that publication
|   |-- DiskFullError           no room for what is computed
|   |-- CurrencyFixedError      a store's currency cannot change once it has events
|   |-- DayFixedError           when its business days begin cannot change once it has sightings
|   |-- MasterFileLostError     a file of the master dataset is gone or broken
|   |-- UpkeepRunsError         another compaction or export has not ended
|   |-- SpeedExpiredError       the cut is older than the speed rows live
|   `-- LinesNotSentError       an ingest that did not bring every line to the broker
`-- Unavailable            nobody yet; retried in order, then 503 with Retry-After
    |-- BrokerUnavailableError
    |-- CassandraUnavailableError
    |-- SpeedUnavailableError
    `-- AirflowUnavailableError
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar, Literal

Fires = Literal["never", "always"]


class GalateaError(Exception):
    """What happened in one sentence (`str(error)`), and what to do next (`do`).

    `code` is stable: API, docs and logs use the same word. `status` is HTTP's, `exit_code` the command line's.
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
        """Errors cross process borders (Spark workers, child processes), and the default would lose `do`."""
        return (_rebuilt, (type(self), self.message, self.do), self.__dict__)


def _rebuilt(kind: type[GalateaError], message: str, do: str) -> GalateaError:
    error = kind.__new__(kind, message)
    GalateaError.__init__(error, message, do=do)
    return error


class DefinitionError(GalateaError):
    """A view or a source contradicts itself. Raised at import, so it never reaches a reader."""

    code = "definition_error"


class RequestError(GalateaError):
    """The caller asked for something that cannot be answered as asked."""

    code = "request_error"
    exit_code = 2
    status = 400


class UnknownNameError(RequestError):
    """No source, view, metric or store of that name. Says which name is nearest, or what there is."""

    status = 404

    def __init__(self, kind: str, name: str, known: Iterable[str], *, do: str = "") -> None:
        """`kind` is the word of the API (`source`, `view`, `metric`), `known` every name that would have worked.

        `do`: the next step where names are too many to be known.
        """
        names = sorted(known)
        nearest = get_close_matches(name, names, n=1, cutoff=0.5)
        if nearest:
            do = f"Did you mean `{nearest[0]}`?"
        elif names:
            do = f"There is: {', '.join(f'`{each}`' for each in names)}."
        super().__init__(f"There is no {kind} `{name}`.", do=do or f"No {kind} is registered yet.")


class RangeTooLongError(RequestError):
    """More points than one answer may hold; `do` names the grain that fits."""

    status = 422


class NothingArchivedError(RequestError):
    """A recompute of days, or of stores, that have no events."""

    status = 404


class MixedCurrenciesError(RequestError):
    """Stores of several currencies were asked for one sum of money."""

    status = 409


class BadFileError(RequestError):
    """A file that the caller gave cannot be used as it is; nothing of it was taken."""

    status = 422

    def __init__(self, message: str, *, do: str, code: str = "bad_file") -> None:
        """`code` says what is wrong more closely than the class does, such as `offset_not_15min`."""
        super().__init__(message, do=do)
        self.code = code


class BadRuleError(RequestError):
    """A rule of alerts that cannot be followed, can never fire or would always; nothing was changed."""

    status = 422

    def __init__(self, field: str, message: str, *, do: str, fires: "Fires | None" = None) -> None:
        """`field` of the rule that has to be changed, as its author wrote it; empty if it is not one alone.

        `fires`: how often it would, where that is what is wrong with it.
        """
        super().__init__(message, do=do)
        self.field, self.fires = field, fires


class BadEndpointError(RequestError):
    """An endpoint of webhooks that cannot be called as it was named; nothing was changed."""

    status = 422

    def __init__(self, field: str, message: str, *, do: str) -> None:
        """`field` of the endpoint that has to be changed."""
        super().__init__(message, do=do)
        self.field = field


class OperatorError(GalateaError):
    """The system is whole, but somebody has to decide. `do` is the next command."""

    code = "operator_error"
    status = 409


class CutNotReachedError(OperatorError):
    """The archive has not passed the markers of the cut in every partition; nothing was changed."""


class PublicationMovedError(OperatorError):
    """Another publication came first, so this one would have hidden it."""


class CheckpointOutOfStepError(OperatorError):
    """The speed rows and the checkpoint tell of different micro-batches: one is older, or a second process runs."""


class GenerationReplacedError(OperatorError):
    """Another generation of the speed layer takes over from this one, which can no longer write (R9)."""


class NothingPublishedError(OperatorError):
    """There is no publication yet that a part could be based on."""


class DefinitionNotCoveredError(OperatorError):
    """The definitions differ from the published ones, and two hashes are never merged (R12)."""


class RecomputeRunningError(OperatorError):
    """Another process works on that recompute, or on the same views and days; only one of them could publish."""


class RollbackTooFarError(OperatorError):
    """A publication that readers cannot go back to: no speed rows can be had for its cut, or its cells are gone."""


class DiskFullError(OperatorError):
    """There is no room left where something has to be written; what is published is as it was."""


class CurrencyFixedError(OperatorError):
    """A store with events keeps its currency, because its amounts are already counted in minor units of it."""


class DayFixedError(OperatorError):
    """A store with sightings keeps its time zone and the start of its day, because its visits end there."""


class MasterFileLostError(OperatorError):
    """A data file of the master dataset is gone, cut short or unreadable: to go on would silently leave out events."""


class UpkeepRunsError(OperatorError):
    """Another compaction or export has not ended, or was killed less than its lease ago; two would keep rows twice."""


class SpeedExpiredError(OperatorError):
    """The published cut is older than speed rows live: the merged answer would silently miss sales (R10)."""

    status = 503


class LinesNotSentError(OperatorError):
    """An ingest ended before the broker had acknowledged every line; `do` says from which line to resume."""


class DependencyUnavailableError(GalateaError):
    """A system that this process depends on does not answer. Retried in order first; nobody has to act yet."""

    code = "unavailable"
    status = 503


class BrokerUnavailableError(DependencyUnavailableError):
    """Kafka did not take or give records in time."""


class CassandraUnavailableError(DependencyUnavailableError):
    """Cassandra did not answer in time."""

    code = "store_unavailable"


class SpeedUnavailableError(DependencyUnavailableError):
    """The speed rows cannot be read; `partial=true` answers from batch alone, labelled as such."""


class AirflowUnavailableError(DependencyUnavailableError):
    """Airflow did not take or answer a request in time, or does not know the DAG (yet)."""
