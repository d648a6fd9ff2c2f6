"""`python -m tests.seeded`: lets every seeded bug be caught, prints the table, and keeps it in docs/ledger/seeded.json.

Bugs that only Spark can have start a stack of their own, which takes a minute; `--without-spark` leaves them out.
"""

import argparse
import json
import logging
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import structlog

from deploy.reference.page import table
from tests.seeded.bug import Bug, Kind, holds
from tests.seeded.bugs import BUGS

KEPT = Path(__file__).parents[2] / "docs" / "ledger" / "seeded.json"
COLUMNS = ("bug", "what is done wrong", "how", "caught by", "verdict")


def main() -> int:
    """Exit 1 if one is missed, or a check fails without a bug."""
    asked = argparse.ArgumentParser(prog="python -m tests.seeded", description=__doc__)
    asked.add_argument("--without-spark", action="store_true")
    with_spark = not asked.parse_args().without_spark
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    rows = list(_rows(with_spark=with_spark))
    verdicts = Counter(row["verdict"] for row in rows)
    sys.stdout.write(table(COLUMNS, [tuple(row.values()) for row in rows]) + "\n")
    sys.stdout.write(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()) + "\n")
    if with_spark:
        KEPT.write_text(json.dumps({"verdicts": verdicts, "bugs": rows}, indent=2) + "\n")
    return int(bool(verdicts["MISSED"] or verdicts["FAILS WITHOUT IT"]))


def _rows(*, with_spark: bool) -> Iterator[dict[str, str]]:
    for number, bug in enumerate(BUGS, 1):
        began = time.monotonic()
        verdict = _verdict(bug, with_spark=with_spark)
        sys.stderr.write(f"  {number} of {len(BUGS)}  {bug.name}: {verdict}, {time.monotonic() - began:.1f} s\n")
        how = bug.kind if bug.changes or bug.check is None else f"{bug.kind}, a rule of it taken away"
        yield {
            "name": bug.name, "says": bug.says, "how": how, "caught_by": bug.caught_by, "verdict": verdict,
        }  # fmt: skip


def _verdict(bug: Bug, *, with_spark: bool) -> str:
    if bug.kind is Kind.IMPOSSIBLE:
        return "impossible"
    if bug.check is None:
        return _of_spark(bug) if with_spark else "not run"
    if not bug.is_caught():
        return "MISSED"
    return "caught" if not bug.changes or holds(bug.check) else "FAILS WITHOUT IT"


def _of_spark(bug: Bug) -> str:
    words = [sys.executable, "-m", "pytest", "-q", bug.where, "-k", bug.name, "--durations=0"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    return "caught" if done.returncode == 0 else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
