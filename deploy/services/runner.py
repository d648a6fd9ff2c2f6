"""The outermost edge of a component's process: logs, readiness, signals, exit codes.

Exit codes: 0 told to stop, 3 a named stop that an operator has to look at, 75 restart me.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

import structlog
from prometheus_client import start_http_server

from deploy.local.nodes import LOOPBACK
from deploy.local.records import write_metrics_target
from deploy.process import arm_if_asked, look_no_more_at_these, look_seldom
from deploy.settings import Settings
from master_dataset.errors import GenerationReplacedError, OperatorError

NAMED_STOP = 3
RESTART_ME = 75
COLLECTED_SECONDS = 10.0
"""How long who collects metrics may be silent: each has a thread of its own."""

log = structlog.get_logger()


class Process:
    """One component, run as a child of the supervisor."""

    def __init__(self, name: str) -> None:
        """`name` as in `galatea status`."""
        self._name = name
        self._settings = Settings()

    def ready(self) -> None:
        """Tell the supervisor that this process serves: its pid in `run/<name>.ready`."""
        look_no_more_at_these()
        (self._settings.home / "run" / f"{self._name}.ready").write_text(str(os.getpid()))

    def show_metrics(self, port: int) -> None:
        """Answer Prometheus on this machine, at this port or, for 0, one that is free; say where in `run/`."""
        server, _ = start_http_server(port, LOOPBACK)
        server.RequestHandlerClass.timeout = COLLECTED_SECONDS  # type: ignore[attr-defined]  # as socketserver has it
        write_metrics_target(self._settings.home, self._name, server.server_port)

    def main(self, run: Callable[["Process", Settings], None]) -> None:
        """Run until the end and leave with an exit code that says what it was."""
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso"),
                structlog.processors.format_exc_info,
                structlog.processors.LogfmtRenderer(bool_as_flag=False),
            ]
        )
        signal.signal(signal.SIGTERM, _leave)
        look_seldom()
        arm_if_asked()
        try:
            run(self, self._settings)
        except GenerationReplacedError as error:
            log.info("process.replaced", process=self._name, message=error.message)
            self._exit(RESTART_ME)
        except OperatorError as error:
            log.error("process.stopped", process=self._name, code=error.code, message=error.message, do=error.do)  # noqa: TRY400 - the sentence says it all
            self._exit(NAMED_STOP)
        except Exception:
            log.exception("process.failed", process=self._name)
            self._exit(RESTART_ME)

    def _exit(self, code: int) -> None:
        sys.stdout.flush()
        os._exit(code)  # Spark's own exit hooks would wait for a stream that has failed


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os._exit(0)  # a stream is safe to cut anywhere; what it had not finished it does again
