"""`python -m tests.system.drills.mixed --seed 7`: one long drill with all faults in turn (D32), kept in a ledger."""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from deploy.jars import ensure_jars
from deploy.settings import Settings
from tests.support.free_settings import settings_on_free_ports
from tests.system.drills.drill import Drill
from tests.system.drills.faults import Order, crash_plan, exit_on_sigterm
from tests.system.drills.ledger_line import append


def main() -> int:
    """Exit 1 if something was wrong."""
    arguments = argparse.ArgumentParser(prog="python -m tests.system.drills.mixed", description=__doc__)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--receipts", type=int, default=20_000)
    arguments.add_argument("--rebuilds", type=int, default=6)
    arguments.add_argument("--crashes", type=int, default=10)
    arguments.add_argument("--pauses", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=180, help="how long the stream takes, at least")
    exit_on_sigterm()
    order = Order(**vars(arguments.parse_args()))
    with tempfile.TemporaryDirectory(prefix="galatea-drill-") as folder:
        settings = drill_settings(Path(folder), order)
        ensure_jars(settings)
        report = Drill(order, settings, _say).run()
    sys.stdout.write(json.dumps(report.line(), indent=1) + "\n")
    append("mixed", json.dumps(report.line(), sort_keys=True))
    return 1 if report.wrong else 0


def _say(fault: str) -> None:
    sys.stderr.write(f"  {fault}\n")


def drill_settings(folder: Path, order: Order) -> Settings:
    """Of a stack of its own, with epochs of a second."""
    return settings_on_free_ports(
        folder, epoch_seconds=1, skew_seconds=1, archive_seconds=1, crash_at=crash_plan(order)
    )


if __name__ == "__main__":
    sys.exit(main())
