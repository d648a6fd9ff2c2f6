"""What runs beside something that is measured."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event


@contextmanager
def beside(work: Callable[[Event], None]) -> Iterator[None]:
    """Do this work in a thread until the block is left, of which the event tells it. Its errors are raised then."""
    leave = Event()
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work, leave)
        try:
            yield
        finally:
            leave.set()
        working.result()
