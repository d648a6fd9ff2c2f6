"""`python -m tests.system.contract [--cases N] [--seed N]`: print the cases of each caller; exit 1 on failed checks."""

import argparse
import sys

from tests.system.contract.contract import CALLERS, PHASES, tried, tried_by_default


def main() -> int:
    """Print a line for each caller, and all that Schemathesis said where a check failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.contract", description=__doc__)
    parser.add_argument("--cases", type=int, default=150, help="per operation and phase, or sequences")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    found = [tried(caller, phase, arguments.cases, arguments.seed) for caller in CALLERS for phase in PHASES]
    found.append(tried_by_default("reader", arguments.cases, arguments.seed))
    for each in found:
        linked = f" over {each.links} links" if each.links else ""
        rejected = f", {each.rejections:,} documented rejections" if each.rejections else ""
        outcome = "well" if each.is_well else each.said
        sys.stdout.write(f"{each.caller}, {each.phase}: {each.cases:,} cases{linked}{rejected}, {outcome}\n")
    sys.stdout.write(f"{sum(each.cases for each in found):,} cases\n")
    return int(not all(each.is_well for each in found))


if __name__ == "__main__":
    sys.exit(main())
