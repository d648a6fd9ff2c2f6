"""How many random examples a law has: `make test` tries a tenth of those that `make test-all` tries."""

import os

IS_FULL = os.environ.get("GALATEA_LAWS") == "full"


def examples(full: int, least: int = 10) -> int:
    """The number of examples of this run, of `full` in the long one. `least`: in any run."""
    return full if IS_FULL else max(least, full // 10)
