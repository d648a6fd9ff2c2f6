"""`galatea verify`: comparison of the merged answer with a full recompute."""

import os
import secrets
import sys
from typing import TYPE_CHECKING, Annotated

from typer import Option

from deploy.console import ProgressSteps, print_json, print_message
from deploy.settings import Settings
from galatea.cli.common.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batch_layer.verify.verification import Verdict


def verify(
    sample: Annotated[int | None, Option("--sample", min=1, help="Compare this many random days.")] = None,
    seed: Annotated[
        int | None, Option("--seed", help="Draw the same days again. Every sample prints its seed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare every merged cell, total and group with a full recompute at the end of an epoch.

    Exit 1 on any difference.
    """
    from batch_layer.verify.verification import Sample
    from deploy.batch import verification_of
    from master_dataset.errors import RequestError

    if seed is not None and sample is None:
        raise RequestError("--seed selects the days of a sample, so it needs --sample", do="add --sample N")
    drawn = None if sample is None else Sample(sample, secrets.randbelow(2**31) if seed is None else seed)
    if drawn:
        print_message(f"  seed {drawn.seed}")
    with ProgressSteps("verify") as steps:
        verdict = verification_of(Settings()).run(steps.step, drawn)
    if as_json:
        counted: dict[str, int | None] = {"cells": verdict.cells, "differing": verdict.differing}
        counted |= {"totals": verdict.totals, "totals_differing": verdict.totals_differing}
        counted |= {"totals_masked": verdict.totals_masked}
        more = {"waiting_for_batch": verdict.waiting_for_batch, "epoch": verdict.epoch, "examples": verdict.examples}
        print_json(counted | more | ({"days": verdict.days, "seed": drawn.seed} if drawn else {}))
    else:
        for sentence in sentences(verdict):
            print_message(f"  {sentence}")
    sys.stdout.flush()
    os._exit(verdict.has_differences)  # Spark's Java ends with this process


def sentences(verdict: "Verdict") -> "Iterator[str]":
    """Say what was compared, and what differs."""
    yield from verdict.examples
    if verdict.days is not None:
        yield f"of {len(verdict.days)} days: {', '.join(map(str, verdict.days))}"
    yield (
        f"{verdict.cells:,} cells compared at {verdict.epoch:%Y-%m-%d %H:%M:%S} UTC, "
        f"{verdict.differing:,} differing, {verdict.waiting_for_batch:,} events wait for the next publication"
    )
    if verdict.totals is None:
        yield "nothing is published yet, so totals by group and day are not compared: run galatea rebuild first"
    else:
        yield f"{verdict.totals:,} totals by group and day compared, {verdict.totals_differing:,} differing"
        if verdict.totals_masked:
            yield f"{verdict.totals_masked:,} more are masked, because sensors worked for less than half of the time"
