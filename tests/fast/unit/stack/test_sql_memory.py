"""A process of SQL that has no memory left starts again."""

import os
import subprocess
import sys
from pathlib import Path

from deploy.local.stack import service_environment
from deploy.settings import Settings

STARVED = """
import asyncio
from deploy.process import limit_memory
from deploy.services.sql import PROBE_BYTES, await_exhaustion

limit_memory(1024)
taken = [bytearray(PROBE_BYTES // 2)]
try:
    while len(taken) < 100:
        taken.append(bytearray(PROBE_BYTES // 2))
except MemoryError:
    pass
try:
    asyncio.run(await_exhaustion(lambda: print("relieved"), 1.5))
except MemoryError as error:
    print(error)
"""


def printed(script: str, tmp_path: Path) -> list[str]:
    settings = Settings(home=tmp_path)
    environment = {**os.environ, **service_environment(settings, "sql"), "PYTHONPATH": str(Path.cwd())}
    file = tmp_path / "script.py"
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, str(file)], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.splitlines()


def test_a_process_that_can_reserve_nothing_for_a_while_is_to_start_again(tmp_path: Path) -> None:
    *others, said = printed(STARVED, tmp_path)

    assert others[-1] == "relieved"
    assert said == "for 1.5 s there were no 32 MB left of what this process may reserve"
