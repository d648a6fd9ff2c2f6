"""Scratch folders of Spark: a later process removes those of processes that have ended, and no others."""

import subprocess
import sys
from pathlib import Path

from deploy.scratch import own_scratch

HOLDS_ONE = """
import sys
from pathlib import Path
from deploy.scratch import own_scratch
print(own_scratch(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def test_the_folder_of_a_process_stays_until_another_one_starts_after_its_end(tmp_path: Path) -> None:
    base = tmp_path / "spark" / "rebuild"
    command = [sys.executable, "-c", HOLDS_ONE, str(base)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        (theirs / "blockmgr-1").mkdir()
        (base / "derby.log").touch()

        first = own_scratch(base)
        assert theirs.exists()
        process.kill()
    own_scratch.cache_clear()
    second = own_scratch(base)

    assert not theirs.exists()
    assert {first, second, base / "derby.log"} == set(base.iterdir())
    assert first.stat().st_mode & 0o777 == 0o700


def test_a_process_has_one_folder(tmp_path: Path) -> None:
    assert own_scratch(tmp_path / "speed") == own_scratch(tmp_path / "speed")
