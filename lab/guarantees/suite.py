"""Runs experiments one after another on a setup that is created for them, and collects their results."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, libversion
from confluent_kafka.admin import AdminClient

from deploy.jars import KAFKA, ensure_jars
from deploy.local.kafka import kafka_version
from lab.guarantees.brokers import broker_log, one_broker, three_nodes
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need, Size, registered
from lab.guarantees.results import Result, Verdict
from master_dataset.errors import GalateaError, UnknownNameError
from master_dataset.kafka.client_errors import ClientErrors
from master_dataset.kafka.connection import KafkaConnection

if TYPE_CHECKING:
    from deploy.settings import Settings

ONE, THREE = 1, 3
_ANSWERS_SECONDS = 10
Progress = Callable[[int, int, str], None]
"""Called with (done, total, what runs now)."""
_FAILURES = (KafkaException, GalateaError, OSError, LookupError, ValueError)
"""Errors that fail one experiment but not the others: a broker that does not respond, a premise that did not hold."""


@dataclass(frozen=True)
class ExperimentSelection:
    """Which experiments to run (all if `ids` is empty), and on what: an address, or 1 or 3 nodes of our own.

    At the address, the settings for the security of Kafka apply.
    """

    ids: Sequence[str] = ()
    seed: int = 1
    size: Size = field(default_factory=Size)
    bootstrap: str = ""
    brokers: int = THREE

    def experiments(self) -> list[Experiment]:
        """Those that were selection for, all if none was named. UnknownNameError for an id that there is not."""
        known = registered()
        for id_ in self.ids:
            if id_ not in known:
                raise UnknownNameError("experiment", id_, known)
        return [known[id_] for id_ in self.ids] or list(known.values())

    def why_not(self, experiment: Experiment) -> str:
        """Return why the experiment cannot run here; empty if it can."""
        if experiment.need != Need.BROKER and self.bootstrap:
            return f"needs {experiment.need}: leave out --bootstrap"
        if experiment.need == Need.NODES and self.brokers < THREE:
            return f"needs {experiment.need}: --brokers 3"
        return ""


@dataclass(frozen=True)
class ExperimentResult:
    """What came of one experiment. If it was skipped or failed, it has no lines, and `why` says the reason."""

    experiment: Experiment
    verdict: Verdict
    lines: Sequence[Result] = ()
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        """For `--json` and the documentation."""
        said = {
            "id": self.experiment.id,
            "shows": self.experiment.shows,
            "verdict": self.verdict.value,
            "why": self.why,
        }
        return {**said, "lines": [line.as_json() for line in self.lines]}


def run_experiments(settings: "Settings", selection: ExperimentSelection, progress: Progress) -> list[ExperimentResult]:
    """Run the selected experiments in order.

    Raises BrokerUnavailableError if a given address does not respond, OperatorError if no broker starts.
    """
    experiments, results = selection.experiments(), list[ExperimentResult]()
    with _setup(settings, selection) as setup:
        for done, each in enumerate(experiments):
            progress(done, len(experiments), f"{each.id} {each.shows}")
            results.append(run_experiment(each, setup, selection.why_not(each)))
    progress(len(experiments), len(experiments), "done")
    return results


def run_experiment(experiment: Experiment, setup: ExperimentSetup, why_not: str = "") -> ExperimentResult:
    """Run one experiment, or skip it for the given reason."""
    if why_not:
        return ExperimentResult(experiment, Verdict.SKIPPED, why=why_not)
    if setup.proxy is not None:
        setup.proxy.clear_rule()
    try:
        lines = list(experiment.run(setup))
    except _FAILURES as error:
        return ExperimentResult(experiment, Verdict.FAILED, why=f"{type(error).__name__}: {error}")
    different = any(line.verdict != Verdict.AS_EXPECTED for line in lines)
    return ExperimentResult(experiment, Verdict.DIFFERENT if different else Verdict.AS_EXPECTED, lines)


def document(selection: ExperimentSelection, results: Iterable[ExperimentResult]) -> dict[str, Any]:
    """Return the JSON of a run: versions, each experiment, and the number of each verdict."""
    results = list(results)
    broker = {} if selection.bootstrap else {"kafka": kafka_version()}
    verdicts = Counter(result.verdict for result in results)
    return {
        "seed": selection.seed,
        "records": selection.size.records,
        "versions": {**broker, "librdkafka": libversion()[0]},
        "verdicts": {verdict.value: verdicts[verdict] for verdict in Verdict},
        "experiments": [result.as_json() for result in results],
    }


def is_as_expected(results: Iterable[ExperimentResult]) -> bool:
    """Whether no experiment differed or failed. A skipped one counts as neither."""
    return all(result.verdict in {Verdict.AS_EXPECTED, Verdict.SKIPPED} for result in results)


@contextmanager
def _setup(settings: "Settings", selection: ExperimentSelection) -> Iterator[ExperimentSetup]:
    home = settings.home / "prove"
    work = home / "work"
    with ExitStack() as opened:
        work.mkdir(parents=True, exist_ok=True)
        opened.callback(shutil.rmtree, work, ignore_errors=True)
        if selection.bootstrap:
            kafka = replace(settings.kafka.connection, bootstrap=selection.bootstrap)
            _check_answers(kafka)
            setup = ExperimentSetup(kafka, work, selection.seed, selection.size)
        else:
            setup = opened.enter_context(_own_brokers(settings, selection, home, work))
        opened.callback(setup.delete_topics)
        yield setup


@contextmanager
def _own_brokers(
    settings: "Settings", selection: ExperimentSelection, home: Path, work: Path
) -> Iterator[ExperimentSetup]:
    ensure_jars(settings, parts=(KAFKA,))
    one, three = home / "one", home / "three"
    for former in (one, three):  # brokers keep the version with which they were formatted
        shutil.rmtree(former, ignore_errors=True)

    def cluster() -> Any:  # noqa: ANN401 - a context manager of a Cluster
        return three_nodes(settings, three)

    with one_broker(settings, one) as (direct, proxied, proxy):
        log = partial(broker_log, one)
        yield ExperimentSetup(direct, work, selection.seed, selection.size, proxy, proxied, cluster, log)


def _check_answers(kafka: KafkaConnection) -> None:
    """BrokerUnavailableError, which is a BrokerAccessError if the settings for security do not fit the broker."""
    errors = ClientErrors(kafka)
    admin: AdminClient = errors.connect(AdminClient, {"log_level": 0})
    try:
        admin.list_topics(timeout=_ANSWERS_SECONDS)
    except KafkaException as error:
        admin.poll(0)
        raise errors.translated(error, "run experiments") from error
