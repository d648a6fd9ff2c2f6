"""What is skipped is not passed, what fails is not skipped, and the exit code knows the difference."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from typer.testing import CliRunner

from galatea.cli.main import app
from lab.guarantees import suite
from lab.guarantees.experiment import Experiment, Ground, Need, Size, registered
from lab.guarantees.results import Line, Tally, Verdict, exactly
from lab.guarantees.suite import Asked, Proof, document, is_as_expected, proof_of
from master_dataset.errors import OperatorError, UnknownName

GOOD = Line("at least once", "kills", 10, Tally(0, 2, 0), {"duplicated": exactly(2)})
BAD = Line("at most once", "kills", 10, Tally(0, 0, 0), {"lost": exactly(2)})


def experiment(*lines: Line, need: Need = Need.BROKER, fails: Exception | None = None) -> Experiment:
    """One that comes to these lines, or fails."""

    def run(_ground: Ground) -> Sequence[Line]:
        if fails is not None:
            raise fails
        return lines

    return Experiment("P99", "a concept", run, need)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground("nowhere:1", tmp_path, seed=1)


def test_one_line_that_differs_makes_the_experiment_differ(ground: Ground) -> None:
    assert proof_of(experiment(GOOD), ground).verdict == Verdict.AS_EXPECTED
    assert proof_of(experiment(GOOD, BAD), ground).verdict == Verdict.DIFFERENT


@pytest.mark.parametrize(
    "fails",
    [
        KafkaException(KafkaError(KafkaError._TRANSPORT)),  # noqa: SLF001 - its public name
        OperatorError("the follower was given up too", do="galatea prove P12"),
        TimeoutError("the broker has given nothing for 60 s"),
        ValueError("numbers that were never sent: [7]"),
    ],
)
def test_an_experiment_that_fails_says_why_and_counts_as_a_difference(ground: Ground, fails: Exception) -> None:
    proof = proof_of(experiment(fails=fails), ground)

    assert proof.verdict == Verdict.FAILED
    assert type(fails).__name__ in proof.why
    assert not is_as_expected([proof])


def test_what_is_skipped_neither_fails_nor_counts_as_a_success(ground: Ground) -> None:
    skipped = proof_of(experiment(BAD), ground, "needs a tap")

    said = document(Asked(bootstrap="elsewhere:9092"), [skipped, proof_of(experiment(GOOD), ground)])

    assert is_as_expected([skipped])
    assert said["verdicts"] == {"as expected": 1, "DIFFERENT": 0, "FAILED": 0, "skipped": 1}


def test_a_given_broker_is_neither_tapped_nor_killed() -> None:
    given = Asked(bootstrap="elsewhere:9092")

    assert given.why_not(experiment()) == ""
    assert given.why_not(experiment(need=Need.TAP)).startswith("needs a tap")
    assert given.why_not(experiment(need=Need.NODES)).startswith("needs three nodes")


def test_three_nodes_are_started_unless_one_broker_has_to_do() -> None:
    nodes = experiment(need=Need.NODES)

    assert Asked().why_not(nodes) == ""
    assert Asked(brokers=1).why_not(nodes) == "needs three nodes that it may kill: --brokers 3"


def test_every_experiment_of_the_handbook_is_there_under_its_id() -> None:
    assert list(registered()) == [f"P{number:02}" for number in range(1, 24)]
    assert Asked().experiments() == list(registered().values())


def test_an_id_that_there_is_not_is_named() -> None:
    with pytest.raises(UnknownName, match="no experiment `P77`"):
        Asked(("P01", "P77")).experiments()


def test_faults_are_spread_evenly_and_chance_is_the_seeds(tmp_path: Path) -> None:
    ground, same = (Ground("nowhere:1", tmp_path, seed=7, size=Size(100, 4)) for _ in range(2))
    other = Ground("nowhere:1", tmp_path, seed=8, size=Size(100, 4))

    deaths = ground.deaths("p01")

    assert [later - earlier for earlier, later in pairwise(deaths)] == [25, 25, 25]
    assert deaths == same.deaths("p01")
    assert any(ground.deaths(name) != other.deaths(name) for name in ("p01", "p02", "p04"))


@pytest.mark.parametrize(("line", "code"), [(GOOD, 0), (BAD, 1)])
def test_the_command_leaves_with_1_on_any_difference(monkeypatch: pytest.MonkeyPatch, line: Line, code: int) -> None:
    proofs: Callable[..., list[Proof]] = lambda _settings, _asked, _told: [  # noqa: E731 - one line
        Proof(experiment(line), line.verdict, [line]),
    ]
    monkeypatch.setattr(suite, "prove", proofs)

    ended = CliRunner().invoke(app, ["prove", "p01"])

    assert ended.exit_code == code
    assert line.verdict in ended.stdout


def test_two_brokers_are_refused() -> None:
    ended = CliRunner().invoke(app, ["prove", "--brokers", "2"])

    assert "one broker, or three nodes" in str(ended.exception)
