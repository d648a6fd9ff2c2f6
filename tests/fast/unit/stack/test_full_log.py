"""A process whose log cannot be written, because the disk is full, works on, and ends as soon as it fails."""

import subprocess
import sys
from pathlib import Path

import pytest

from deploy.services.runner import RESTART_ME

FULL = Path("/dev/full")
SCRIPT = """
import threading
import structlog
from deploy.services.runner import Process

def run(process, settings):
    left = threading.Event()
    process.at_end(left.set)
    process.at_end(lambda: 1 / 0)
    threading.Thread(target=left.wait).start()
    threading.Thread(target=threading.Event().wait).start()  # nothing ends it
    structlog.get_logger().info("nobody reads this")
    Path(settings.home, "worked").touch()
    raise ValueError("the work fails")

from pathlib import Path
Process("speed").main(run)
"""


@pytest.mark.parametrize("target", ["the full device", "a pipe"])
def test_it_ends_with_the_code_for_a_restart(tmp_path: Path, target: str) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"GALATEA_HOME": str(tmp_path), "PYTHONPATH": str(Path.cwd())},
            stdout=full if target == "the full device" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )

    assert (done.returncode, (tmp_path / "worked").exists()) == (RESTART_ME, True), done.stderr
    assert done.stdout is None or b"process.failed" in done.stdout
