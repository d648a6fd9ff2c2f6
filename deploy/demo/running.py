"""The local stack while the demo runs on it: a thread keeps looking after the components."""

import threading
from types import TracebackType
from typing import Self

from deploy.settings import Settings
from deploy.stack.stack import supervisor
from deploy.stack.supervisor import Supervisor, Told

ROUND_SECONDS = 0.2


class RunningStack:
    """Use as a context manager: started when it is entered, and no process is left when it is left."""

    def __init__(self, settings: Settings, told: Told) -> None:
        """`told` as for the supervisor; it is called from another thread once all has started."""
        self._supervisor: Supervisor = supervisor(settings, told=told)
        self._ended = threading.Event()
        self._carer = threading.Thread(target=self._look_after, name="look-after", daemon=True)

    def __enter__(self) -> Self:
        """Start all. OperatorError if a component does not start."""
        self._supervisor.__enter__()
        try:
            self._supervisor.start()
        except BaseException:
            self._supervisor.stop()
            raise
        self._carer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop looking after them first: nothing may start again what is being stopped."""
        self._ended.set()
        self._carer.join()
        self._supervisor.__exit__(kind, error, trace)

    def wait(self) -> None:
        """Wait until a signal raises out of here."""
        while not self._ended.wait(1):
            pass

    def _look_after(self) -> None:
        while not self._ended.wait(ROUND_SECONDS):
            self._supervisor.look_after()
