"""What dies is started again, what stops by name stays stopped, and nothing outlives the supervisor."""

import errno
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from deploy.local import supervisor
from deploy.local.component import Component
from deploy.local.records import Records, State, read_states, write_states
from deploy.local.stack import TAKEOVER_SECONDS, components
from deploy.local.supervisor import Supervisor
from deploy.sections import InvalidSettingsError
from deploy.settings import Settings
from master_dataset.errors import CassandraUnavailableError, DiskFullError, OperatorError

RESTARTS = "import time; time.sleep(60)"
DIES_ONCE = """
import pathlib, sys, time
seen = pathlib.Path(sys.argv[1]); first = not seen.exists(); seen.touch(); time.sleep(0.2 if first else 60)
"""
WARNS = "import time; print('WARN unrelated', flush=True); time.sleep(60)"
STOPS_BY_NAME = "import time; time.sleep(0.2); print('topic has 3 partitions'); raise SystemExit(3)"


def component(code: str, *arguments: str, serves: Callable[[], bool] = lambda: True, seconds: float = 20) -> Component:
    command = [sys.executable, "-c", code, *arguments]
    return Component("dummy", lambda: command, serves, start_seconds=seconds, grace_seconds=2)


def look_after_until(running: Supervisor, home: Path, state: str) -> None:
    deadline = time.monotonic() + 20
    running.watch(lambda: read_states(home)["dummy"] == state or time.monotonic() > deadline)
    assert read_states(home)["dummy"] == state


def test_a_component_that_dies_is_started_again(tmp_path: Path) -> None:
    seen: list[str] = []
    dies_once = component(DIES_ONCE, str(tmp_path / "seen"))
    with Supervisor(tmp_path, [dies_once], lambda _name, state, _seconds: seen.append(state)) as running:
        running.start()
        look_after_until(running, tmp_path, State.BACKING_OFF)
        look_after_until(running, tmp_path, State.RUNNING)
    assert seen == ["starting", "running", "backing_off", "starting", "running", "stopped"]


def test_a_restarted_component_that_is_refused_goes_on_and_so_do_the_others(tmp_path: Path) -> None:
    starts: list[int] = []

    def only_once() -> None:
        starts.append(1)
        if len(starts) > 1:
            raise OperatorError("a newer release has applied a migration", do="upgrade")

    both = [replace(component(DIES_ONCE, str(tmp_path / "seen")), once_ready=only_once), component(RESTARTS)]
    both[1] = replace(both[1], name="other")

    with Supervisor(tmp_path, both) as running:
        running.start()
        look_after_until(running, tmp_path, State.BACKING_OFF)
        look_after_until(running, tmp_path, State.RUNNING)
        assert read_states(tmp_path)["other"] == State.RUNNING

    assert "a newer release has applied a migration. Next: upgrade" in both[0].log(tmp_path).read_text()


def test_only_a_component_that_may_sleep_longer_does(tmp_path: Path) -> None:
    own = Path("/proc/self/timerslack_ns")
    code = f"print('slack', open('{own}').read(), flush=True); {RESTARTS}" if own.exists() else RESTARTS
    sleeper = component(code)
    both = [replace(sleeper, name="slow", timer_slack=timedelta(milliseconds=1)), replace(sleeper, name="other")]

    with Supervisor(tmp_path, both) as running:
        running.start()
        deadline = time.monotonic() + 20
        while own.exists() and time.monotonic() < deadline and not all(each.log(tmp_path).read_text() for each in both):
            time.sleep(0.05)

    slow, other = (each.log(tmp_path).read_text() for each in both)
    assert slow == ("slack 1000000\n\n" if own.exists() else "")
    assert other != slow or not own.exists()


def test_a_component_that_was_killed_is_started_again_where_nobody_watches(tmp_path: Path) -> None:
    records = Records(tmp_path)
    with Supervisor(tmp_path, [component(RESTARTS)]) as running:
        running.start()
        first = records.pid("dummy")
        assert first is not None
        psutil.Process(first).kill()
        running.restart("dummy")
        second = records.pid("dummy")
        assert second not in {first, None}
    assert records.pid("dummy") is None


def test_an_early_component_starts_before_those_of_earlier_stages_and_is_not_waited_for(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    waits = "import time; time.sleep(60)"
    slow = replace(component(waits, serves=lambda: ("dummy", "running") in seen), name="slow", stage=1)
    with Supervisor(tmp_path, [component(waits), slow], lambda name, state, _: seen.append((name, state))) as running:
        running.start(early={"slow"})
        assert seen == [("slow", "starting"), ("dummy", "starting"), ("dummy", "running")]
        running.check()
        assert seen[-1] == ("slow", "running")


def test_a_named_stop_is_not_started_again(tmp_path: Path) -> None:
    with Supervisor(tmp_path, [component(STOPS_BY_NAME)]) as running:
        running.start()
        look_after_until(running, tmp_path, State.FAILED)
        running.check()
        assert read_states(tmp_path)["dummy"] == State.FAILED


def test_a_component_that_cannot_start_is_shown_with_its_last_line(tmp_path: Path) -> None:
    stops = component(STOPS_BY_NAME, serves=lambda: False)
    with (
        pytest.raises(OperatorError, match="dummy ended: topic has 3 partitions"),
        Supervisor(tmp_path, [stops]) as running,
    ):
        running.start()


def started(home: Path, dummy: Component) -> OperatorError:
    with pytest.raises(OperatorError) as refused, Supervisor(home, [dummy]) as running:
        running.start()
    return refused.value


def test_a_component_that_takes_too_long_is_named_with_its_log_and_the_setting_and_not_with_a_warning(
    tmp_path: Path,
) -> None:
    warns = component(WARNS, serves=lambda: False, seconds=1)

    own = started(tmp_path, warns)
    addressed = started(tmp_path, replace(warns, where={"address": "127.0.0.1:9999"}))

    assert own.message == "dummy is not ready after 1 s: it has not reported that it is ready"
    assert addressed.message == "dummy is not ready after 1 s: it does not answer at `127.0.0.1:9999`"
    assert "unrelated" in warns.log(tmp_path).read_text()
    for error in (own, addressed):
        assert "GALATEA_START_SECONDS" in error.do
        assert str(warns.log(tmp_path)) in error.do


REPORTS = {
    "print('operator_error: the disk is full. Next: free some')": ("the disk is full", "free some"),
    "print('bad_setting: GALATEA_X is `1.5.2`. Next: correct it')": ("GALATEA_X is `1.5.2`", "correct it"),
    """print(r'event=process.stopped level=error message="the \\"log\\" is lost." do="galatea doctor"')""": (
        'the "log" is lost',
        "galatea doctor",
    ),
}


@pytest.mark.parametrize("code", REPORTS)
def test_the_error_that_a_process_ended_with_is_shown_once_with_its_next_step(tmp_path: Path, code: str) -> None:
    error = started(tmp_path, component(f"print('WARN unrelated'); {code}; exit(3)", serves=lambda: False))

    assert (error.message, error.do) == (f"dummy ended: {REPORTS[code][0]}", REPORTS[code][1])


def test_the_time_to_start_is_a_setting_of_every_component_and_of_each_node_of_cassandra(tmp_path: Path) -> None:
    seconds = {each.name: each.start_seconds for each in components(Settings(home=tmp_path, start_seconds=77))}
    three = components(Settings(home=tmp_path, start_seconds=77, cassandra_nodes=3))

    assert set(seconds.values()) == {77}
    assert [each.start_seconds for each in three if "cassandra" in each.name] == [3 * 77] * 3
    assert {each.start_seconds for each in components(Settings(home=tmp_path))} == {600}
    for wrong in (0, 9, 7201, "inf"):
        with pytest.raises(InvalidSettingsError, match="GALATEA_START_SECONDS"):
            Settings(start_seconds=wrong)


def test_only_a_process_that_another_one_replaces_waits_before_it_is_started_again(tmp_path: Path) -> None:
    alone = {each.name: each.restart_seconds for each in components(Settings(home=tmp_path))}
    shared = {each.name: each.restart_seconds for each in components(Settings(home=tmp_path, archive_processes=2))}

    assert set(alone.values()) == {0.5}
    assert shared == {**alone, "archive": TAKEOVER_SECONDS, "archive-2": TAKEOVER_SECONDS}


def test_a_second_supervisor_of_one_home_is_refused(tmp_path: Path) -> None:
    with (
        Supervisor(tmp_path, [component(RESTARTS)]),
        pytest.raises(OperatorError, match="already running"),
        Supervisor(tmp_path, [component(RESTARTS)]),
    ):
        pass


def test_nothing_runs_after_the_supervisor_has_left(tmp_path: Path) -> None:
    with Supervisor(tmp_path, [component(RESTARTS)]) as running:
        running.start()
        pid = Records(tmp_path).pid("dummy")
        assert pid is not None
        own = psutil.Process(pid)
        assert own.is_running()
    assert not own.is_running()
    assert list((tmp_path / "run").glob("*.pid.json")) == []


def test_what_cannot_be_started_again_has_failed_and_leaves_the_others_alone(tmp_path: Path) -> None:
    tries: list[int] = []

    def prepare() -> None:
        tries.append(1)
        if len(tries) > 1:
            raise OperatorError("its folder is gone", do="put it back")

    dies_once = replace(component(DIES_ONCE, str(tmp_path / "seen")), prepare=prepare)
    with Supervisor(tmp_path, [dies_once]) as running:
        running.start()
        look_after_until(running, tmp_path, State.FAILED)

    assert "its folder is gone. Next: put it back" in dies_once.log(tmp_path).read_text()


def test_what_finds_no_room_waits_for_it(tmp_path: Path) -> None:
    tries: list[int] = []

    def prepare() -> None:
        tries.append(1)
        if len(tries) == 2:
            raise DiskFullError("there is no room", do="free some")

    dies_once = replace(component(DIES_ONCE, str(tmp_path / "seen")), prepare=prepare)
    with Supervisor(tmp_path, [dies_once]) as running:
        running.start()
        look_after_until(running, tmp_path, State.BACKING_OFF)
        look_after_until(running, tmp_path, State.RUNNING)

    assert len(tries) == 3
    assert "there is no room. Next: free some" in dies_once.log(tmp_path).read_text()


def test_a_supervisor_outlives_a_disk_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_full = False

    def needs_room(write: Callable[..., None]) -> Callable[..., None]:
        def written(*words: object) -> None:
            if is_full:
                raise OSError(errno.ENOSPC, "No space left on device")
            write(*words)

        return written

    monkeypatch.setattr(supervisor, "write_states", needs_room(write_states))
    monkeypatch.setattr(Records, "write", needs_room(Records.write))
    shown: list[str] = []
    show = needs_room(lambda _, state, _seconds: shown.append(state))
    with Supervisor(tmp_path, [component(DIES_ONCE, str(tmp_path / "seen"))], show) as running:
        running.start()

        is_full = True
        deadline = time.monotonic() + 3
        running.watch(lambda: time.monotonic() > deadline)
        nothing_runs = not [each for each in psutil.Process().children() if DIES_ONCE in each.cmdline()]
        is_full = False
        look_after_until(running, tmp_path, State.BACKING_OFF)
        look_after_until(running, tmp_path, State.RUNNING)

    assert shown[-2:] == [State.RUNNING, State.STOPPED]
    assert nothing_runs  # what is not written down is not left to run


def test_what_follows_a_start_waits_for_its_neighbours(tmp_path: Path) -> None:
    calls: list[int] = []

    def once_ready() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise CassandraUnavailableError("the ring has 2 of 3 nodes so far", do="galatea status")

    with Supervisor(tmp_path, [replace(component(RESTARTS), once_ready=once_ready)]) as running:
        running.start()

    assert len(calls) == 3


def test_processes_that_did_not_start_are_reported(tmp_path: Path) -> None:
    def once_ready() -> None:
        raise CassandraUnavailableError("the tables could not be made: line 1:7 mismatched input", do="galatea status")

    stuck = replace(component(RESTARTS), once_ready=once_ready, start_seconds=0.5)
    with Supervisor(tmp_path, [stuck]) as running, pytest.raises(OperatorError, match="mismatched input"):
        running.start()
