"""Large pieces of computation, run in a thread so that other requests are answered meanwhile.

Python runs one thread at a time, so no piece is faster; but the event loop gets its turn in between, and not only after
the whole piece. A process has one such thread for long answers and one for all others, so that others do not wait for a
piece of a long one. With more threads, the event loop would wait for each.

A piece is a pure function of data that nobody changes, except that it may number new texts of a `Vocabulary`. Caches
belong to the event loop, which puts results into them.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Result = TypeVar("Result")

CELLS_AT_ONCE = 4_000
"""So many cells are merged in less than 10 ms, and cost less than a thread is worth."""
ROWS_PER_CELL = 10
"""Rows of columns that take as long as one cell."""
CELLS_PER_POINT = 5
"""Cells that take about as long as to compute and write the value of one point."""
CELLS_PER_DAY = 5
"""Cells that take about as long as to find when a store is open on one day."""
_THREADS = {name: ThreadPoolExecutor(1, thread_name_prefix=name) for name in ("merge", "merge-long")}
_thread = ContextVar("thread", default="merge")


@contextmanager
def long_answer() -> Iterator[None]:
    """Inside, and in tasks that begin there, pieces are those of a long answer."""
    before = _thread.set("merge-long")
    try:
        yield
    finally:
        _thread.reset(before)


async def off_loop(cells: int, piece: Callable[[], Result]) -> Result:
    """The result of a piece of computation, or what it raises.

    Args:
        cells: how many it handles; a few are handled at once.
        piece: is called in a thread if there are many.
    """
    if cells <= CELLS_AT_ONCE:
        return piece()
    return await asyncio.get_running_loop().run_in_executor(_THREADS[_thread.get()], piece)
