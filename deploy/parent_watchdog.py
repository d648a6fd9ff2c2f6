"""Ends a command together with whoever started it, however that ends: killed processes tell nobody."""

import os
import threading

VARIABLE = "GALATEA_TETHERED"
"""Set by a starter that keeps the other end of this process's standard input open for as long as it lives."""
STDIN, ENDED = 0, 143


def tether_if_asked() -> None:
    """Watch standard input in a thread. At its end this process ends at once, and its Spark with it."""
    if os.environ.get(VARIABLE):
        threading.Thread(target=_watch, name="tether", daemon=True).start()


def _watch() -> None:
    while os.read(STDIN, 1024):
        continue
    os._exit(ENDED)
