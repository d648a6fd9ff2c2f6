"""`python -m tests.contract [--cases N] [--seed N]`: how many cases were tried as whom. Exit 1 if a check failed."""

import argparse
import sys

from tests.contract.contract import CALLERS, tried


def main() -> int:
    """Print a line for each caller, and all that Schemathesis said where a check failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.contract", description=__doc__)
    parser.add_argument("--cases", type=int, default=150, help="per operation and phase")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    found = [tried(caller, asked.cases, asked.seed) for caller in CALLERS]
    for each in found:
        sys.stdout.write(f"{each.caller}: {each.cases:,} cases, {'well' if each.is_well else each.said}\n")
    return int(not all(each.is_well for each in found))


if __name__ == "__main__":
    sys.exit(main())
