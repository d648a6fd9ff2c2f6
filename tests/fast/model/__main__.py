"""`python -m tests.fast.model`: histories with all rules, then each rule taken away."""

import argparse
import logging
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

import structlog

from tests.fast.model.campaign import Counted, missed, run
from tests.fast.model.rules import Rule
from tests.fast.model.story import story

AT_ONCE = 250


def main() -> int:
    """1 if a history differs, or a rule is not missed."""
    arguments = _arguments()
    _quiet()
    with ProcessPoolExecutor(arguments.processes, initializer=_quiet) as pool:
        if arguments.without:
            return _without(pool, [Rule[arguments.without]], arguments)
        counted = _all_rules(pool, arguments)
        if counted.different:
            print(story(min(counted.different)))
            return 1
        return _without(pool, list(Rule), arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fast.model", description=__doc__)
    parser.add_argument("--histories", type=int, default=1000, help="how many; without a rule, how many at most")
    parser.add_argument("--seed", type=int, default=0, help="of the first history")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--without", choices=[rule.name for rule in Rule], help="take one rule away, and tell a story")
    return parser.parse_args()


def _quiet() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _all_rules(pool: ProcessPoolExecutor, arguments: argparse.Namespace) -> Counted:
    begun, counted, end = time.monotonic(), Counted(), arguments.seed + arguments.histories
    parts = [range(start, min(start + AT_ONCE, end)) for start in range(arguments.seed, end, AT_ONCE)]
    for done in as_completed([pool.submit(run, part) for part in parts]):
        counted = counted.plus(done.result())
        if sys.stderr.isatty() or counted.histories % (AT_ONCE * 20) == 0:
            print(f"  {counted.histories} of {arguments.histories} histories", file=sys.stderr, flush=True)
    print(f"seeds {arguments.seed} to {end - 1}, {time.monotonic() - begun:.0f} s, {arguments.processes} processes")
    print("| histories | steps | comparisons | differences |\n| ---: | ---: | ---: | ---: |")
    print(f"| {counted.histories:,} | {counted.steps:,} | {counted.comparisons:,} | {len(counted.different)} |\n")
    return counted


def _without(pool: ProcessPoolExecutor, rules: list[Rule], arguments: argparse.Namespace) -> int:
    print("| taken away | what it says | histories until it was missed |\n| --- | --- | ---: |")
    found = list(pool.map(partial(missed, first=arguments.seed, most=arguments.histories), rules))
    for each in found:
        print(f"| {each.rule.name} | {each.rule.value} | {each.histories or 'never'} |")
    if arguments.without and found[0].histories:
        print(story(arguments.seed + found[0].histories - 1, rules[0]))
    return int(any(each.histories is None for each in found))


if __name__ == "__main__":
    sys.exit(main())
