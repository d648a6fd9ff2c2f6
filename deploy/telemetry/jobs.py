"""The lineage of commands and of the archive. OpenLineage is imported only if GALATEA_LINEAGE_CONFIG_FILE is set."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deploy.telemetry.datasets import RunDatasets, archived_datasets
from deploy.telemetry.export_queue import LEAVE_SECONDS
from master_dataset.errors import GalateaError

if TYPE_CHECKING:
    from deploy.settings import Settings
    from deploy.telemetry.lineage import Lineage
    from master_dataset.archive.archive import ArchiveMonitor
    from master_dataset.kafka.partition_progress import Progress
    from master_dataset.source import Source


class JobDatasets:
    """What a job reports when it has ended. `describe` is called then, also after a failure."""

    def __init__(self) -> None:
        """Nothing so far."""
        self.describe: Callable[[], RunDatasets] = RunDatasets


@contextmanager
def lineage_of_job(settings: "Settings", job: str, *, group: str = "") -> Iterator[JobDatasets]:
    """Send START now, and COMPLETE, FAIL or ABORT when the block ends.

    Args:
        settings: Of the deployment; without a configuration of lineage, nothing is sent.
        job: Name of the job.
        group: Id of the recompute that this is an attempt at.

    Raises:
        OperatorError: The configuration cannot be used; the block has not begun.
    """
    found = JobDatasets()
    if not settings.lineage.config_file:
        yield found
        return
    from deploy.telemetry.lineage import Lineage, LineageRun  # noqa: PLC0415 - needs an extra of the package

    lineage = Lineage.of(settings)
    run = LineageRun(lineage, job, group=group)
    run.emit("START")
    try:
        yield found
    except GalateaError as error:
        run.emit("FAIL", found.describe(), error.code)
        raise
    except Exception as error:
        run.emit("FAIL", found.describe(), type(error).__name__)
        raise
    except BaseException as error:
        run.emit("ABORT", found.describe(), type(error).__name__)
        raise
    else:
        run.emit("COMPLETE", found.describe())
    finally:
        lineage.close()


class ArchiveLineage:
    """An `ArchiveMonitor` that reports what is archived: a run per source and process, a RUNNING event per period."""

    def __init__(
        self,
        settings: "Settings",
        lineage: "Lineage",
        sources: Sequence["Source[Any]"],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Send START for every source."""
        from deploy.telemetry.lineage import LineageRun  # noqa: PLC0415 - as above

        self._settings, self._lineage, self._clock = settings, lineage, clock
        self._sources = {source.topic: source for source in sources}
        self._since: dict[str, list[Progress]] = {topic: [] for topic in self._sources}
        period = round(settings.lineage.seconds)
        self._runs = {topic: LineageRun(lineage, f"archive.{topic}", period_seconds=period) for topic in self._sources}
        self._due = dict.fromkeys(self._sources, float("-inf"))
        for run in self._runs.values():
            run.emit("START")

    def on_batch(self, topic: str, progress: "Progress", *, repeats: bool) -> None:  # noqa: ARG002 - of the protocol
        """Note a micro-batch, and report all since the last report if it is time."""
        self._since[topic].append(progress)
        if self._clock() >= self._due[topic]:
            self._due[topic] = self._clock() + self._settings.lineage.seconds
            self._runs[topic].emit("RUNNING", self._reported(topic))

    def end(self, *, has_failed: bool) -> None:
        """Report the rest with COMPLETE or FAIL. A killed process sends none, and the next one starts other runs."""
        for topic, run in self._runs.items():
            run.emit("FAIL" if has_failed else "COMPLETE", self._reported(topic))
        self._lineage.close(LEAVE_SECONDS)

    def _reported(self, topic: str) -> RunDatasets:
        found, self._since[topic] = self._since[topic], []
        return archived_datasets(self._settings, self._sources[topic], found)


class ArchiveMonitors:
    """Several monitors of the archive as one."""

    def __init__(self, *monitors: "ArchiveMonitor") -> None:
        """`monitors`: notified in this order."""
        self._monitors = monitors

    def on_batch(self, topic: str, progress: "Progress", *, repeats: bool) -> None:
        """See `ArchiveMonitor`."""
        for each in self._monitors:
            each.on_batch(topic, progress, repeats=repeats)
