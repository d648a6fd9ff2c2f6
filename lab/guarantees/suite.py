"""Runs experiments one after the other on a ground that is made for them, and keeps what came of each."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, libversion
from confluent_kafka.admin import AdminClient

from deploy.jars import ensure_jars, locked_jars
from lab.guarantees.brokers import one_broker, three_nodes
from lab.guarantees.experiment import Experiment, Need, Size, Testbed, registered
from lab.guarantees.results import Result, Verdict
from master_dataset.errors import BrokerUnavailableError, GalateaError, UnknownNameError

if TYPE_CHECKING:
    from deploy.settings import Settings

ONE, THREE = 1, 3
_ANSWERS_SECONDS = 10
_BROKER_JAR = "kafka_2.13"
Told = Callable[[int, int, str], None]
"""Told (done, of how many, what is run now)."""
_GOES_WRONG = (KafkaException, GalateaError, OSError, LookupError, ValueError)
"""What ends one experiment, and not the others: a broker that does not answer, a premise that did not hold."""


@dataclass(frozen=True)
class ExperimentSelection:
    """Which experiments, with which chance, how much, and on what: an address, or 1 or 3 nodes of our own."""

    ids: Sequence[str] = ()
    seed: int = 1
    size: Size = field(default_factory=Size)
    bootstrap: str = ""
    brokers: int = THREE

    def experiments(self) -> list[Experiment]:
        """Those that were asked for, all if none was named. UnknownNameError for an id that there is not."""
        known = registered()
        for id_ in self.ids:
            if id_ not in known:
                raise UnknownNameError("experiment", id_, known)
        return [known[id_] for id_ in self.ids] or list(known.values())

    def why_not(self, experiment: Experiment) -> str:
        """Why it cannot be run as things are; empty if it can."""
        if experiment.need != Need.BROKER and self.bootstrap:
            return f"needs {experiment.need}: leave out --bootstrap"
        if experiment.need == Need.NODES and self.brokers < THREE:
            return f"needs {experiment.need}: --brokers 3"
        return ""


@dataclass(frozen=True)
class ExperimentResult:
    """One experiment, and its lines; none where it was skipped or failed, and `why`."""

    experiment: Experiment
    verdict: Verdict
    lines: Sequence[Result] = ()
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        """For `--json` and the page."""
        said = {
            "id": self.experiment.id,
            "shows": self.experiment.shows,
            "verdict": self.verdict.value,
            "why": self.why,
        }
        return {**said, "lines": [line.as_json() for line in self.lines]}


def run_experiments(settings: "Settings", asked: ExperimentSelection, told: Told) -> list[ExperimentResult]:
    """Run them in order. BrokerUnavailableError if a given address does not answer, OperatorError if no broker starts."""
    experiments, results = asked.experiments(), list[ExperimentResult]()
    with _ground(settings, asked) as testbed:
        for done, each in enumerate(experiments):
            told(done, len(experiments), f"{each.id} {each.shows}")
            results.append(run_experiment(each, testbed, asked.why_not(each)))
    told(len(experiments), len(experiments), "done")
    return results


def run_experiment(experiment: Experiment, testbed: Testbed, why_not: str = "") -> ExperimentResult:
    """Run one, unless there is a reason not to."""
    if why_not:
        return ExperimentResult(experiment, Verdict.SKIPPED, why=why_not)
    if testbed.proxy is not None:
        testbed.proxy.clear_rule()
    try:
        lines = list(experiment.run(testbed))
    except _GOES_WRONG as error:
        return ExperimentResult(experiment, Verdict.FAILED, why=f"{type(error).__name__}: {error}")
    different = any(line.verdict != Verdict.AS_EXPECTED for line in lines)
    return ExperimentResult(experiment, Verdict.DIFFERENT if different else Verdict.AS_EXPECTED, lines)


def document(asked: ExperimentSelection, results: Iterable[ExperimentResult]) -> dict[str, Any]:
    """Everything as JSON: what it was run with, each experiment, and how many came to what."""
    results = list(results)
    broker = {} if asked.bootstrap else {"kafka": _broker_version()}
    verdicts = Counter(result.verdict for result in results)
    return {
        "seed": asked.seed,
        "records": asked.size.records,
        "versions": {**broker, "librdkafka": libversion()[0]},
        "verdicts": {verdict.value: verdicts[verdict] for verdict in Verdict},
        "experiments": [result.as_json() for result in results],
    }


def is_as_expected(results: Iterable[ExperimentResult]) -> bool:
    """Whether nothing differed or failed; what was skipped is neither that nor a success."""
    return all(result.verdict in {Verdict.AS_EXPECTED, Verdict.SKIPPED} for result in results)


@contextmanager
def _ground(settings: "Settings", asked: ExperimentSelection) -> Iterator[Testbed]:
    home = settings.home / "prove"
    work = home / "work"
    with ExitStack() as opened:
        work.mkdir(parents=True, exist_ok=True)
        opened.callback(shutil.rmtree, work, ignore_errors=True)
        if asked.bootstrap:
            _check_answers(asked.bootstrap)
            testbed = Testbed(asked.bootstrap, work, asked.seed, asked.size)
        else:
            testbed = opened.enter_context(_own(settings, asked, home, work))
        opened.callback(testbed.leave)
        yield testbed


@contextmanager
def _own(settings: "Settings", asked: ExperimentSelection, home: Path, work: Path) -> Iterator[Testbed]:
    ensure_jars(settings, parts=("kafka",))

    def cluster() -> Any:  # noqa: ANN401 - a context of a Cluster
        return three_nodes(settings, home / "three")

    with one_broker(settings, home / "one") as (direct, proxied, proxy):
        yield Testbed(direct, work, asked.seed, asked.size, proxy, proxied, cluster)


def _check_answers(bootstrap: str) -> None:
    try:
        AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=_ANSWERS_SECONDS)
    except KafkaException as error:
        message = f"the broker at `{bootstrap}` does not answer"
        raise BrokerUnavailableError(
            message, do="check the address, or leave out --bootstrap for a broker of its own"
        ) from error


def _broker_version() -> str:
    return next(jar.version for jar in locked_jars("kafka") if jar.artifact == _BROKER_JAR)
