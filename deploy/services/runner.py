"""The service runner: logging, readiness, signals and exit codes of every component's process.

Exit codes: 0 stopped, 3 an operator has to act, 75 restart.
"""

import io
import os
import signal
import sys
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from types import FrameType
from typing import Any, TextIO, cast

import structlog

from deploy.local.component import NAMED_STOP
from deploy.local.home import home_error
from deploy.local.records import write_metrics_target
from deploy.process import (
    arm_failpoints,
    freeze_startup_objects,
    protect_process,
    tune_garbage_collection,
)
from deploy.secret_files import secret_of, server_certificate
from deploy.sections import InvalidSettingsError
from deploy.services.metrics_server import MetricsServer
from deploy.services.releases import record_release
from deploy.settings import Settings
from master_dataset import tracing
from master_dataset.errors import GenerationReplacedError, OperatorError, PartitionsOpenedError, ProcessReplacedError
from master_dataset.kafka.client_errors import rejection_in
from master_dataset.registry.hidden_characters import visible

RESTART_ME = 75
_SAFE = (bool, int, float, type(None))
"""Values without text."""

log = structlog.get_logger()


class _Output(io.TextIOBase):
    """Standard output for the log. While its disk is full, lines are lost, and the work goes on."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            sys.stdout.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stdout.flush()


class Process:
    """The process of one component: a child of the supervisor, or of whatever runs `galatea run`."""

    def __init__(self, name: str) -> None:
        """`name` as in `galatea status`."""
        self.name = name
        protect_process()
        self._settings = _settings_or_stop(name)
        self._at_end: list[Callable[[], None]] = []
        self.has_failed = False
        self._is_ready = False

    def ready(self) -> None:
        """Tell the supervisor that this process is ready, and others its release. Once; then a no-op.

        The supervisor reads the pid in `run/<name>.ready`.
        """
        if self._is_ready:
            return
        self._is_ready = True
        freeze_startup_objects()
        (self._settings.home / "run" / f"{self.name}.ready").write_text(str(os.getpid()))
        record_release(self._settings, self.name)

    def at_end(self, work: Callable[[], None]) -> None:
        """Call this before the process ends, unless it is killed. Last first; each has to be done in two seconds."""
        self._at_end.append(work)

    def end_work(self) -> None:
        """Do what `at_end` was given, once. What fails is logged, because the process ends all the same."""
        while self._at_end:
            try:
                self._at_end.pop()()
            except Exception:
                log.exception("process.end_failed", process=self.name)

    def show_metrics(self, port: int) -> None:
        """Serve metrics at `port` or, for 0, any free port, and write the target to `run/`."""
        own = self._settings.metrics
        token = secret_of("GALATEA_METRICS_TOKEN", own.token, own.token_file)
        server = MetricsServer(own.host, port, token=token, certificate=server_certificate(self._settings.tls))
        server.start()
        url = self._settings.url_of(own.host, server.server_port)
        write_metrics_target(self._settings.home, self.name, url)

    def main(self, run: Callable[["Process", Settings], None]) -> None:
        """Run until the end, and exit with the code for the reason, whatever threads are left."""
        is_traced = bool(self._settings.traces.endpoint)
        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso"),
                *([_add_trace] if is_traced else []),
                structlog.processors.format_exc_info,
                write_hidden_out,
                structlog.processors.LogfmtRenderer(bool_as_flag=False),
            ],
            logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _Output())),
        )
        signal.signal(signal.SIGTERM, self._leave)
        tune_garbage_collection()
        arm_failpoints()
        code = RESTART_ME
        try:
            if is_traced:
                from deploy.telemetry.traces import install_traces  # noqa: PLC0415 - needs an extra of the package

                self.at_end(install_traces(self._settings, self.name))
            run(self, self._settings)
            code = 0
        except KeyboardInterrupt:
            code = 0
        except SystemExit as error:  # raised by a library
            self.has_failed = True
            log.exception("process.exited", process=self.name, code=error.code)
        except (GenerationReplacedError, PartitionsOpenedError, ProcessReplacedError) as error:
            log.info("process.restarts", process=self.name, error=error.message)
        except OperatorError as error:
            self.has_failed, code = True, NAMED_STOP
            _say_why(self.name, error)
        except Exception as error:
            self.has_failed = True
            if isinstance(error, OSError) and (unusable := home_error(self._settings.home, error)) is not None:
                code = NAMED_STOP
                _say_why(self.name, unusable)
            else:
                log.exception("process.failed", process=self.name)
                _say_rejected(self.name, error)
        finally:
            self._exit(code)

    def _exit(self, code: int) -> None:
        """End at once: Spark's exit hooks would wait for a stream that has failed, and Python for every thread."""
        try:
            self.end_work()
            _Output().flush()
        finally:
            os._exit(code)

    def _leave(self, _signal: int, _frame: FrameType | None) -> None:
        try:
            self.end_work()
        finally:
            os._exit(0)  # a stream may be killed anywhere: it repeats whatever it had not finished


def _settings_or_stop(name: str) -> Settings:
    """Read the settings; end the process with a sentence if they cannot be used."""
    try:
        return Settings()
    except InvalidSettingsError as error:
        do = "correct the variables, or unset them to use the defaults"
        _say_why(name, OperatorError("; ".join(error.problems), do=do))
    except OperatorError as error:
        _say_why(name, error)
    sys.exit(NAMED_STOP)


def _say_why(name: str, error: OperatorError) -> None:
    log.error("process.stopped", process=name, code=error.code, message=error.message, do=error.do)


def _say_rejected(name: str, error: Exception) -> None:
    if (rejected := rejection_in(str(error))) is not None:  # from Spark
        log.error("process.rejected", process=name, message=rejected.message, do=rejected.do)


def write_hidden_out(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Write hidden characters out, so that no value can steer the terminal that shows the log."""
    return {name: value if isinstance(value, _SAFE) else visible(str(value), "\n") for name, value in event.items()}


def _add_trace(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {**tracing.log_ids(), **event}
