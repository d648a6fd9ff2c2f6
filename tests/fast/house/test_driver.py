"""A Spark driver is given places, counts and positions, never the cells of a view: what brings it rows stands here."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.fast.house.tree import named, product, tree

BRINGS_ROWS = {"collect", "collectAsList", "head", "tail", "toArrow", "toLocalIterator", "toPandas"}
NOT_OF_SPARK = {"gc"}
BOUNDED = {
    "batch_layer/computed.py": 1,  # (store, day) of the blocks that workers have written, and what they add up to
    "batch_layer/deliveries.py": 3,  # days on which a hash is there twice; two numbers; one row of three counts
    "batch_layer/ledger/events.py": 2,  # (store, day) of events that did not wait; (store, month) and its totals
    "deploy/batch.py": 1,  # one number, so that the first Python worker is there
    "batch_layer/verify/verification.py": 2,  # (view, store, day) that speed shows; (store, day), counts, and totals
    "master_dataset/archive/data_writer.py": 1,  # data files that were written; how far each partition was read
    "master_dataset/delta/tables.py": 2,  # data files that were written; when the first and last record were received
    "speed_layer/stream.py": 2,  # a row per task and partition: how far it was read; sightings of a micro-batch
    "speed_layer/visits.py": 1,  # sightings of the hours that may be part of an open visit
}
"""File to how often it brings rows to the driver."""


def calls() -> Iterator[str]:
    for path in product():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in BRINGS_ROWS:
                of = node.func.value
                if not (isinstance(of, ast.Name) and of.id in NOT_OF_SPARK):
                    yield named(path)


def test_nothing_but_places_counts_and_positions_comes_to_the_driver() -> None:
    assert Counter(calls()) == BOUNDED


def test_no_process_reads_all_speed_rows_by_itself() -> None:
    everything = [
        (named(path), query)
        for path in product()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for query in [ast.unparse(node)]
        if re.search(r"FROM (speed_cells|\{self\._layout\.cells\})", query)
        if "SELECT" in query and "WHERE" not in query and "DISTINCT" not in query
    ]

    assert everything == []
