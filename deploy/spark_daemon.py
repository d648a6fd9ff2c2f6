"""The process that Spark forks its Python workers from: `python -m deploy.spark_daemon`.

It imports what the workers need once. A fork then starts immediately and shares these pages with the others; garbage
collection never scans frozen objects.
"""

from importlib import import_module

import pyarrow as pa
from pyspark.daemon import manager

from deploy.process import arm_failpoints, freeze_startup_objects, tune_garbage_collection

NEEDED = (
    "pyarrow.compute",
    "pyspark.worker",
    "batch_layer.blocks",
    "batch_layer.run",
    "deploy.cassandra",
    "master_dataset.delta.data_files",
    "master_dataset.registry.registry",
    "speed_layer.micro_batch",
    "speed_layer.stream",
    "speed_layer.receipts",
    "speed_layer.titles",
)
"""Imported by the functions that Spark runs in its workers."""

if __name__ == "__main__":
    for name in NEEDED:
        import_module(name)
    pa.array([0])  # pyarrow looks for pandas at its first array, and that takes a second
    freeze_startup_objects()
    tune_garbage_collection()
    arm_failpoints()
    manager()
