"""The supervisor: starts the components in order, restarts those that die, and stops everything at the end."""

import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Self

from deploy.local.component import NAMED_STOP, Component
from deploy.local.home import SUPERVISED, make_folder
from deploy.local.ports import check_free
from deploy.local.records import Records, State, write_states
from deploy.local.reported_errors import last_line, reported_error
from deploy.process import timer_slack
from master_dataset.errors import DependencyUnavailableError, DiskFullError, OperatorError

LONGEST_WAIT_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A component that ran this long has recovered: its next restart waits as little as the first."""
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

SUPERVISOR = "supervisor"
StateListener = Callable[[str, State, float], None]
"""Called with component, state and seconds since its start whenever a state changes."""


@dataclass
class Child:
    """A component, its process and its state."""

    component: Component
    process: subprocess.Popen[bytes] | None = None
    state: State = State.STOPPED
    started: float = 0.0
    again_at: float = 0.0
    wait_seconds: float = 0.0  # before its last start; 0: it has not been restarted


class Supervisor:
    """Runs the components of one home; a lock keeps a second one out. As a context manager it stops all in the end."""

    def __init__(
        self,
        home: Path,
        components: Iterable[Component],
        on_change: StateListener = lambda _name, _state, _seconds: None,
        once_locked: Callable[[], None] = lambda: None,
    ) -> None:
        """Start nothing yet.

        Args:
            home: Of the stack.
            components: In the order in which they start.
            on_change: Is called with every change of state.
            once_locked: Is called when no other supervisor can have this home.
        """
        self._home, self._on_change, self._once_locked = home, on_change, once_locked
        self._children = [Child(component) for component in components]
        self._records = Records(home)
        self._lock: IO[str] | None = None
        self._is_unwritten = False

    def __enter__(self) -> Self:
        """Take the lock, and end what a killed supervisor has left."""
        make_folder(self._home, self._home / "logs")
        self._lock = (self._home / "run" / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            message = f"a stack is already running in `{self._home}`"
            raise OperatorError(message, do="galatea status, or galatea down") from error
        try:
            self._once_locked()
            end_orphans(self._home, [child.component for child in self._children])
            self._records.write(SUPERVISOR, os.getpid())
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop in reverse order. No process is left, however often Ctrl-C is pressed."""
        with uninterrupted():
            self.stop()

    def start(self, unawaited: Collection[str] = (), early: Collection[str] = ()) -> None:
        """Start all components, stage by stage, and wait until each is ready.

        Args:
            unawaited: Names of components that are not waited for; `watch` sees to them.
            early: Names of components that are started before all others, and not waited for either.

        Raises:
            OperatorError: A port is taken, or a component does not become ready in time, or it ends.
        """
        for child in self._children:
            check_free(child.component.name, child.component.ports, child.component.host)
        self._write_states()
        for child in self._children:
            if child.component.name in early:
                self._start(child)
        for _, stage in groupby(self._children, lambda child: child.component.stage):
            children = [child for child in stage if child.component.name not in early]
            for child in children:
                self._start(child)
            for child in children:
                if child.component.name not in unawaited:
                    self._await(child)

    def restart(self, name: str) -> None:
        """Start a component of this name that has ended, without `watch`, and wait until it is ready. OperatorError."""
        for child in self._children:
            if child.component.name == name and child.process is not None:
                child.process.wait()
                self._start(child)
                self._await(child)

    def watch(self, until: Callable[[], bool]) -> None:
        """Restart what dies, with back-off, until `until` says so."""
        while not until():
            self.check()
            time.sleep(0.2)

    def check(self) -> None:
        """Do one round of `watch`."""
        if self._is_unwritten:
            self._write_states()
        for child in self._children:
            self._check(child)

    def stop(self) -> None:
        """End every component's session, the last stage first. Safe to call twice."""
        for _, stage in groupby(reversed(self._children), lambda child: child.component.stage):
            children = list(stage)
            with ThreadPoolExecutor(len(children)) as pool:
                list(pool.map(self._end, children))
            for child in children:
                self._set(child, State.STOPPED)
        self._records.forget(SUPERVISOR)
        if self._lock is not None:
            self._lock.close()

    def _end(self, child: Child) -> None:
        self._records.end(child.component.name, child.component.grace_seconds)
        if child.process is not None:
            child.process.wait()

    def _start(self, child: Child) -> None:
        component = child.component
        component.prepare()
        environment = {**os.environ, **component.environment, "GALATEA_HOME": str(self._home), SUPERVISED: "1"}
        command = component.command()
        with component.log(self._home).open("ab") as log, uninterrupted(), timer_slack(component.timer_slack):
            child.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
            self._record(component.name, child.process)
        child.started = time.monotonic()
        self._set(child, State.STARTING)

    def _record(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Record a process, or kill it: a later command would not find one without a record."""
        try:
            self._records.write(name, process.pid)
        except OSError:
            process.kill()
            process.wait()
            raise

    def _await(self, child: Child) -> None:
        component = child.component
        while missing := _not_ready(component):
            if child.process is not None and child.process.poll() is not None:
                self._set(child, State.FAILED)
                raise self._ended(component)
            if time.monotonic() - child.started > component.start_seconds:
                self._set(child, State.FAILED)
                message = f"{component.name} is not ready after {component.start_seconds:.0f} s: {missing}"
                do = f"read `{component.log(self._home)}`; if it only needs longer, raise GALATEA_START_SECONDS"
                raise OperatorError(message, do=do)
            time.sleep(0.1)
        self._set(child, State.RUNNING)

    def _ended(self, component: Component) -> OperatorError:
        """The error of a process that ended before it was ready: the one that it reported, if it did."""
        log = component.log(self._home)
        if (reported := reported_error(log)) is not None:
            return OperatorError(f"{component.name} ended: {reported.message}", do=reported.do)
        return OperatorError(f"{component.name} ended: {last_line(log)}", do=f"read `{log}`, or galatea doctor")

    def _check(self, child: Child) -> None:
        if child.state in (State.RUNNING, State.STARTING) and child.process is not None:
            code = child.process.poll()
            if code is not None:
                self._died(child, code)
            elif child.state == State.STARTING and self._is_ready(child):
                self._set(child, State.RUNNING)
        elif child.state == State.BACKING_OFF and time.monotonic() >= child.again_at:
            self._restart(child)

    def _is_ready(self, child: Child) -> bool:
        """Whether one that was started again serves. If `once_ready` is refused, it goes on as before it ended."""
        try:
            return not _not_ready(child.component)
        except OperatorError as error:
            self._log(child, f"{error.message}. Next: {error.do}")
            return True

    def _restart(self, child: Child) -> None:
        """Restart it. If it cannot start, an operator has to act, unless the disk is full; the others go on."""
        try:
            self._start(child)
        except OSError as error:
            self._log(child, str(error))
            self._wait(child)
        except OperatorError as error:
            self._log(child, f"{error.message}. Next: {error.do}")
            if isinstance(error, DiskFullError):
                self._wait(child)
            else:
                self._set(child, State.FAILED)

    def _log(self, child: Child, why: str) -> None:
        """Write to the component's log, which may be on the full disk."""
        with suppress(OSError), child.component.log(self._home).open("a") as log:
            log.write(f"{why}\n")

    def _died(self, child: Child, code: int) -> None:
        self._records.end(child.component.name, 0)
        if code == NAMED_STOP:
            self._set(child, State.FAILED)
            return
        if time.monotonic() - child.started > STEADY_SECONDS:
            child.wait_seconds = 0.0
        self._wait(child)

    def _wait(self, child: Child) -> None:
        child.wait_seconds = min(2 * child.wait_seconds or child.component.restart_seconds, LONGEST_WAIT_SECONDS)
        child.again_at = time.monotonic() + child.wait_seconds
        self._set(child, State.BACKING_OFF)

    def _set(self, child: Child, state: State) -> None:
        child.state = state
        seconds = time.monotonic() - child.started if child.started else 0.0
        self._write_states()
        with suppress(OSError):  # the callback may write to the full disk
            self._on_change(child.component.name, state, seconds)

    def _write_states(self) -> None:
        """Write the states. If the disk is full, the next round tries again."""
        try:
            write_states(self._home, {each.component.name: each.state for each in self._children})
        except OSError:
            self._is_unwritten = True
        else:
            self._is_unwritten = False


def _not_ready(component: Component) -> str:
    """Say why a component is not ready: it does not serve, or `once_ready` fails. Empty if it is ready."""
    if not component.serves():
        where = " ".join(component.where.values())
        return f"it does not answer at `{where}`" if where else "it has not reported that it is ready"
    try:
        component.once_ready()
    except DependencyUnavailableError as error:
        return error.message
    return ""


def end_orphans(home: Path, components: Sequence[Component]) -> list[str]:
    """End recorded processes that have no supervisor any more, last first. Return the names of those that still ran."""
    records = Records(home)
    order = [component.name for component in components]
    names = sorted(records.names(), key=lambda name: order.index(name) if name in order else -1, reverse=True)
    found = []
    for name in names:
        if records.session(name):
            found.append(name)
        records.end(name, next((each.grace_seconds for each in components if each.name == name), 5))
    return found


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C, SIGTERM and SIGHUP until the block is done, then deliver the first that came.

    Otherwise a process could be left that no record names. Python runs handlers in the main thread only, so in another
    thread there is nothing to defer. The signals are not blocked in the kernel, because children would inherit that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def keep(number: int, _frame: FrameType | None) -> None:
        caught.append(number)

    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    try:
        for number in ENDING_SIGNALS:
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, keep)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            os.kill(os.getpid(), caught[0])
