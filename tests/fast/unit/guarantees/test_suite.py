"""What is skipped is not passed, what fails is not skipped, and the exit code knows the difference."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from typer.testing import CliRunner

from galatea.cli.main import app
from lab.guarantees import suite
from lab.guarantees.experiment import Experiment, ExperimentSetup, Need, Size, registered
from lab.guarantees.results import Counts, Result, Verdict, exactly
from lab.guarantees.suite import ExperimentResult, ExperimentSelection, document, is_as_expected, run_experiment
from master_dataset.errors import OperatorError, UnknownNameError
from master_dataset.kafka.connection import KafkaConnection

GOOD = Result("at least once", "kills", 10, Counts(0, 2, 0), {"duplicated": exactly(2)})
BAD = Result("at most once", "kills", 10, Counts(0, 0, 0), {"lost": exactly(2)})


def experiment(*lines: Result, need: Need = Need.BROKER, fails: Exception | None = None) -> Experiment:
    """One that comes to these lines, or fails."""

    def run(_ground: ExperimentSetup) -> Sequence[Result]:
        if fails is not None:
            raise fails
        return lines

    return Experiment("P99", "a concept", run, need)


@pytest.fixture
def setup(tmp_path: Path) -> ExperimentSetup:
    return ExperimentSetup(KafkaConnection("nowhere:1"), tmp_path, seed=1)


def test_one_line_that_differs_makes_the_experiment_differ(setup: ExperimentSetup) -> None:
    assert run_experiment(experiment(GOOD), setup).verdict == Verdict.AS_EXPECTED
    assert run_experiment(experiment(GOOD, BAD), setup).verdict == Verdict.DIFFERENT


@pytest.mark.parametrize(
    "fails",
    [
        KafkaException(KafkaError(KafkaError._TRANSPORT)),  # noqa: SLF001 - its public name
        OperatorError("the follower was given up too", do="galatea prove P12"),
        TimeoutError("the broker has given nothing for 60 s"),
        ValueError("numbers that were never sent: [7]"),
    ],
)
def test_an_experiment_that_fails_says_why_and_counts_as_a_difference(setup: ExperimentSetup, fails: Exception) -> None:
    result = run_experiment(experiment(fails=fails), setup)

    assert result.verdict == Verdict.FAILED
    assert type(fails).__name__ in result.why
    assert not is_as_expected([result])


def test_what_is_skipped_neither_fails_nor_counts_as_a_success(setup: ExperimentSetup) -> None:
    skipped = run_experiment(experiment(BAD), setup, "needs a fault proxy")

    said = document(ExperimentSelection(bootstrap="elsewhere:9092"), [skipped, run_experiment(experiment(GOOD), setup)])

    assert is_as_expected([skipped])
    assert said["verdicts"] == {"as expected": 1, "DIFFERENT": 0, "FAILED": 0, "skipped": 1}


def test_a_given_broker_is_neither_proxied_nor_killed() -> None:
    given = ExperimentSelection(bootstrap="elsewhere:9092")

    assert given.why_not(experiment()) == ""
    assert given.why_not(experiment(need=Need.FAULT_PROXY)).startswith("needs a fault proxy")
    assert given.why_not(experiment(need=Need.NODES)).startswith("needs three nodes")


def test_three_nodes_are_started_unless_one_broker_has_to_do() -> None:
    nodes = experiment(need=Need.NODES)

    assert ExperimentSelection().why_not(nodes) == ""
    assert ExperimentSelection(brokers=1).why_not(nodes) == "needs three nodes that it may kill: --brokers 3"


def test_every_experiment_of_the_handbook_is_there_under_its_id() -> None:
    assert list(registered()) == [f"P{number:02}" for number in range(1, 27)]
    assert ExperimentSelection().experiments() == list(registered().values())


def test_an_id_that_there_is_not_is_named() -> None:
    with pytest.raises(UnknownNameError, match="no experiment `P77`"):
        ExperimentSelection(("P01", "P77")).experiments()


def test_faults_are_spread_evenly_and_chance_is_the_seeds(tmp_path: Path) -> None:
    setup, same = (ExperimentSetup(KafkaConnection("nowhere:1"), tmp_path, seed=7, size=Size(100, 4)) for _ in range(2))
    other = ExperimentSetup(KafkaConnection("nowhere:1"), tmp_path, seed=8, size=Size(100, 4))

    kills = setup.kills("p01")

    assert [later - earlier for earlier, later in pairwise(kills)] == [25, 25, 25]
    assert kills == same.kills("p01")
    assert any(setup.kills(name) != other.kills(name) for name in ("p01", "p02", "p04"))


@pytest.mark.parametrize(("line", "code"), [(GOOD, 0), (BAD, 1)])
def test_the_command_leaves_with_1_on_any_difference(monkeypatch: pytest.MonkeyPatch, line: Result, code: int) -> None:
    results: Callable[..., list[ExperimentResult]] = lambda _settings, _selection, _report: [  # noqa: E731 - one line
        ExperimentResult(experiment(line), line.verdict, [line]),
    ]
    monkeypatch.setattr(suite, "run_experiments", results)

    ended = CliRunner().invoke(app, ["prove", "p01"])

    assert ended.exit_code == code
    assert line.verdict in ended.stdout


def test_two_brokers_are_refused() -> None:
    ended = CliRunner().invoke(app, ["prove", "--brokers", "2"])

    assert "--brokers must be 1 or 3" in str(ended.exception)
