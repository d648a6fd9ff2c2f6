"""The service runner: logging, readiness, signals and exit codes of every component's process.

Exit codes: 0 stopped, 3 an operator has to act, 75 restart.
"""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

import structlog

from deploy.local.component import NAMED_STOP
from deploy.local.records import write_metrics_target
from deploy.process import arm_failpoints, freeze_startup_objects, tune_garbage_collection
from deploy.secret_files import secret_of, server_certificate
from deploy.services.metrics_server import MetricsServer
from deploy.settings import Settings
from master_dataset.errors import GenerationReplacedError, OperatorError
from master_dataset.kafka.client_errors import rejection_in

RESTART_ME = 75

log = structlog.get_logger()


class Process:
    """The process of one component: a child of the supervisor, or of whatever runs `galatea run`."""

    def __init__(self, name: str) -> None:
        """`name` as in `galatea status`."""
        self._name = name
        self._settings = Settings()

    def ready(self) -> None:
        """Tell the supervisor that this process is ready: write its pid to `run/<name>.ready`."""
        freeze_startup_objects()
        (self._settings.home / "run" / f"{self._name}.ready").write_text(str(os.getpid()))

    def show_metrics(self, port: int) -> None:
        """Serve metrics at `port` or, for 0, any free port, and write the target to `run/`."""
        own = self._settings.metrics
        token = secret_of("GALATEA_METRICS_TOKEN", own.token, own.token_file)
        server = MetricsServer(own.host, port, token=token, certificate=server_certificate(self._settings.tls))
        server.start()
        url = self._settings.url_of(own.host, server.server_port)
        write_metrics_target(self._settings.home, self._name, url)

    def main(self, run: Callable[["Process", Settings], None]) -> None:
        """Run until the end, and exit with the code for the reason."""
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso"),
                structlog.processors.format_exc_info,
                structlog.processors.LogfmtRenderer(bool_as_flag=False),
            ]
        )
        signal.signal(signal.SIGTERM, _leave)
        tune_garbage_collection()
        arm_failpoints()
        try:
            run(self, self._settings)
        except GenerationReplacedError as error:
            log.info("process.replaced", process=self._name, message=error.message)
            self._exit(RESTART_ME)
        except OperatorError as error:
            log.error("process.stopped", process=self._name, code=error.code, message=error.message, do=error.do)  # noqa: TRY400 - the sentence is enough
            self._exit(NAMED_STOP)
        except Exception as error:
            log.exception("process.failed", process=self._name)
            if (rejected := rejection_in(str(error))) is not None:  # from Spark
                log.error("process.rejected", process=self._name, message=rejected.message, do=rejected.do)  # noqa: TRY400 - said above
            self._exit(RESTART_ME)

    def _exit(self, code: int) -> None:
        sys.stdout.flush()
        os._exit(code)  # Spark's exit hooks would wait for a stream that has failed


def _leave(_signal: int, _frame: FrameType | None) -> None:
    os._exit(0)  # a stream may be killed anywhere: it repeats whatever it had not finished
