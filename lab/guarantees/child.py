"""One life of a process that an experiment kills: `python -m lab.guarantees.child EXPERIMENT JSON`.

It runs the experiment's `live`, which ends itself as by `kill -9` where it was told to: no handler, no buffer, no
`finally` comes to anything. It ends too when whoever started it does.
"""

import importlib
import os
import signal
import sys
from typing import NoReturn

import orjson

from deploy.parent_watchdog import tether_if_asked


def die() -> NoReturn:
    """End this process now, as by `kill -9`."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit  # never reached: the signal cannot be caught


def main(experiment: str, task: str) -> None:
    """Live once."""
    tether_if_asked()
    importlib.import_module(f"lab.guarantees.experiments.{experiment}").live(**orjson.loads(task))


if __name__ == "__main__":
    main(*sys.argv[1:])
