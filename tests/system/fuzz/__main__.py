"""`make fuzz ARGS="sql csv --minutes 60 --seed 7"`: fuzz these targets one after another, or all of them.

Each target prints one line and appends it to the ledger, fuzz.jsonl. An input that breaks a promise is written to the
corpus, `tests/support/corpus/<target>`, and the exit code is 1.
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any

from tests.system.drills.ledger_line import append
from tests.system.fuzz.targets import TARGETS, target_named
from tests.system.fuzz.watchdog import Found, fuzz
from tests.system.fuzz.worker import Failure

LEDGER = "fuzz"


def main() -> int:
    """Exit 1 if an input was found that breaks a promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--minutes", type=float, default=3.0, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if unknown := set(arguments.targets) - set(TARGETS):
        parser.error(f"there is no target {', '.join(sorted(unknown))}: use {', '.join(TARGETS)}")
    failed = 0
    for name in arguments.targets or TARGETS:
        started_at = f"{datetime.now(UTC):%FT%TZ}"
        found = fuzz(target_named(name), arguments.seed, 60 * arguments.minutes, partial(_keep, name))
        line = _line(name, arguments.seed, arguments.minutes, found)
        append(LEDGER, json.dumps({"started_at": started_at, **line}))
        _say(line)
        failed += len(found.failures)
    return int(failed > 0)


def _keep(name: str, failure: Failure) -> None:
    path = target_named(name).keep(failure.value)
    said = f"  {name}: {failure.place}\n{failure.trace}\n  kept in {path}\n"
    sys.stdout.write(said.encode(errors="backslashreplace").decode())  # a value in it may be a lone surrogate
    sys.stdout.flush()


def _line(name: str, seed: int, minutes: float, found: Found) -> dict[str, Any]:
    """As it is kept in the ledger. `refused`: how often by code; `shapes`: outcomes that differ by more than values."""
    tally = found.tally
    return {
        "target": name,
        "version": version("galatea-platform"),
        "seed": seed,
        "minutes": minutes,
        "inputs": tally.inputs,
        "accepted": tally.accepted,
        "refused": dict(tally.refused.most_common()),
        "shapes": tally.shapes,
        "slowest_ms": round(tally.slowest_ms),
        "failures": len(found.failures),
        "places": sorted(found.failures),
    }


def _say(line: dict[str, Any]) -> None:
    refused = line["refused"]
    codes = ", ".join(f"{count:,} {code}" for code, count in refused.items())
    sys.stdout.write(
        f"  {line['target']}  {line['inputs']:,} inputs  {line['accepted']:,} accepted  "
        f"{sum(refused.values()):,} refused ({codes})  slowest {line['slowest_ms']:,} ms  {line['failures']} failures\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
