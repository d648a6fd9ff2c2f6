"""What Spark's executors on a cluster are given. In local mode there are none, and nothing of it applies.

Jars come from the driver (`spark.jars`). Python and this package have to be on the workers:
see docs/how-to/spark-cluster.md.
"""

import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from deploy.local.nodes import LOOPBACK
from master_dataset.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deploy.settings import Settings

ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Java options of every process that hands rows to Python: Spark itself writes in bounds."""
_IN_THIS_PROCESS = re.compile(r"local(\[.*\])?")


def on_cluster(settings: "Settings") -> bool:
    """Whether the Spark master has executors in other processes."""
    return not _IN_THIS_PROCESS.fullmatch(settings.spark_master)


def executor_options(settings: "Settings") -> "Mapping[str, str]":
    """Spark's options for the executors; none in local mode."""
    if not on_cluster(settings):
        return {}
    cores = str(settings.spark_cores)
    return {
        "spark.cores.max": cores,  # applications share a standalone cluster, and each would take it whole
        "spark.default.parallelism": cores,  # else as many as have registered when a stream begins
        "spark.executor.memory": f"{settings.spark_executor_memory_mb}m",
        "spark.executor.defaultJavaOptions": ARROW,  # `extraJavaOptions` stays free for `spark-defaults.conf`
        "spark.executorEnv.MALLOC_ARENA_MAX": "2",
    }


def further_options(settings: "Settings", own: "Mapping[str, str]") -> "Mapping[str, str]":
    """GALATEA_SPARK_CONF. OperatorError if it names one of our own, on which numbers or other settings rest."""
    for name in (name for name in settings.spark_conf if name in own):
        message = f"GALATEA_SPARK_CONF names `{name}`, which Galatea sets to `{own[name]}` itself"
        raise OperatorError(message, do="leave it out; docs/reference/settings.md lists what can be chosen")
    return settings.spark_conf


def executor_python(settings: "Settings") -> str:
    """The Python that executors start; of a local master the one that runs here."""
    return (on_cluster(settings) and settings.spark_python) or sys.executable


def driver_host(settings: "Settings") -> str:
    """What a driver listens on: loopback as long as nobody else has to reach it; "" leaves the choice to Spark."""
    first = urlsplit(settings.spark_master.split(",", 1)[0])
    if not on_cluster(settings):
        return LOOPBACK
    return settings.spark_driver_host or (LOOPBACK if first.hostname in {LOOPBACK, "localhost"} else "")
