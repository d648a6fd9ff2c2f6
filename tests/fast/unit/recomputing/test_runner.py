"""The runner of the api process does one recompute after another and lets none end in silence."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from threading import Event

import psutil
import pytest

from deploy import recompute_runner as runner_file
from deploy.recompute_runner import Runner, rebuild_command
from master_dataset.errors import OperatorError
from serving_layer.errors import TooBusyError
from tests.fast.unit.recomputing.memory_recomputes import REQUEST, MemoryRecomputes
from views.control.recompute import Problem, Recompute, RecomputeRequest

Command = Callable[[Recompute], Sequence[str]]


def python(code: str) -> Command:
    """A command that says the id, then runs the code."""
    return lambda recompute: [sys.executable, "-c", f"print('{recompute.id}', flush=True)\n{code}"]


def runner_of(kept: MemoryRecomputes, home: Path, command: Command) -> Runner:
    return Runner(kept, home, {"GALATEA_HOME": str(home)}, command)


def done(runner: Runner, *ids: str) -> None:
    for id_ in ids:
        runner.trigger(id_, REQUEST, "a test")
    runner.wait()


def problem_of(recompute: Recompute) -> Problem:
    assert recompute.problem
    return recompute.problem


def left(home: Path) -> str:
    return (home / "run" / "recomputes.json").read_text()


def test_the_command_is_a_list_in_which_no_value_is_taken_for_an_option() -> None:
    kept = MemoryRecomputes()
    request = RecomputeRequest(
        ("sales",), date(2026, 11, 1), date(2026, 11, 2), ("--full", "a b"), full=True, mode="preview"
    )
    kept.ask("mine", request=request)

    assert rebuild_command(kept.find("mine"))[1:] == [
        "-m",
        "galatea.cli.main",
        "rebuild",
        "sales",
        "--from=2026-11-01",
        "--to=2026-11-02",
        "--store=--full",
        "--store=a b",
        "--full",
        "--dry-run",
        "--id=mine",
        "--why=a test",
        "--by=operator",
        "--json",
    ]


def test_the_command_line_understands_the_command() -> None:
    kept = MemoryRecomputes()
    kept.ask("mine", request=RecomputeRequest(("no_such_view",), stores=("--full",), mode="preview"))

    said = subprocess.run(rebuild_command(kept.find("mine")), capture_output=True, text=True, check=False)

    assert said.returncode == 2
    assert said.stderr.startswith("unknown_name: ")


def test_recomputes_are_done_one_after_another_and_what_they_say_is_in_the_log(tmp_path: Path) -> None:
    kept = MemoryRecomputes()
    for id_ in ("first", "second"):
        kept.ask(id_)
    runner = runner_of(kept, tmp_path, python("import time; time.sleep(0.1); print('done')"))

    done(runner, "first", "second")

    assert (tmp_path / "logs" / "recompute.log").read_text().split() == ["first", "done", "second", "done"]
    assert left(tmp_path) == "[]"


def test_a_child_has_the_settings_and_nothing_on_its_input(tmp_path: Path) -> None:
    kept = MemoryRecomputes()
    kept.ask("mine")
    code = "import os, sys; print(os.environ['GALATEA_HOME'], repr(sys.stdin.read()))"

    done(runner_of(kept, tmp_path, python(code)), "mine")

    assert (tmp_path / "logs" / "recompute.log").read_text().split() == ["mine", str(tmp_path), "''"]


@pytest.mark.parametrize("state", ["asked", "planning", "computing", "computed"])
def test_one_whose_process_ends_before_it_has_failed(tmp_path: Path, state: str) -> None:
    kept = MemoryRecomputes()
    kept.ask("mine", state)  # type: ignore[arg-type]

    done(runner_of(kept, tmp_path, python("import os; os.kill(os.getpid(), 9)")), "mine")

    found = kept.find("mine")
    assert (found.state, problem_of(found).code) == ("failed", "recompute_interrupted")
    assert problem_of(found).message == (
        f"The process of recompute `mine` ended with exit code -9 while it was `{state}`."
    )
    assert problem_of(found).do.endswith("galatea rebuild --id mine")


@pytest.mark.parametrize("state", ["published", "previewed", "unchanged", "failed"])
def test_one_that_says_itself_what_became_of_it_is_left_alone(tmp_path: Path, state: str) -> None:
    kept = MemoryRecomputes()
    kept.ask("mine", state)  # type: ignore[arg-type]
    before = kept.find("mine")

    done(runner_of(kept, tmp_path, python("raise SystemExit(1)")), "mine")

    assert kept.find("mine") == before


def test_so_many_wait_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_file, "AT_MOST", 2)
    kept = MemoryRecomputes()
    for id_ in ("first", "second", "third"):
        kept.ask(id_)
    wait = f"import os, time\nwhile not os.path.exists('{tmp_path}/go'): time.sleep(0.01)"
    runner = runner_of(kept, tmp_path, python(wait))

    runner.trigger("first", REQUEST, "a test")
    runner.trigger("second", REQUEST, "a test")
    with pytest.raises(TooBusyError):
        runner.trigger("third", REQUEST, "a test")
    (tmp_path / "go").touch()
    runner.wait()
    done(runner, "third")

    assert (tmp_path / "logs" / "recompute.log").read_text().split() == ["first", "second", "third"]


def test_one_that_cannot_be_written_down_is_not_taken(tmp_path: Path) -> None:
    kept = MemoryRecomputes()
    kept.ask("mine")
    runner = runner_of(kept, tmp_path, python("pass"))
    (tmp_path / "run" / "recomputes.json.part").mkdir()

    with pytest.raises(OperatorError, match="no recompute is accepted"):
        runner.trigger("mine", REQUEST, "a test")

    runner.wait()
    assert not (tmp_path / "logs" / "recompute.log").exists()


def test_what_a_process_before_has_left_is_failed_and_not_begun_again(tmp_path: Path) -> None:
    kept = MemoryRecomputes()
    kept.ask("running", "computing")
    kept.ask("waiting")
    kept.ask("ended", "published")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recomputes.json").write_text('["ended", "running", "waiting", "of nobody"]')
    runner = runner_of(kept, tmp_path, python("pass"))

    runner.start()
    runner.wait()

    assert {id_: row.state for id_, row in kept.rows.items()} == {
        "running": "failed",
        "waiting": "failed",
        "ended": "published",
    }
    assert "stopped together with the service" in problem_of(kept.find("waiting")).message
    assert left(tmp_path) == "[]"
    assert not (tmp_path / "logs" / "recompute.log").exists()


class Unreachable(MemoryRecomputes):
    """Does not answer the first `times` questions."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.asked, self._times = Event(), times

    def find(self, id_: str) -> Recompute:
        self.asked.set()
        self._times -= 1
        if self._times >= 0:
            raise OSError("no answer")
        return super().find(id_)


def test_a_recompute_is_run_and_settled_when_its_record_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_file, "RETRY_SECONDS", 0.01)
    kept = Unreachable(3)
    kept.ask("mine")
    runner = runner_of(kept, tmp_path, python("print('done')"))

    done(runner, "mine")

    assert (tmp_path / "logs" / "recompute.log").read_text().split() == ["mine", "done"]
    assert (left(tmp_path), kept.find("mine").state, runner.is_busy) == ("[]", "failed", False)


def test_what_cannot_be_read_until_the_service_stops_is_settled_by_the_next_start(tmp_path: Path) -> None:
    kept = Unreachable(1)
    kept.ask("mine")
    runner = runner_of(kept, tmp_path, python("pass"))
    runner.trigger("mine", REQUEST, "a test")
    assert kept.asked.wait(60)

    runner.stop()
    before = left(tmp_path)
    again = runner_of(kept, tmp_path, python("pass"))
    again.start()
    again.wait()

    assert (before, left(tmp_path), kept.find("mine").state) == ('["mine"]', "[]", "failed")


def test_it_ends_what_is_under_way_with_its_children_and_begins_no_other(tmp_path: Path) -> None:
    kept = MemoryRecomputes()
    for id_ in ("first", "second"):
        kept.ask(id_)
    says = tmp_path / "child"
    os.mkfifo(says)
    begin = "import subprocess; child = subprocess.Popen(['sleep', '600'])"
    code = f"{begin}; open('{says}', 'w').write(str(child.pid)); child.wait()"
    runner = runner_of(kept, tmp_path, python(code))
    runner.trigger("first", REQUEST, "a test")
    runner.trigger("second", REQUEST, "a test")
    child = psutil.Process(int(says.read_text()))

    runner.stop()

    child.wait(10)
    assert "second" not in (tmp_path / "logs" / "recompute.log").read_text()
    assert "second" in left(tmp_path)
