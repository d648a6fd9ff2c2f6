"""`python -m tests.system.drills.counting`: publishes, then compares every cell with a full recompute. Spark starts
once.

Of the stack that the environment names. Prints what was found as JSON; what cannot be done is said in one line.
"""

import json
import os
import sys

import structlog

from deploy.settings import Settings
from master_dataset.errors import GalateaError
from tests.integration.conftest import Stack


def main() -> int:
    """Exit 1 if it cannot be done."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is the answer
    stack = Stack(Settings(), dict(os.environ))
    try:
        stack.rebuild()
        verdict = stack.verify()
    except GalateaError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    sys.stdout.write(json.dumps({"cells": verdict.cells, "differing": verdict.differing}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
