"""A recompute is written down before anybody is asked to do it, and says so when nobody does."""

from dataclasses import dataclass, field
from datetime import date

import orjson
import pytest
from cassandra import OperationTimedOut
from cassandra.cluster import NoHostAvailable

from deploy.recompute_runner import Launch
from deploy.wiring import AirflowElseRunner
from master_dataset.errors import CassandraUnavailableError, DependencyUnavailableError, GalateaError, OperatorError
from tests.fast.unit.recomputing.memory_recomputes import MemoryRecomputes
from views.control.recompute import Problem, Recompute, RecomputeRequest


@dataclass
class Taking:
    """Trigger. `refuses`: what is raised instead of taking it. `states`: as it was written down then."""

    kept: MemoryRecomputes
    refuses: GalateaError | None = None
    states: list[str] = field(default_factory=list)

    def trigger(self, recompute_id: str, requested: RecomputeRequest, reason: str) -> None:
        assert (self.kept.rows[recompute_id].request, self.kept.rows[recompute_id].why) == (requested, reason)
        self.states.append(self.kept.rows[recompute_id].state)
        if self.refuses:
            raise self.refuses


def test_the_request_is_recorded_first_and_unchanged() -> None:
    kept = MemoryRecomputes()
    taking = Taking(kept)
    requested = RecomputeRequest(("sales",), date(2026, 11, 1), date(2026, 11, 2), ("12",), full=True, mode="preview")

    id_ = Launch(kept, taking).start(requested, "a wrong price list", "operator")

    assert taking.states == ["asked"]
    assert (kept.rows[id_].requested_by, kept.rows[id_].state) == ("operator", "asked")
    assert orjson.loads(kept.rows[id_].request.to_json()) == {
        "views": ["sales"],
        "from": "2026-11-01",
        "to": "2026-11-02",
        "stores": ["12"],
        "full": True,
        "wait": False,
        "mode": "preview",
    }


def test_every_recompute_has_an_id_of_its_own() -> None:
    kept = MemoryRecomputes()
    launch = Launch(kept, Taking(kept))

    ids = {launch.start(RecomputeRequest(), "why", "operator") for _ in range(3)}

    assert ids == set(kept.rows)
    assert len(ids) == 3


@pytest.mark.parametrize(
    "error", [DependencyUnavailableError("it is down", do="galatea status"), OperatorError("no", do="mend it")]
)
def test_one_that_nobody_takes_has_failed_and_says_why(error: GalateaError) -> None:
    kept = MemoryRecomputes()

    with pytest.raises(type(error)):
        Launch(kept, Taking(kept, error)).start(RecomputeRequest(), "why", "operator")

    [record] = kept.rows.values()
    assert (record.state, record.problem) == (
        "failed",
        Problem(error.code, error.message, error.do),
    )


@pytest.mark.parametrize("failure", [OperationTimedOut(), NoHostAvailable("none", {})])
def test_one_that_cannot_be_written_down_is_refused_and_not_handed_over(failure: Exception) -> None:
    class Silent(MemoryRecomputes):
        """The store does not answer."""

        def create(self, recompute: Recompute) -> None:
            assert recompute.state == "asked"
            raise failure

    taking = Taking(Silent())

    with pytest.raises(CassandraUnavailableError):
        Launch(taking.kept, taking).start(RecomputeRequest(), "why", "operator")

    assert taking.states == []


def test_airflow_takes_it_wherever_there_is_one_even_if_it_refuses() -> None:
    kept = MemoryRecomputes()
    kept.ask("mine")
    requested, airflow, runner = kept.rows["mine"].request, Taking(kept), Taking(kept)
    is_there = True
    trigger = AirflowElseRunner(lambda: airflow if is_there else None, runner)

    trigger.trigger("mine", requested, "a test")
    airflow.refuses = DependencyUnavailableError("it is down", do="galatea status")
    with pytest.raises(DependencyUnavailableError):
        trigger.trigger("mine", requested, "a test")
    is_there = False
    trigger.trigger("mine", requested, "a test")

    assert (len(airflow.states), len(runner.states)) == (2, 1)
