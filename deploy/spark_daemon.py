"""The parent that Spark forks its Python workers from: `python -m deploy.spark_daemon`.

It imports once what the workers need. A fork then begins at once and shares these pages with the others; and as frozen
objects are no garbage, no worker ever walks them again.
"""

import gc

import pyarrow as pa
import pyarrow.compute  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import batch_layer.blocks
import batch_layer.run
import deploy.cassandra
import master_dataset.registry
import speed_layer.query
import speed_layer.receipts
import speed_layer.rows  # noqa: F401

YOUNG_OBJECTS = 50_000
"""A worker makes many small objects that live as long as its batch: Python's 700 would look at them again and again."""

if __name__ == "__main__":
    pa.array([0])  # pyarrow looks for pandas at its first array, and that takes a second
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)
    manager()
