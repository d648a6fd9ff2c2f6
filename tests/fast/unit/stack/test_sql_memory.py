"""The memory of SQL: what statements reserve is given back, and a process without any starts again."""

import os
import subprocess
import sys
from pathlib import Path

from deploy.local.stack import service_environment
from deploy.settings import Settings

MOST_MB = 400
STATEMENTS = """
from pathlib import Path
import psutil
from serving_layer.sql.results import SqlStateError
from serving_layer.sql.sandbox import Limits, Sandbox

sandbox = Sandbox("UTC", Limits())
[database] = psutil.Process().children()
for number in range(3):
    for sql in (
        f"select length(repeat(repeat('a', 1000000), 9) || (x + {number})::text) from generate_series(1, 99999) a(x)",
        "select " + ", ".join(["x + 0"] * 1600) + " from generate_series(1, 100000) g(x)",
    ):
        try:
            sandbox.query(sql)
        except SqlStateError as error:
            print(error.code)
status = Path(f"/proc/{database.pid}/status").read_text()
print([int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmData")][0])
"""
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


def test_what_large_statements_have_reserved_is_given_back(tmp_path: Path) -> None:
    *codes, data = printed(STATEMENTS, tmp_path)

    assert len(codes) == 6
    assert set(codes) <= {"53200", "54000"}
    assert int(data) < MOST_MB


def test_a_process_that_can_reserve_nothing_for_a_while_is_to_start_again(tmp_path: Path) -> None:
    *others, said = printed(STARVED, tmp_path)

    assert others[-1] == "relieved"
    assert said == "for 1.5 s there were no 32 MB left of what this process may reserve"
