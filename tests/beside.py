"""`python -m tests.beside`: fast tests, then those of the system, while integration tests use their shared stack.

They run in a session of their own with a low weight, because Linux weighs sessions against each other: at the usual
weight they take the time that the stack would need to answer the integration tests, which then wait for it.
"""

import os
import signal
import subprocess
import sys

from deploy.process import lower_priority

NICENESS = 19
PARTS = (
    "tests/fast",
    "tests/system",
)


def main() -> int:
    """Run all parts. Returns 1 if one of them fails or is ended by a signal. SIGTERM ends all of them."""
    os.setsid()
    lower_priority(NICENESS)
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    run = (sys.executable, "-m", "pytest", "-q", "-m", "not nightly", "-n", "auto", "--dist", "worksteal")
    codes = [subprocess.run([*run, part], check=False).returncode for part in PARTS]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
