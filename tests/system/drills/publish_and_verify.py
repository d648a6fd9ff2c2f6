"""`python -m tests.system.drills.publish_and_verify`: publishes, then compares every cell with a full recompute.

In one process, so that Spark starts once, on the stack that the environment names. Prints the result as JSON.
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
    sys.stdout.write(
        json.dumps({"cells": verdict.cells, "differing": verdict.differing + (verdict.totals_differing or 0)})
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
