"""`make drills`: every quick drill on one running stack. `make drill ARGS="D08 --seed 4711"`: one, or some.

`ARGS="--line 17"` repeats the drill of line 17 of the ledger; `make campaign ARGS="--shard 1/4 --seed 7"` runs a part
of the long set. Each drill prints one line and appends it to the ledger, drills.jsonl.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator

from tests.system.drills import campaign, quick, storm
from tests.system.drills.faults import exit_on_sigterm
from tests.system.drills.ledger_line import FAIL, SKIPPED, LedgerLine, keep, lines_of
from tests.system.drills.load import Mix
from tests.system.drills.performance import END

MOST_NAMED = 8
"""Of more faults than these, a line says how many there were of each kind; the ledger has them all."""


def main() -> int:
    """Exit 1 if one failed or was not run."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills", description=__doc__)
    parser.add_argument("drills", nargs="*", metavar="DRILL", help=f"of {', '.join(each.id for each in quick.DRILLS)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--line", type=int, help="of the ledger, drills.jsonl, from 1")
    parser.add_argument("--long", action="store_true", help="the long set")
    parser.add_argument("--shard", type=_shard, default=(1, 1), help="of the long set: 1/4 is the first of four")
    arguments = parser.parse_args()
    exit_on_sigterm()
    unknown = set(arguments.drills) - {each.id for each in quick.DRILLS}
    if unknown:
        parser.error(f"there is no quick drill {', '.join(sorted(unknown))}: see docs/explanation/drills.md")
    known = lines_of("drills")
    if arguments.line is not None and not 1 <= arguments.line <= len(known):
        parser.error(f"--line must lie between 1 and {len(lines_of('drills'))}")
    if arguments.line is not None and known[arguments.line - 1]["drill"] == storm.ID:
        parser.error(f"repeat it with: python -m tests.system.drills.storm --seed {known[arguments.line - 1]['seed']}")
    if arguments.line is not None and known[arguments.line - 1]["verdict"] == SKIPPED:
        parser.error(f"line {arguments.line} was skipped: {lines_of('drills')[arguments.line - 1]['why']}")
    failed = 0
    for number, line in enumerate(_lines(arguments), 1):
        keep(line)
        failed += line.verdict == FAIL
        _say(number, line)
    return int(failed > 0)


def _lines(arguments: argparse.Namespace) -> Iterator[LedgerLine]:
    if arguments.long:
        return campaign.lines(arguments.shard, arguments.seed)
    if arguments.line is None:
        return quick.lines(arguments.seed, arguments.drills)
    again = lines_of("drills")[arguments.line - 1]
    done = next((each["args"] for each in again["faults"] if each["method"] == campaign.COMMAND), "")
    if done:
        return campaign.commanded(campaign.Job((again["drill"],), tuple(done.split())), again["seed"])
    mix = Mix(again["load"].get("rate", Mix().rate))
    return quick.lines(again["seed"], [] if again["drill"] == END else [again["drill"]], mix, set_=again["set"])


def _shard(text: str) -> tuple[int, int]:
    number, _, shards = text.partition("/")
    if not (number.isdecimal() and shards.isdecimal() and 1 <= int(number) <= int(shards)):
        raise argparse.ArgumentTypeError(f"`{text}` must be like 1/4")
    return int(number), int(shards)


def _say(number: int, line: LedgerLine) -> None:
    done = [f"{each['method']} {each['target']} {each['args']}".strip() for each in line.faults]
    methods = Counter(each["method"] for each in line.faults)
    counts = ", ".join(f"{number:,} {method}" for method, number in methods.most_common())
    faults = ", ".join(done) if len(done) <= MOST_NAMED else f"{len(done):,} faults: {counts}"
    summary = f"  {number}  {line.drill}  {line.verdict}  {line.seconds:.0f} s  {faults}"
    sys.stdout.write(f"{summary}{'  ' + line.why if line.why else ''}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
