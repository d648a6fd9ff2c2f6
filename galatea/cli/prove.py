"""`galatea prove`: experiments on delivery guarantees."""

import signal
from typing import TYPE_CHECKING, Annotated, NoReturn

from typer import Argument, Exit, Option

from deploy.console import ProgressSteps, print_json, print_message, print_table
from deploy.settings import Settings
from galatea.cli.common.options import AsJson
from master_dataset.errors import RequestError

if TYPE_CHECKING:
    from lab.guarantees.suite import ExperimentResult


def prove(
    experiments: Annotated[list[str] | None, Argument(help="P01 to P26 (default: all).")] = None,
    seed: Annotated[int, Option(help="Determines where processes die and how long work takes.")] = 1,
    bootstrap: Annotated[str, Option(help="host:port of a broker to use; by default, one is started.")] = "",
    brokers: Annotated[int, Option(help="3, or 1 to leave out experiments that need three nodes.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Inject faults into a real broker, and count lost and duplicate records. Exit 1 on any unexpected result."""
    from lab.guarantees.results import COLUMNS, rows
    from lab.guarantees.suite import ONE, THREE, ExperimentSelection, document, is_as_expected
    from lab.guarantees.suite import run_experiments as run

    if brokers not in {ONE, THREE}:
        raise RequestError("--brokers must be 1 or 3", do="--brokers 1 or --brokers 3")
    signal.signal(signal.SIGTERM, _leave)
    selection = ExperimentSelection(
        [each.upper() for each in experiments or ()], seed, bootstrap=bootstrap, brokers=brokers
    )
    with ProgressSteps("prove") as steps:
        results = run(Settings(), selection, steps.step)
    if as_json:
        print_json(document(selection, results))
    else:
        print_table(COLUMNS, [row for each in document(selection, results)["experiments"] for row in rows(each)])
        _conclude(results)
    if not is_as_expected(results):
        raise Exit(1)


def _conclude(results: "list[ExperimentResult]") -> None:
    from lab.guarantees.results import Verdict

    counts = {verdict: sum(result.verdict == verdict for result in results) for verdict in Verdict}
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    print_message(f"  of {len(results)} experiments: {said}")


def _leave(_number: int, _frame: object) -> NoReturn:
    """Handle it as Ctrl-C, so that brokers are stopped."""
    raise KeyboardInterrupt
