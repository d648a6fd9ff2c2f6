"""How many random examples a law has: `make test` tries a fifth of those that `make test-all` tries."""

import os

IS_FULL = os.environ.get("GALATEA_LAWS") == "full"
LEAST = 20


def examples(full: int) -> int:
    """The number of examples of this run, of `full` in the long one."""
    return full if IS_FULL else max(LEAST, full // 5)
