"""`python -m benchmarks [NAME ...] [--size N]`: measure, print one table, keep the results."""

import argparse
import logging
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import structlog

from benchmarks.report import Load, keep, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.report import Measured

STACK = (
    "ingest",
    "archive",
    "bytes",
    "delay",
    "answers",
    "memory",
    "at_least",
    "login_flood",
    "listeners",
    "page_weight",
    "sql",
    "api_processes",
    "during_rebuild",
)
ALONE = (
    "commands",
    "posted",
    "state",
    "cells",
    "sources",
    "spans",
    "chain",
    "chain_pages",
    "top_skus",
    "switch",
    "migration",
    "capacity",
    "scale",
    "secured",
    "incremental",
    "growth",
    "rebuild",
    "producers",
    "alerts",
    "webhooks",
)
"""Each is a function of its module's name, on a stack of its own; `FULL` is its size."""
NAMES = (*STACK, *ALONE)


def main() -> int:
    """Exit 1 if a promise is missed. If a part fails, what was measured before it is shown and kept all the same."""
    arguments = _arguments()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM)
    )  # so that processes that were started end too
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING)
    )  # keeps the log off stdout, which has the table
    load = Load()
    rows: list[Measured] = []
    try:
        rows.extend(_measured(arguments.names, arguments.size))
    finally:
        machine = load.facts()
        show(rows, machine)
        if rows:
            print(f"kept in {keep(rows, machine, arguments.size)}")
    return int(any(row.holds is False for row in rows))


def _measured(names: list[str], size: int) -> "Iterator[Measured]":
    if wanted := [name for name in STACK if name in names]:
        from benchmarks.stack import FULL, on_stack  # noqa: PLC0415 - engines are loaded when they are needed

        yield from (row for row in on_stack(size or FULL, wanted) if row.name.split()[0].rstrip(",") in wanted)
    for name in ALONE:
        if name in names:
            module = import_module(f"benchmarks.{name}")
            yield from getattr(module, name)(size or module.FULL)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}; all if none is named")
    parser.add_argument("--size", type=int, default=0, help="receipts, cells, or rows of cells; each has its default")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"`{unknown.pop()}` is none of {', '.join(NAMES)}")
    arguments.names = arguments.names or list(NAMES)
    return arguments


if __name__ == "__main__":
    sys.exit(main())
